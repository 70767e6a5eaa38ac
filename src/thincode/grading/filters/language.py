"""Keep trajectories in English: the question, and what the model wrote around its blocks.

Judged by letters and function words; mathematics, code and names pass. See `problems.language`.
"""

from __future__ import annotations

from ...problems.language import is_english
from ...settings import settings
from ...trajectory import SegmentKind
from .. import Graded, Verdict

_PROSE = (SegmentKind.PLAN, SegmentKind.THOUGHT, SegmentKind.ANSWER)


@settings
class Settings:
    """Nothing to set."""


def judge(settings: Settings, graded: Graded) -> Verdict:
    """Keep if both are English."""
    if not is_english(graded.trajectory.question):
        return Verdict(False, "question not in English")
    prose = " ".join(segment.text for segment in graded.trajectory.segments if segment.kind in _PROSE)
    if not is_english(prose):
        return Verdict(False, "text not in English")
    return Verdict(True, "in English")
