"""Reward for running code at all. Off in every published recipe but a few ablations; it invites empty calls."""

from __future__ import annotations

from ...settings import settings
from ...trajectory import BlockStatus
from .. import Graded


@settings
class Settings:
    """What each outcome earns."""

    used: float = 1.0
    unused: float = 0.0
    only_ok: bool = True
    """Count a block only if it ended `ok`."""


def reward(settings: Settings, graded: Graded) -> float:
    """`used` if a block ran."""
    blocks = [segment.block for segment in graded.trajectory.blocks if segment.block]
    ran = any(block.status is BlockStatus.OK or not settings.only_ok for block in blocks)
    return settings.used if ran else settings.unused
