"""What it is worth: grades, verdicts and rewards. Pure functions of a finished trajectory; never runs code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from ..problems import Problem
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
class Graded:
    """A finished trajectory beside its problem and its grade: what rewards, filters and metrics look at."""

    problem: Problem
    trajectory: Trajectory
    grade: Grade


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
    """Unweighted value by reward name."""
