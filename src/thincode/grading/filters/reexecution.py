"""Keep trajectories whose blocks print the same when they are run again, in a fresh session with another seed.

The loop runs them and records what came out (`Graded.rerun`); this file only judges. What is dropped here depends on chance,
on time, or on a machine's state; a student would learn to trust it.
"""

from __future__ import annotations

from ...settings import settings
from .. import Graded, Verdict

RERUNS = True
"""Tells the loop that blocks must be run again before this filter is asked."""


@settings
class Settings:
    """Nothing to set."""


def judge(settings: Settings, graded: Graded) -> Verdict:
    """Keep if every output came again to the letter; a trajectory that was not run again can't be judged and is dropped."""
    if graded.rerun is None:
        return Verdict(False, "not run again")
    if graded.rerun.lost:
        return Verdict(False, "lost when run again")
    if graded.rerun.same < len(graded.trajectory.blocks):
        return Verdict(False, "a block prints something else when run again")
    return Verdict(True, "prints the same when run again")
