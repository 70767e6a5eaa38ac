"""From asks to what an algorithm sees: sample, grade and reward as trajectories end, and say what each may count for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Self

from ..grading import Graded, Reward, combine
from ..grading.answers import Grader
from ..problems import Problem
from ..rollout.crowd import Crowd
from ..rollout.episode import Ask, Setting
from ..settings import Kind, settings
from ..training import Rollout
from ..training.curriculum import Group
from ..trajectory import EndReason, Trajectory
from . import health


class Fate(StrEnum):
    """What a trajectory counts for in RL."""

    TRAINED = "trained"
    """In the group's statistics and in the loss."""
    STATISTICS = "statistics"
    """In the group's statistics alone."""
    OUT = "out"
    """In neither."""


@settings
class Masks:
    """Fates that are a matter of taste. Lost trajectories are always out; a token's author is never one of taste."""

    truncated: Fate = Fate.TRAINED
    """Cut by the budget of context or of seconds."""
    void: Fate = Fate.TRAINED
    """Ended by a turn that has neither a block nor an answer (SimpleTIR takes them out of the loss)."""
    answered_without_interpreter: Fate = Fate.OUT


def fate(trajectory: Trajectory, masks: Masks) -> Fate:
    """The one authority on what a trajectory counts for."""
    if trajectory.lost or trajectory.tokens is None:
        return Fate.OUT
    if trajectory.end is EndReason.ANSWERED_WITHOUT_INTERPRETER:
        return masks.answered_without_interpreter
    if trajectory.end in (EndReason.CONTEXT, EndReason.SECONDS):
        return masks.truncated
    if trajectory.end is EndReason.FINISHED and trajectory.answer is None:
        return masks.void
    return Fate.TRAINED


@dataclass(frozen=True)
class Scored:
    """A trajectory with its grade, its reward and its fate."""

    graded: Graded
    reward: Reward
    fate: Fate


class Judge:
    """Grades and rewards each trajectory in a thread of its own, while others are still being made."""

    def __init__(self, rewards: Sequence[tuple[Kind, float]], masks: Masks) -> None:
        """Bind the rewards, with their weights, and the masks."""
        self._rewards = rewards
        self._masks = masks
        self._grader = Grader()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="grades")

    def roll(
        self, crowd: Crowd, asks: Sequence[Ask], setting: Setting, problem_of: Callable[[str], Problem]
    ) -> list[Scored]:
        """Make and judge trajectories, in the order asked; see `Crowd.roll` for what it raises."""
        judged: dict[Any, Future[Scored]] = {}

        def take(trajectory: Trajectory) -> None:
            problem = problem_of(trajectory.address.problem)
            judged[trajectory.address.key] = self._thread.submit(self._judge, trajectory, problem)

        made = crowd.roll(asks, setting, on_finished=take)
        return [judged[trajectory.address.key].result() for trajectory in made]

    def _judge(self, trajectory: Trajectory, problem: Problem) -> Scored:
        graded = Graded(problem, trajectory, self._grader.grade(trajectory.answer, problem.answer))
        return Scored(graded, combine(self._rewards, graded), fate(trajectory, self._masks))

    def close(self) -> None:
        """End the thread and the grader's processes."""
        self._thread.shutdown(cancel_futures=True)
        self._grader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: object) -> None:
        self.close()


def to_rollouts(scored: Sequence[Scored]) -> list[Rollout]:
    """What the algorithm sees, in order; groups are numbered as they appear."""
    groups: dict[str, int] = {}
    found = []
    for one in scored:
        trajectory = one.graded.trajectory
        if one.fate is Fate.OUT or trajectory.tokens is None:
            continue
        found.append(
            Rollout(
                tokens=trajectory.tokens,
                group=groups.setdefault(one.graded.problem.id, len(groups)),
                reward=one.reward.total,
                in_update=one.fate is Fate.TRAINED,
                credit=_credit(trajectory, one.reward),
                features=health.features(one.graded),
            )
        )
    return found


def groups_of(scored: Sequence[Scored], step: int) -> dict[str, Group]:
    """How many samples of each problem were right, of those that count."""
    counted: dict[str, Group] = {}
    for one in scored:
        if one.graded.trajectory.with_interpreter:
            before = counted.get(one.graded.problem.id, Group(step, 0, 0))
            right = before.right + int(one.graded.grade.correct)
            counted[one.graded.problem.id] = replace(before, right=right, samples=before.samples + 1)
    return counted


def _credit(trajectory: Trajectory, reward: Reward) -> tuple[tuple[int, float], ...]:
    """Rewards of segments at the last token of each."""
    return tuple(
        (max(segment.end - 1, 0), value)
        for segment, value in zip(trajectory.segments, reward.segments, strict=False)
        if value and segment.end is not None
    )
