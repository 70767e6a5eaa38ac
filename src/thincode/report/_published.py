"""Published figures as tables, with this run's own beside them where it measured the same thing."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from ..settings import read_yaml
from ._charts import compact
from ._figures import Cell, Table
from ._read import Checkpoint, Figure, Run


@dataclass(frozen=True)
class Stated:
    """One table of published figures."""

    title: str
    source: str
    """Where it stands and by which protocol."""
    table: Table
    compared: bool
    """Whether this run has figures of its own in it."""


def published(run: Run | None = None) -> list[Stated]:
    """The tables of `recipes/published.yaml`, those with figures of this run first."""
    path = resources.files("thincode") / "recipes" / "published.yaml"
    raw = read_yaml(path.read_text(encoding="utf-8"), place="published.yaml")
    tables = [_stated(table, run.checkpoints if run else ()) for table in raw["tables"]]
    return sorted(tables, key=lambda stated: not stated.compared)


def _stated(table: Mapping[str, Any], checkpoints: Sequence[Checkpoint]) -> Stated:
    rows: list[tuple[str, Sequence[Cell]]] = [
        (row["system"], [Cell("–" if value is None else str(value)) for value in row["values"]])
        for row in table["rows"]
    ]
    head = ["System", *table["columns"]]
    ours = []
    if "figures" in table:
        for c in checkpoints:
            found = [_measured(c, name) for name in table["figures"]]
            if any(figure and figure.value is not None for figure in found):
                ours.append((c.label, [_cell(figure) for figure in found]))
    for c in checkpoints if any("figure" in row for row in table["rows"]) else ():
        found = [_measured(c, row.get("figure")) for row in table["rows"]]
        if any(figure and figure.value is not None for figure in found):
            head.append(c.label)
            rows = [(name, [*cells, _cell(figure)]) for (name, cells), figure in zip(rows, found, strict=True)]
    notes = "; ".join(f"{row['system']}: {row['note']}" for row in table["rows"] if "note" in row)
    compared = bool(ours) or len(head) > 1 + len(table["columns"])
    if ours:
        rows = [("Measured here", ()), *ours, ("Published", ()), *rows]
    return Stated(table["title"], f"{table['source']}. {table['protocol']}.", Table(head, rows, notes), compared)


def _measured(checkpoint: Checkpoint, name: str | None) -> Figure | None:
    """The figure of that name, or the average over samples of the benchmark of that name."""
    if name is None or name in checkpoint.figures:
        return checkpoint.figures.get(name or "")
    pattern = re.compile(rf"{re.escape(name)}(_\w+)?/avg@\d+|avg@\d+/benchmark={re.escape(name)}(_\w+)?")
    return next((figure for key, figure in checkpoint.figures.items() if pattern.fullmatch(key)), None)


def _cell(figure: Figure | None) -> Cell:
    """In percent without a sign, as the published ones stand."""
    if figure is None or figure.value is None:
        return Cell("–")
    if figure.unit:
        return Cell(compact(figure.value), tip=f"n = {figure.n:,}")
    sure = figure.low is not None and figure.high is not None
    small = f"[{100 * (figure.low or 0):.1f}, {100 * (figure.high or 0):.1f}]" if sure else ""
    return Cell(f"{100 * figure.value:.1f}", small, f"n = {figure.n:,}")
