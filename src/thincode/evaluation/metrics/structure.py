"""The shape of trajectories: format adherence, plan share, how they ended.

- format adherence: one plan before the first block, no text between blocks, an answer (`grading.spans.keeps_format`).
- plan share: mean of |t1|/|τ| over trajectories with code, in tokens, in characters where records have no ids.
- answered: an answer was found. void: neither an executed block nor an answer (SimpleTIR's void turns, for a whole trajectory).
- end/…: share of each end reason; `end/lost` is over all rows, everything else leaves lost ones out.

n counts trajectories.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from ...grading import Graded
from ...grading.spans import Share, keeps_format, plan_share
from ...settings import settings
from ...trajectory import EndReason
from .. import Estimate
from ..intervals import normal_of_shares
from ..samples import Looks, estimate, share


@settings
class Settings:
    """Nothing to set."""


class Look(NamedTuple):
    """The shape of one trajectory."""

    keeps_format: bool
    plan: Share | None
    """None without code."""
    answered: bool
    blocks: int
    end: EndReason


def look(settings: Settings, graded: Graded) -> Look:
    """The shape of one trajectory."""
    said = graded.trajectory
    plan = plan_share(said) if said.blocks else None
    return Look(keeps_format(said), plan, said.answer is not None, len(said.blocks), said.end)


def sum_up(settings: Settings, looks: Looks[Look]) -> list[Estimate]:
    """All of the above."""
    found, n, note = looks.looks, len(looks.seen), looks.note
    plans = [one.plan for one in found if one.plan]
    units = sorted({plan.unit for plan in plans})
    void = sum(not one.blocks and not one.answered for one in found)
    ends = Counter(one.end for one in found)
    return [
        share("format adherence", sum(one.keeps_format for one in found), n, note=note),
        estimate(
            "plan share",
            normal_of_shares([p.value for p in plans]),
            n=len(plans),
            note=f"of {' and '.join(units)}" if units else "",
        ),
        share("answered", sum(one.answered for one in found), n, note=note),
        share("void", void, n, note=note),
        *(share(f"end/{end.value}", ends[end], n) for end in EndReason if end is not EndReason.LOST),
        share(f"end/{EndReason.LOST.value}", looks.lost, n + looks.lost),
    ]
