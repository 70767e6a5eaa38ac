"""Records to estimates: measure one set of trajectories, write and read what was found."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from .. import atomic
from ..errors import DataError
from ..grading import Graded
from ..grading.answers import same_answer
from ..settings import Kind
from . import Estimate, Scorecard
from .samples import Row, looks_of, row_of

VERSION = 1


class Looked(NamedTuple):
    """One trajectory after every metric has looked at it."""

    row: Row
    end: str
    grade: str
    looks: tuple[Any, ...]
    """One for each metric, in their order; None for a lost trajectory."""


def look(graded: Graded, metrics: Sequence[Kind]) -> Looked:
    """Show one trajectory to every metric."""
    row = row_of(graded)
    looks = tuple(None if row.lost else kind.module.look(kind.settings, graded) for kind in metrics)
    return Looked(row, graded.trajectory.end.value, graded.grade.reason.value, looks)


def sum_up(looked: Sequence[Looked], metrics: Sequence[Kind], *, name: str) -> Scorecard:
    """Everything the metrics say of trajectories they have looked at, in any order.

    Args:
        looked: the trajectories of one system.
        metrics: the kinds that looked, in the same order.
        name: what the scorecard is of.
    """
    looked = sorted(looked, key=lambda one: one.row.place)
    rows = [one.row for one in looked]
    estimates: list[Estimate] = []
    details: dict[str, Any] = {
        "rows": len(rows),
        "ends": _counts(one.end for one in looked),
        "grades": _counts(one.grade for one in looked if not one.row.lost),
    }
    for index, kind in enumerate(metrics):
        looks = looks_of(rows, (one.looks[index] for one in looked))
        estimates += kind.module.sum_up(kind.settings, looks)
        if hasattr(kind.module, "details"):
            details.update(kind.module.details(kind.settings, looks))
    samples = Counter(row.problem for row in rows if not row.lost)
    return Scorecard(name, len(samples), max(samples.values(), default=0), tuple(estimates), details)


def measure(graded: Iterable[Graded], metrics: Sequence[Kind], *, name: str) -> Scorecard:
    """`look` at each trajectory, then `sum_up`."""
    return sum_up([look(one, metrics) for one in graded], metrics, name=name)


def _counts(reasons: Any) -> dict[str, int]:
    return dict(sorted(Counter(reasons).items()))


def write(scorecard: Scorecard, path: Path) -> None:
    """As JSON, whole or not at all."""
    atomic.write_json(path, {"version": VERSION, **dataclasses.asdict(scorecard)})


def read(path: Path) -> Scorecard:
    """What `write` wrote.

    Raises:
        DataError: the file is missing, no scorecard, or of a newer version.
    """
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        version = raw.pop("version")
        if version != VERSION:
            raise DataError(
                f"{path}: scorecard version {version}, this thincode reads {VERSION}; upgrade, or evaluate again"
            )
        return Scorecard(**{**raw, "estimates": tuple(Estimate(**one) for one in raw["estimates"])})
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise DataError(f"{path}: no scorecard ({error}); evaluate the run to write one") from None


def swap_partners(rows: Sequence[Graded], *, seed: int, tag: str = "family") -> list[int | None]:
    """For "causal use of outputs": whose outputs each trajectory gets instead of its own.

    Args:
        rows: N graded trajectories.
        seed: with the address of a row it decides its donor, whatever the order of the rows.
        tag: a donor has the same value of this problem tag (both may have none).

    Returns:
        N indices into `rows`: a finished trajectory with outputs, of another problem whose gold answer differs; None where
        there is none, or where the row has no outputs to replace.
    """
    rings: dict[str, list[int]] = {}
    for index, row in enumerate(rows):
        if row.trajectory.outputs and not row.trajectory.lost:
            rings.setdefault(row.problem.tags.get(tag, ""), []).append(index)
    for ring in rings.values():
        ring.sort(key=lambda index: rows[index].trajectory.address.seed("donor", seed))
    partners: list[int | None] = []
    for row in rows:
        ring = rings.get(row.problem.tags.get(tag, ""), [])
        usable = bool(ring) and bool(row.trajectory.outputs) and not row.trajectory.lost
        start = row.trajectory.address.seed("swap", seed) % len(ring) if usable else 0
        walk = (ring[(start + step) % len(ring)] for step in range(len(ring) if usable else 0))
        partners.append(next((index for index in walk if _is_donor(rows[index], row)), None))
    return partners


def _is_donor(donor: Graded, row: Graded) -> bool:
    return donor.problem.id != row.problem.id and not same_answer(donor.problem.answer, row.problem.answer)
