"""How long trajectories are: what the model generated, and that with outputs and notices.

Mean tokens after the prompt; characters where records have no ids; the two are never mixed. n counts trajectories; over all,
over correct and over wrong ones. Lost trajectories are left out.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...grading import Graded
from ...grading.spans import length
from ...settings import settings
from .. import Estimate
from ..intervals import normal
from ..samples import estimate, finished, lost_note, split


@settings
class Settings:
    """Nothing to set."""


def measure(settings: Settings, rows: Sequence[Graded]) -> list[Estimate]:
    """`generated` and `generated + outputs`."""
    kept, note = finished(rows), lost_note(rows)
    estimates = []
    for part, found in split(kept).items():
        lengths = [length(row.trajectory) for row in found]
        units = sorted({one.unit for one in lengths}, reverse=True) or ["tokens"]
        for unit in units:
            counted = [one for one in lengths if one.unit == unit]
            for name, values in (
                ("generated", [one.generated for one in counted]),
                ("generated + outputs", [one.total for one in counted]),
            ):
                title = name if unit == units[0] else f"{name} in {unit}"
                estimates.append(estimate(f"{title}{part}", normal(values), n=len(values), unit=unit, note=note))
    return estimates
