"""DAPO's soft overlong punishment (arXiv 2503.14476, eq. 13): 0, then a line down to −1, over the tokens after the prompt.

With limit 20,480 and cache 4,096: 16,384 tokens → 0, 18,432 → −0.5, 20,480 → −1. Off in ThinC. The counted length holds
outputs too, because they spend the same context.
"""

from __future__ import annotations

from ...settings import settings
from .. import Graded
from ..spans import length


@settings
class Settings:
    """Where the punishment starts and ends, in tokens (characters where a record has no ids)."""

    limit: int = 20_480
    cache: int = 4_096


def reward(settings: Settings, graded: Graded) -> float:
    """A number in [−1, 0]."""
    over = length(graded.trajectory).total - (settings.limit - settings.cache)
    return -min(max(over / max(settings.cache, 1), 0.0), 1.0)
