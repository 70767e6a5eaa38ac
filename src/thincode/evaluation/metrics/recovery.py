"""Recovery@k (ThinC): among trajectories whose first k blocks all failed, the share that ends correct.

D_k = trajectories with at least k executed blocks of which the first k ended in `error` or `limit`; D_{k+1} ⊆ D_k. The value is
Σ correct / |D_k|, pooled over problems and samples; the interval is Wilson's; n = |D_k|; undefined where it is 0. Lost
trajectories, and those with a lost block among the first k, are left out.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...grading import Graded
from ...settings import settings
from ...trajectory import BlockStatus
from .. import Estimate
from ..samples import finished, lost_note, share


@settings
class Settings:
    """How deep to look."""

    deepest: int = 5
    limits_count: bool = True
    """Whether a block we stopped counts as failed."""


def measure(settings: Settings, rows: Sequence[Graded]) -> list[Estimate]:
    """recovery@1 … recovery@deepest."""
    failed = {BlockStatus.ERROR, BlockStatus.LIMIT} if settings.limits_count else {BlockStatus.ERROR}
    kept, note = finished(rows), lost_note(rows)
    statuses = [([s.block.status for s in row.trajectory.blocks if s.block], row.grade.correct) for row in kept]
    estimates = []
    for k in range(1, settings.deepest + 1):
        ended = [correct for found, correct in statuses if len(found) >= k and set(found[:k]) <= failed]
        estimates.append(share(f"recovery@{k}", sum(ended), len(ended), note=note))
    return estimates
