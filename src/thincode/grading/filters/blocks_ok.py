"""Keep trajectories whose blocks all ran without error: ThinC's filter (ii).

`error` and `limit` both fail. A `lost` block says nothing about the code, but a trajectory that holds one can't be judged
and is dropped under a reason of its own; the sample should be run again. A trajectory without blocks passes: see `min_blocks`.
"""

from __future__ import annotations

from ...settings import settings
from ...trajectory import BlockStatus
from .. import Graded, Verdict


@settings
class Settings:
    """Nothing to set."""


def judge(settings: Settings, graded: Graded) -> Verdict:
    """Keep if no block ended in `error`, `limit` or `lost`; the first kind found in that order is the reason."""
    found = {segment.block.status for segment in graded.trajectory.blocks if segment.block}
    for status, reason in (
        (BlockStatus.ERROR, "a block ended in error"),
        (BlockStatus.LIMIT, "a block hit a limit"),
        (BlockStatus.LOST, "a block was lost"),
    ):
        if status in found:
            return Verdict(False, reason)
    return Verdict(True, "every block ok")
