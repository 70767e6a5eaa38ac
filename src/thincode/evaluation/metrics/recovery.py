"""Recovery@k (ThinC): among trajectories whose first k blocks all failed, the share that ends correct.

D_k = trajectories with at least k executed blocks of which the first k ended in `error` or `limit`; D_{k+1} ⊆ D_k. The value is
Σ correct / |D_k|, pooled over problems and samples; the interval is Wilson's; n = |D_k|; undefined where it is 0. Lost
trajectories, and those with a lost block among the first k, are left out.
"""

from __future__ import annotations

from ...grading import Graded
from ...settings import settings
from ...trajectory import BlockStatus
from .. import Estimate
from ..samples import Looks, share


@settings
class Settings:
    """How deep to look."""

    deepest: int = 5
    limits_count: bool = True
    """Whether a block we stopped counts as failed."""


def look(settings: Settings, graded: Graded) -> int:
    """How many blocks from the first one on failed."""
    failed = {BlockStatus.ERROR, BlockStatus.LIMIT} if settings.limits_count else {BlockStatus.ERROR}
    statuses = [segment.block.status for segment in graded.trajectory.blocks if segment.block]
    return next((number for number, status in enumerate(statuses) if status not in failed), len(statuses))


def sum_up(settings: Settings, looks: Looks[int]) -> list[Estimate]:
    """recovery@1 … recovery@deepest."""
    estimates = []
    for k in range(1, settings.deepest + 1):
        ended = [one.row.correct for one in looks.seen if one.look >= k]
        estimates.append(share(f"recovery@{k}", sum(ended), len(ended), note=looks.note))
    return estimates
