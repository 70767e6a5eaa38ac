"""Keep trajectories with enough executed blocks: ThinC's filter (iii), at least three."""

from __future__ import annotations

from ...settings import settings
from .. import Graded, Verdict


@settings
class Settings:
    """How many."""

    n: int = 3
    """Executed blocks; a trailing block that never ran does not count."""


def judge(settings: Settings, graded: Graded) -> Verdict:
    """Keep if at least `n` blocks ran."""
    enough = len(graded.trajectory.blocks) >= settings.n
    unit = "block" if settings.n == 1 else "blocks"
    return Verdict(enough, f"{settings.n} {unit} or more" if enough else f"fewer than {settings.n} {unit}")
