"""The shape of trajectories: format adherence, plan share, how they ended.

- format adherence: one plan before the first block, no text between blocks, an answer (`grading.spans.keeps_format`).
- plan share: mean of |t1|/|τ| over trajectories with code, in tokens, in characters where records have no ids.
- answered: an answer was found. void: neither an executed block nor an answer (SimpleTIR's void turns, for a whole trajectory).
- end/…: share of each end reason; `end/lost` is over all rows, everything else leaves lost ones out.

n counts trajectories.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...grading import Graded
from ...grading.spans import keeps_format, plan_share
from ...settings import settings
from ...trajectory import EndReason
from .. import Estimate
from ..intervals import normal
from ..samples import estimate, finished, lost_note, share


@settings
class Settings:
    """Nothing to set."""


def measure(settings: Settings, rows: Sequence[Graded]) -> list[Estimate]:
    """All of the above."""
    kept, note = finished(rows), lost_note(rows)
    n = len(kept)
    plans = [found for row in kept if row.trajectory.blocks and (found := plan_share(row.trajectory))]
    units = sorted({plan.unit for plan in plans})
    answered = [row.trajectory.answer is not None for row in kept]
    void = sum(not row.trajectory.blocks and not found for row, found in zip(kept, answered, strict=True))
    ends = [row.trajectory.end for row in kept]
    return [
        share("format adherence", sum(keeps_format(row.trajectory) for row in kept), n, note=note),
        estimate(
            "plan share",
            normal([p.value for p in plans]),
            n=len(plans),
            note=f"of {' and '.join(units)}" if units else "",
        ),
        share("answered", sum(answered), n, note=note),
        share("void", void, n, note=note),
        *(share(f"end/{end.value}", ends.count(end), n) for end in EndReason if end is not EndReason.LOST),
        share(f"end/{EndReason.LOST.value}", len(rows) - n, len(rows)),
    ]
