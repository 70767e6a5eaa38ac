"""Process reward: each block earns by how it ended, where it stands. Off in every published recipe; it invites trivial blocks."""

from __future__ import annotations

from collections.abc import Sequence

from ...settings import settings
from ...trajectory import BlockStatus
from .. import Graded


@settings
class Settings:
    """What each outcome earns; text, outputs and notices earn nothing."""

    ok: float = 0.0
    failed: float = -0.1
    """`error` and `limit`. A lost block earns nothing: it is not the model's."""


def segment_rewards(settings: Settings, graded: Graded) -> Sequence[float]:
    """One number a segment."""
    worth = {BlockStatus.OK: settings.ok, BlockStatus.LOST: 0.0}
    return [
        worth.get(segment.block.status, settings.failed) if segment.block is not None else 0.0
        for segment in graded.trajectory.segments
    ]
