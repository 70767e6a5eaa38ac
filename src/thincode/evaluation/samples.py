"""Graded rows in a fixed order, grouped by problem, without the lost ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..grading import Graded
from . import Estimate
from .intervals import Interval, wilson


def finished(rows: Iterable[Graded]) -> list[Graded]:
    """Rows that are not lost, ordered by (problem, sample, step, stage): no metric depends on the order it is given."""
    kept = [row for row in rows if not row.trajectory.lost]
    return sorted(kept, key=_place)


def _place(row: Graded) -> tuple[str, int, int, str]:
    address = row.trajectory.address
    return (row.problem.id, address.sample, address.step, address.stage)


def lost_note(rows: Sequence[Graded]) -> str:
    """How many rows were left out, for an estimate's note; empty if none."""
    lost = sum(row.trajectory.lost for row in rows)
    return f"{lost} lost left out" if lost else ""


def by_problem(rows: Iterable[Graded]) -> dict[str, list[Graded]]:
    """Finished rows by problem id; problems and samples in order."""
    grouped: dict[str, list[Graded]] = {}
    for row in finished(rows):
        grouped.setdefault(row.problem.id, []).append(row)
    return grouped


def split(rows: Sequence[Graded]) -> Mapping[str, list[Graded]]:
    """All, the correct and the wrong ones; the keys go behind a metric's name."""
    return {
        "": list(rows),
        "/correct": [row for row in rows if row.grade.correct],
        "/wrong": [row for row in rows if not row.grade.correct],
    }


def share(name: str, hits: int, n: int, *, note: str = "") -> Estimate:
    """A share of n trajectories with its Wilson interval."""
    return estimate(name, wilson(hits, n), n=n, note=note)


def estimate(name: str, interval: Interval, *, n: int, unit: str = "", note: str = "") -> Estimate:
    """An interval as an estimate."""
    return Estimate(name, interval.value, interval.low, interval.high, n, unit, note)
