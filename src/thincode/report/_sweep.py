"""A sweep's folder → view values: each arm is a checkpoint with figures over seeds, and has curves that are means of seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import DataError
from ._read import Checkpoint, Curve, Figure, Row, Run, checkpoint_of, figure_of, read_run

RESULT = "sweep.json"


def read_sweep(folder: Path, found: Mapping[str, Any]) -> Run:
    """The sweep in `folder`, whose `sweep.json` holds `found`.

    Raises:
        DataError: a run that it names is not there.
    """
    arms: Sequence[Mapping[str, Any]] = found.get("arms") or []
    if not arms:
        raise DataError(f"{folder / RESULT}: no arm has a finished run; go on with thincode sweep … --resume")
    runs = {arm["name"]: [read_run(folder / place) for place in arm["folders"]] for arm in arms}
    first = runs[arms[0]["name"]][0]
    timing: dict[str, float] = {}
    for run in (run for of_arm in runs.values() for run in of_arm):
        for step, seconds in run.timing.items():
            timing[step] = timing.get(step, 0.0) + seconds
    return Run(
        folder=folder,
        name=first.name,
        recipe=first.recipe,
        environment=first.environment,
        timing=timing,
        funnel={},
        curves=(),
        checkpoints=[_checkpoint(folder, arm, number % 7) for number, arm in enumerate(arms)],
        comparisons=_comparisons(found.get("differences") or ()),
        begun=first.begun,
        missing=(),
        arms={name: _means([run.curves for run in of_arm]) for name, of_arm in runs.items()},
    )


def _checkpoint(folder: Path, arm: Mapping[str, Any], style: int) -> Checkpoint:
    """Figures over seeds; the trajectories that one can read, and what is marked in them, are of the first seed."""
    card = arm["scorecard"]
    read = checkpoint_of(folder / arm["evaluations"][0])
    figures = {figure.name: figure for figure in map(figure_of, card["estimates"]) if figure}
    return Checkpoint(
        key=arm["name"],
        label=arm["name"],
        folder=read.folder,
        problems=card["problems"],
        samples=card["samples"],
        figures=figures,
        details=read.details,
        style=style,
    )


def _comparisons(differences: Sequence[Mapping[str, Any]]) -> dict[str, list[Figure]]:
    found: dict[str, list[Figure]] = {}
    for one in differences:
        for where in ("over seeds", "over problems"):
            if (figure := figure_of({**one.get(where, {}), "name": f"{one['arm']} over {one['against']}"})) is not None:
                found.setdefault(where, []).append(figure)
    return found


def _means(seeds: Sequence[Sequence[Curve]]) -> list[Curve]:
    """Each loop's curve, the mean of the seeds at every step that they have."""
    names = dict.fromkeys(curve.name for curves in seeds for curve in curves)
    found = []
    for name in names:
        same = [curve for curves in seeds for curve in curves if curve.name == name]
        rows = _mean_rows([curve.rows for curve in same])
        found.append(Curve(name, rows, _mean_rows([curve.validation for curve in same])))
    return found


def _mean_rows(seeds: Sequence[Sequence[Row]]) -> list[Row]:
    by_step: dict[int, list[Row]] = {}
    for row in (row for rows in seeds for row in rows):
        by_step.setdefault(row.step, []).append(row)
    return [Row(rows[0].stage, step, _mean(rows)) for step, rows in sorted(by_step.items())]


def _mean(rows: Sequence[Row]) -> dict[str, float]:
    names = dict.fromkeys(name for row in rows for name in row.figures)
    values = {name: [row.figures[name] for row in rows if name in row.figures] for name in names}
    return {name: sum(found) / len(found) for name, found in values.items()}
