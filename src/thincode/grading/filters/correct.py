"""Keep correct trajectories: ThinC's filter (i)."""

from __future__ import annotations

from ...settings import settings
from .. import Graded, Verdict


@settings
class Settings:
    """Nothing to set."""


def judge(settings: Settings, graded: Graded) -> Verdict:
    """Keep if the grade says correct; a dropped one names the grade's reason."""
    if graded.grade.correct:
        return Verdict(True, "correct")
    return Verdict(False, f"wrong: {graded.grade.reason.value}")
