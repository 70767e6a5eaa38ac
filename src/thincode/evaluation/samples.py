"""What metrics are given: a look at each finished trajectory, in a fixed order, without the lost ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from ..grading import Graded
from . import Estimate
from .intervals import Interval, wilson

L = TypeVar("L")


class Row(NamedTuple):
    """Whose trajectory it was, and whether it was right."""

    problem: str
    sample: int
    step: int
    stage: str
    correct: bool
    lost: bool
    """Our infrastructure failed in it, whether or not the model answered without the interpreter."""
    tags: Mapping[str, str]

    @property
    def place(self) -> tuple[str, int, int, str]:
        """Rows are ordered by it: no metric depends on the order in which trajectories came."""
        return (self.problem, self.sample, self.step, self.stage)


def row_of(graded: Graded) -> Row:
    """What is kept of a trajectory whatever the metrics look for."""
    address = graded.trajectory.address
    return Row(
        graded.problem.id,
        address.sample,
        address.step,
        address.stage,
        graded.grade.correct,
        not graded.trajectory.with_interpreter,
        graded.problem.tags,
    )


class Seen(NamedTuple, Generic[L]):
    """A row and what one metric saw of its trajectory."""

    row: Row
    look: L


@dataclass(frozen=True)
class Looks(Generic[L]):
    """What one metric saw of all trajectories."""

    seen: Sequence[Seen[L]]
    """Finished ones, by `Row.place`."""
    lost: int = 0
    """How many were left out because our infrastructure failed in them."""

    @property
    def note(self) -> str:
        """How many were left out, for an estimate's note; empty if none."""
        return f"{self.lost} lost left out" if self.lost else ""

    @property
    def looks(self) -> list[L]:
        """The looks alone."""
        return [one.look for one in self.seen]

    def by_problem(self) -> dict[str, list[Seen[L]]]:
        """By problem id; problems and samples in order."""
        grouped: dict[str, list[Seen[L]]] = {}
        for one in self.seen:
            grouped.setdefault(one.row.problem, []).append(one)
        return grouped

    def split(self) -> Mapping[str, list[L]]:
        """Looks at all, at the correct and at the wrong ones; the keys go behind a metric's name."""
        return {
            "": self.looks,
            "/correct": [one.look for one in self.seen if one.row.correct],
            "/wrong": [one.look for one in self.seen if not one.row.correct],
        }


def looks_of(rows: Sequence[Row], looks: Iterable[Any]) -> Looks[Any]:
    """One metric's looks, given in the order of `rows`, which are sorted by `Row.place`."""
    seen = [Seen(row, look) for row, look in zip(rows, looks, strict=True) if not row.lost]
    return Looks(seen, len(rows) - len(seen))


def finished(rows: Iterable[Graded]) -> list[Graded]:
    """Trajectories that the interpreter served to their end, by (problem, sample, step, stage)."""
    return sorted((row for row in rows if row.trajectory.with_interpreter), key=lambda row: row_of(row).place)


def by_problem(rows: Iterable[Graded]) -> dict[str, list[Graded]]:
    """Finished trajectories by problem id; problems and samples in order."""
    grouped: dict[str, list[Graded]] = {}
    for row in finished(rows):
        grouped.setdefault(row.problem.id, []).append(row)
    return grouped


def share(name: str, hits: int, n: int, *, note: str = "") -> Estimate:
    """A share of n trajectories with its Wilson interval."""
    return estimate(name, wilson(hits, n), n=n, note=note)


def estimate(name: str, interval: Interval, *, n: int, unit: str = "", note: str = "") -> Estimate:
    """An interval as an estimate."""
    return Estimate(name, interval.value, interval.low, interval.high, n, unit, note)


def next_of_another_problem(rows: Sequence[Seen[L]]) -> list[tuple[Seen[L], Seen[L]]]:
    """Each row with the next one that another problem has; for the last ones there is none. A level of chance asks that."""
    following, pairs = None, []
    for index in range(len(rows) - 1, -1, -1):
        if index + 1 < len(rows) and rows[index + 1].row.problem != rows[index].row.problem:
            following = rows[index + 1]
        if following is not None:
            pairs.append((rows[index], following))
    return pairs[::-1]
