"""Keep trajectories whose plan is short: ThinC's filter (iv), |t1|/|τ| < 0.5 in tokens of the student.

τ is everything after the prompt, outputs and answer included. A trajectory without code is all plan.
"""

from __future__ import annotations

from ...settings import settings
from .. import Graded, Verdict
from ..spans import plan_share


@settings
class Settings:
    """How short."""

    below: float = 0.5
    """The plan's share must be smaller than this."""


def judge(settings: Settings, graded: Graded) -> Verdict:
    """Keep if the share is below the limit; the reason says whether tokens or, without ids, characters were counted."""
    share = plan_share(graded.trajectory)
    if share is None:
        return Verdict(False, "empty trajectory")
    keep = share.value < settings.below
    return Verdict(keep, f"plan {'below' if keep else 'not below'} {settings.below:g} of {share.unit}")
