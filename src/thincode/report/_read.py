"""Run folder → view values. Every file may be missing; what is missing is named, never invented."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..errors import DataError, RunFolderError
from ..runlog import FORMAT, read_log
from ..settings import leaves, read_yaml


@dataclass(frozen=True)
class Figure:
    """One estimate as a run folder holds it; see `thincode.evaluation.Estimate`."""

    name: str
    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    unit: str = ""
    note: str = ""

    @property
    def metric(self) -> str:
        """The name without its group: `avg@2` of `avg@2/family=gcd`."""
        return self.name.partition("/")[0]

    @property
    def group(self) -> tuple[str, str] | None:
        """(tag, value) of a figure of one group, None of an overall one."""
        tag, equals, value = self.name.partition("/")[2].partition("=")
        return (tag, value) if equals else None


@dataclass(frozen=True)
class Checkpoint:
    """One evaluated checkpoint."""

    key: str
    """Name of its folder, for example `1-sft`."""
    label: str
    """What readers call it: `Base`, `SFT`, `RL 1`, `Final`."""
    folder: Path
    problems: int = 0
    samples: int = 0
    figures: Mapping[str, Figure] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)
    style: int | None = None
    """Color and shape of its marks; None: by its label."""


@dataclass(frozen=True)
class Row:
    """Figures of one step of training, or of one validation."""

    stage: str
    step: int
    """Counted through all stages, also where the log starts again at 0 in each."""
    figures: Mapping[str, float]


@dataclass(frozen=True)
class Curve:
    """The log of one loop."""

    name: str
    rows: Sequence[Row]
    validation: Sequence[Row]

    @property
    def boundaries(self) -> Sequence[tuple[int, str]]:
        """(first step, name) of each stage, in order."""
        found: dict[str, int] = {}
        for row in self.rows:
            found.setdefault(row.stage, row.step)
        return [(step, stage) for stage, step in found.items()]

    def line(self, key: str, *, validation: bool = False) -> list[tuple[float, float]]:
        """(step, value) where the figure is logged."""
        rows = self.validation if validation else self.rows
        return [(row.step, row.figures[key]) for row in rows if key in row.figures]

    def logged(self) -> list[str]:
        """Names of the figures logged at steps, in order of appearance."""
        return list(dict.fromkeys(key for row in self.rows for key in row.figures))


@dataclass(frozen=True)
class Run:
    """Everything the page shows except trajectories."""

    folder: Path
    name: str
    recipe: Mapping[str, Any]
    environment: Mapping[str, Any]
    timing: Mapping[str, float]
    funnel: Mapping[str, Any]
    curves: Sequence[Curve]
    checkpoints: Sequence[Checkpoint]
    comparisons: Mapping[str, Sequence[Figure]]
    """Paired gains, by the folder they stand in."""
    begun: datetime | None
    """When the resolved recipe was written, by the date of its file."""
    missing: Sequence[str]
    """What a pipeline's folder has and this one lacks."""
    arms: Mapping[str, Sequence[Curve]] = field(default_factory=dict)
    """Of a sweep: the curves of each arm, means over its seeds; its checkpoints are the arms."""

    @property
    def what(self) -> str:
        """What its checkpoints are to readers."""
        return "arm" if self.arms else "checkpoint"

    def facts(self, *names: str) -> Iterator[str]:
        """Values in the environment, then in the recipe, whose last key is one of `names`; nearest to the top first."""
        for source in (self.environment, self.recipe):
            found = [(path.count("."), str(value)) for path, value in leaves(source) if path.split(".")[-1] in names]
            yield from (value for _, value in sorted(found, key=lambda pair: pair[0]) if value not in ("", "None"))


def read_run(folder: Path) -> Run:
    """Read a run folder.

    Raises:
        RunFolderError: no such folder, or nothing of a run in it.
        DataError: a file in it is not what its name says.
    """
    if not folder.is_dir():
        raise RunFolderError(f"{folder}: no such run folder; give the folder that --out named")
    if found := _json(folder / "sweep.json"):
        from ._sweep import read_sweep

        return read_sweep(folder, found)
    curves = [curve for name in ("sft", "rl", "") if (curve := _curve(folder / name / "metrics.jsonl", name))]
    checkpoints = _checkpoints(folder)
    found = {
        "recipe.resolved.yaml": _yaml(folder / "recipe.resolved.yaml"),
        "environment.json": _json(folder / "environment.json"),
        "timing.json": _json(folder / "timing.json"),
        "distill/funnel.json": _json(folder / "distill" / "funnel.json") or _json(folder / "funnel.json"),
        "sft/metrics.jsonl": [c for c in curves if _is_sft(c)],
        "rl/metrics.jsonl": [c for c in curves if not _is_sft(c)],
        "evaluate/*/scorecard.json": [c for c in checkpoints if c.figures],
    }
    if not any(found.values()) and not checkpoints:
        raise RunFolderError(
            f"{folder}: nothing of a run in it; a run folder holds at least one of {', '.join(found)} or trajectories.jsonl"
        )
    if (version := found["environment.json"].get("format", FORMAT)) > FORMAT:
        raise RunFolderError(
            f"{folder}: written by a newer thincode (run format {version}; this one reads up to {FORMAT}); "
            "upgrade: pip install -U thincode"
        )
    recipe = found["recipe.resolved.yaml"]
    return Run(
        folder=folder,
        name=str(recipe.get("name") or folder.resolve().name),
        recipe=recipe,
        environment=found["environment.json"],
        timing={k: float(v) for k, v in found["timing.json"].items() if is_number(v)},
        funnel=found["distill/funnel.json"],
        curves=curves,
        checkpoints=checkpoints,
        comparisons=_comparisons(folder),
        begun=_written_at(folder / "recipe.resolved.yaml"),
        missing=[name for name, value in found.items() if not value],
    )


def read_runs(folders: Sequence[Path]) -> Run:
    """One run, or several beside each other: then checkpoints, curves and gains carry the name of their folder.

    Raises:
        RunFolderError: a folder is missing, has nothing of a run in it, or two have one name.
        DataError: a file is not what its name says.
    """
    runs = [read_run(folder) for folder in folders]
    if len(runs) == 1:
        return runs[0]
    names = [folder.resolve().name for folder in folders]
    if len(set(names)) < len(names):
        raise RunFolderError(f"two run folders are called {max(names, key=names.count)}; name folders that differ")
    named = dict(zip(names, runs, strict=True))
    return replace(
        runs[0],
        name=" and ".join(names),
        recipe={name: run.recipe for name, run in named.items()},
        environment={name: run.environment for name, run in named.items()},
        timing={},
        funnel=next((run.funnel for run in runs if run.funnel), {}),
        curves=[replace(curve, name=f"{name} {curve.name}") for name, run in named.items() for curve in run.curves],
        checkpoints=[
            replace(c, key=f"{name}/{c.key}", label=name if len(run.checkpoints) == 1 else f"{name} {c.label}")
            for name, run in named.items()
            for c in run.checkpoints
        ],
        comparisons={
            f"{name} {where}".strip(): found for name, run in named.items() for where, found in run.comparisons.items()
        },
        missing=[name for name in runs[0].missing if all(name in run.missing for run in runs)],
    )


def _written_at(path: Path) -> datetime | None:
    return datetime.fromtimestamp(path.stat().st_mtime, UTC) if path.is_file() else None


def is_number(value: Any) -> bool:
    """A finite number; booleans are none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < float("inf")


def _is_sft(curve: Curve) -> bool:
    return all(row.stage.startswith("sft") for row in curve.rows)


def _json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError(f"{path}: not JSON ({error}); delete the file or write it again") from None
    if not isinstance(value, dict):
        raise DataError(f"{path}: expected keys and values, found {type(value).__name__}")
    return value


def _yaml(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    value = read_yaml(path.read_text(encoding="utf-8"), place=str(path))
    return value if isinstance(value, dict) else {}


# --- training -------------------------------------------------------------------------------------------------------


def _curve(path: Path, name: str) -> Curve | None:
    rows: list[Row] = []
    validation: list[Row] = []
    stage, last, base = "", 0, 0
    for record in read_log(path):
        if not isinstance(record, Mapping) or not isinstance(record.get("step"), int):
            continue
        now = str(record.get("stage") or name or "steps")
        if now != stage and stage and record["step"] < last - base:
            base = last  # the log of this stage counts from its own start
        stage, last = now, base + record["step"]
        figures = {key: float(value) for key, value in record.items() if key != "step" and is_number(value)}
        if figures:
            rows.append(Row(stage, last, figures))
        if isinstance(record.get("validation"), Mapping):
            held_out = {key: float(value) for key, value in record["validation"].items() if is_number(value)}
            validation.append(Row(stage, last, held_out))
    if not rows and not validation:
        return None
    return Curve(name or (rows or validation)[0].stage.partition("-")[0], rows, validation)


# --- evaluation -----------------------------------------------------------------------------------------------------


def _checkpoints(folder: Path) -> list[Checkpoint]:
    """Those of a pipeline (`evaluate/*/`), of an evaluation (`*/`), or the folder itself."""
    for parent in (folder / "evaluate", folder):
        inside = [p for p in sorted(parent.iterdir(), key=_order) if p.is_dir()] if parent.is_dir() else []
        found = [checkpoint_of(path) for path in inside if (path / "scorecard.json").is_file()]
        if found:
            return found
    whole = any((folder / name).is_file() for name in ("scorecard.json", "trajectories.jsonl"))
    return [checkpoint_of(folder)] if whole else []


def _order(path: Path) -> tuple[int, str]:
    number = re.match(r"\d+", path.name)
    return (int(number[0]) if number else 10**9, path.name)


def checkpoint_of(folder: Path) -> Checkpoint:
    """An evaluation's folder."""
    card = _json(folder / "scorecard.json")
    figures = {figure.name: figure for figure in map(figure_of, card.get("estimates") or []) if figure}
    return Checkpoint(
        key=folder.name,
        label=label(folder.name),
        folder=folder,
        problems=int(card.get("problems") or 0),
        samples=int(card.get("samples") or 0),
        figures=figures,
        details=card.get("details") or {},
    )


def label(name: str) -> str:
    """`2-rl-1` → `RL 1`; `evaluate/2-rl-1` → `Evaluate RL 1`."""
    if "/" in name:
        return " ".join(label(part) for part in name.split("/") if part)
    name = re.sub(r"^\d+-", "", name)
    known = {"sft": "SFT", "rl": "RL"}
    words = [known.get(word, word) for word in name.replace("_", "-").split("-") if word]
    text = " ".join(words) or name
    return text[0].upper() + text[1:] if text else name


def figure_of(raw: Any) -> Figure | None:
    """An estimate as JSON holds it; None where it is none."""
    if not isinstance(raw, Mapping) or not isinstance(raw.get("name"), str):
        return None
    numbers = {key: float(raw[key]) if is_number(raw.get(key)) else None for key in ("value", "low", "high")}
    n = int(raw["n"]) if is_number(raw.get("n")) else 0
    return Figure(raw["name"], **numbers, n=n, unit=str(raw.get("unit") or ""), note=str(raw.get("note") or ""))


def _comparisons(folder: Path) -> dict[str, Sequence[Figure]]:
    found: dict[str, Sequence[Figure]] = {}
    for path in sorted(
        [*folder.glob("comparison.json"), *folder.glob("*/comparison.json"), *folder.glob("*/*/comparison.json")]
    ):
        try:
            raw = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise DataError(f"{path}: not JSON ({error}); delete the file or write it again") from None
        items = raw.get("estimates") if isinstance(raw, Mapping) else raw
        figures = [figure for figure in map(figure_of, items or []) if figure]
        if figures:
            where = path.parent.relative_to(folder).name
            found["" if where == "evaluate" else label(where)] = figures
    return found
