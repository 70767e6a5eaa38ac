"""Reward for a right answer: 1[a = a*] (ThinC); ±1 for CIR, ToRL and DAPO by `wrong: -1`."""

from __future__ import annotations

from ...settings import settings
from .. import Graded


@settings
class Settings:
    """What each outcome earns."""

    right: float = 1.0
    wrong: float = 0.0
    """Also for no answer, an answer that can't be read, and a trajectory cut by a budget."""


def reward(settings: Settings, graded: Graded) -> float:
    """`right` or `wrong`."""
    return settings.right if graded.grade.correct else settings.wrong
