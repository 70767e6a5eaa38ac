"""What it is worth: grades, verdicts and rewards. Pure functions of a finished trajectory; never runs code.

`answers.grade` decides whether an answer is right; `combine` and `Sieve` apply the rewards and filters a recipe names;
`records` carries a problem and its grade through the run folder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial

from ..problems import Problem
from ..settings import Kind
from ..trajectory import Trajectory


class GradeReason(StrEnum):
    """Why an answer is right or wrong."""

    EQUAL_INTEGER = "equal_integer"
    EQUAL_VALUE = "equal_value"
    """Equal by value, decided by math-verify."""
    DIFFERENT = "different"
    NO_ANSWER = "no_answer"
    UNPARSABLE = "unparsable"
    SEVERAL_VALUES = "several_values"
    """More than one value for a question that asks for one."""
    TIME_LIMIT = "time_limit"
    """The comparison did not end in time and was killed; counts as wrong."""


@dataclass(frozen=True)
class Grade:
    """Whether an answer is right, and why."""

    correct: bool
    reason: GradeReason


@dataclass(frozen=True)
class Rerun:
    """What came of running a trajectory's blocks again."""

    same: int
    """Blocks, from the first on, that printed the same to the letter; what follows a difference is not compared."""
    lost: bool = False
    """Our infrastructure failed; says nothing about the blocks."""


@dataclass(frozen=True)
class Graded:
    """A finished trajectory beside its problem and its grade: what rewards, filters and metrics look at."""

    problem: Problem
    trajectory: Trajectory
    grade: Grade
    rerun: Rerun | None = None
    """What its blocks printed when a loop ran them again; None where none did."""


@dataclass(frozen=True)
class Verdict:
    """What a filter says of one trajectory."""

    keep: bool
    reason: str
    """Short and countable, for example `fewer than 3 blocks`; also when kept."""


@dataclass(frozen=True)
class Reward:
    """What a trajectory earned, and for what."""

    total: float
    parts: Mapping[str, float] = field(default_factory=dict)
    """Unweighted value by reward name; of a reward by segments, their sum."""
    segments: tuple[float, ...] = ()
    """What each segment earned, weighted and part of the total; empty where no reward goes by segments."""


def combine(rewards: Sequence[tuple[Kind, float]], graded: Graded) -> Reward:
    """The weighted sum of rewards.

    Args:
        rewards: kinds of `grading.rewards`, each with its weight; a kind named twice is told apart as `name#2`.
        graded: one trajectory with its grade.
    """
    total, parts = 0.0, dict[str, float]()
    segments: list[float] = []
    for kind, weight in rewards:
        if hasattr(kind.module, "segment_rewards"):
            earned = [float(value) for value in kind.module.segment_rewards(kind.settings, graded)]
            segments = segments or [0.0] * len(graded.trajectory.segments)
            segments = [before + weight * value for before, value in zip(segments, earned, strict=True)]
            value = sum(earned)
        else:
            value = float(kind.module.reward(kind.settings, graded))
        again = sum(name.partition("#")[0] == kind.name for name in parts)
        parts[f"{kind.name}#{again + 1}" if again else kind.name] = value
        total += weight * value
    return Reward(total, parts, tuple(segments))


class Sieve:
    """The filters of a recipe, opened for one corpus."""

    def __init__(self, filters: Sequence[Kind]) -> None:
        """Let each filter read what it needs (benchmarks, for example).

        Args:
            filters: kinds of `grading.filters`, in the order they are asked.

        Raises:
            DataError: a file that a filter needs can't be read.
        """
        self._judges: list[Callable[[Graded], Verdict]] = []
        for kind in filters:
            module = kind.module
            judge = module.open(kind.settings) if hasattr(module, "open") else partial(module.judge, kind.settings)
            self._judges.append(judge)

    def judge(self, graded: Graded) -> Verdict:
        """What the filters say together: the first that drops, in order, gives the reason."""
        for judge in self._judges:
            verdict = judge(graded)
            if not verdict.keep:
                return Verdict(False, verdict.reason)
        return Verdict(True, "kept")
