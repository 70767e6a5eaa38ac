"""How good it is: estimates with intervals, from graded trajectories. Never runs a model; `runs/evaluate.py` does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from ..grading import Graded

if TYPE_CHECKING:
    from .samples import Looks


@dataclass(frozen=True)
class Estimate:
    """One figure with what is needed to read it."""

    name: str
    """For example `avg@16`, `recovery@2`, `grounded`; a group follows a slash: `avg@2/family=gcd`."""
    value: float | None
    """None where it is undefined (nothing to count)."""
    low: float | None = None
    """Lower end of the 95 % interval."""
    high: float | None = None
    n: int = 0
    """What was counted: problems or trajectories, as the metric's docstring says."""
    unit: str = ""
    """Empty for shares."""
    note: str = ""


@dataclass(frozen=True)
class Scorecard:
    """Everything measured on one set of trajectories."""

    name: str
    problems: int
    samples: int
    """Samples a problem."""
    estimates: Sequence[Estimate]
    details: Mapping[str, Any] = field(default_factory=dict)
    """What readers need beside figures: spans that ground answers, counts by end reason."""


class Metric(Protocol):
    """A module of `thincode.evaluation.metrics`: a `Settings` class and these functions.

    A trajectory is looked at once, in whichever process has it, and then forgotten; what was seen of all of them is summed up.
    So a hundred thousand trajectories need neither the memory nor the time of one process.
    """

    def look(self, settings: Any, graded: Graded) -> Any:
        """What this metric needs to know of one trajectory: pure, small, and possible to pickle. Lost ones aren't shown."""

    def sum_up(self, settings: Any, looks: Looks[Any]) -> Sequence[Estimate]:
        """The estimates; no trajectories give undefined values, never an exception.

        What can't be estimated (too few samples) is undefined, and its note says why. A module may also have
        `details(settings, looks)`: a mapping stored in the scorecard for readers.
        """
