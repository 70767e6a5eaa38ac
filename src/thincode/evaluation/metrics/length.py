"""How long trajectories are: what the model generated, and that with outputs and notices.

Mean tokens after the prompt; characters where records have no ids; the two are never mixed. n counts trajectories; over all,
over correct and over wrong ones. Lost trajectories are left out.
"""

from __future__ import annotations

from ...grading import Graded
from ...grading.spans import Length, length
from ...settings import settings
from .. import Estimate
from ..intervals import normal
from ..samples import Looks, estimate


@settings
class Settings:
    """Nothing to set."""


def look(settings: Settings, graded: Graded) -> Length:
    """How long one trajectory is."""
    return length(graded.trajectory)


def sum_up(settings: Settings, looks: Looks[Length]) -> list[Estimate]:
    """`generated` and `generated + outputs`."""
    estimates = []
    for part, lengths in looks.split().items():
        units = sorted({one.unit for one in lengths}, reverse=True) or ["tokens"]
        for unit in units:
            counted = [one for one in lengths if one.unit == unit]
            for name, values in (
                ("generated", [one.generated for one in counted]),
                ("generated + outputs", [one.total for one in counted]),
            ):
                title = name if unit == units[0] else f"{name} in {unit}"
                estimates.append(estimate(f"{title}{part}", normal(values), n=len(values), unit=unit, note=looks.note))
    return estimates
