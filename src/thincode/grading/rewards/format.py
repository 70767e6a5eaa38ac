"""Reward for keeping ThinC's shape: one plan, blocks linked by outputs alone, an answer. Off in the paper."""

from __future__ import annotations

from ...settings import settings
from .. import Graded
from ..spans import keeps_format


@settings
class Settings:
    """What each outcome earns."""

    kept: float = 1.0
    broken: float = 0.0


def reward(settings: Settings, graded: Graded) -> float:
    """`kept` if a plan stands before the first block only and no text between blocks; else `broken`."""
    return settings.kept if keeps_format(graded.trajectory) else settings.broken
