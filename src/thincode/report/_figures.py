"""The parts of a section, and how a figure is said: in its unit, with its interval, with its count."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ._charts import Chart, Mark, Series, compact, percent, signed
from ._read import Checkpoint, Figure, Run


@dataclass(frozen=True)
class Cell:
    """One cell of a table: the figure, and in small type how sure it is."""

    text: str
    small: str = ""
    tip: str = ""


@dataclass(frozen=True)
class Table:
    """A table; a row whose cells are empty is a heading."""

    head: Sequence[str]
    rows: Sequence[tuple[str, Sequence[Cell]]]
    caption: str = ""


@dataclass(frozen=True)
class Plot:
    """A chart with its caption."""

    title: str
    chart: Chart
    caption: str = ""


@dataclass(frozen=True)
class Section:
    """One part of the page."""

    id: str
    title: str
    lead: str = ""
    plots: Sequence[Plot] = field(default_factory=tuple)
    tables: Sequence[Table] = field(default_factory=tuple)
    note: str = ""
    more: Sequence[Plot] = field(default_factory=tuple)
    """Charts that stand folded away."""
    folded: Sequence[Table] = field(default_factory=tuple)
    """Tables that do."""


GROUPS = (
    ("Accuracy", r"^(avg@|pass@|maj@|pass\^|accuracy|sd over)"),
    ("Blocks", r"pass|block|flaw|calls|lines|code"),
    ("Form", r"format|plan|answered|void|^end/"),
    ("Length", r"token|length|generated"),
)
"""Groups of the score table, in order; a figure belongs to the first that matches."""
OWN = (
    ("Grounding", r"ground|values shown"),
    ("Recovery", r"recover|inject"),
    ("Outputs replaced", r"causal|swap|replac"),
    ("Failures", r"post.hoc|unverified|role (overlap|similarity)"),
)
"""Groups with a section of their own; they are looked at first."""
NAMES = {
    "grounded": "grounded in an output (G1)",
    "grounded in last output": "grounded in the last (G2)",
    "grounded by computing": "grounded by computing (G3)",
    "grounded by chance": "chance level",
}


def group_of(name: str) -> str:
    """Where a figure belongs on the page."""
    return next((group for group, pattern in (*OWN, *GROUPS) if re.search(pattern, name)), "Other")


def name_of(metric: str) -> str:
    """A metric's name as text."""
    known = NAMES.get(metric)
    return known or re.sub(r"^end/", "ended: ", metric).replace("_", " ").replace("/", ", ")


def said(figure: Figure | None, *, part: str = "value") -> str:
    """A figure, or one end of its interval, in its own unit."""
    value = getattr(figure, part) if figure else None
    if value is None:
        return "undefined" if figure and part == "value" else "–"
    return percent(value) if not figure or not figure.unit else compact(value)


def cell(figure: Figure | None, *, count: bool = False) -> Cell:
    """A figure with its interval."""
    if figure is None:
        return Cell("–")
    sure = figure.low is not None and figure.high is not None
    small = f"[{said(figure, part='low')}, {said(figure, part='high')}]".replace("%", "") if sure else ""
    if count or figure.value is None:
        small = f"{small} n = {figure.n:,}".strip()
    return Cell(said(figure), small, f"n = {figure.n:,}. {figure.note}".strip())


def gain(figure: Figure) -> Cell:
    """A difference: shares in percentage points."""

    def written(value: float | None) -> str:
        if value is None:
            return "undefined"
        return signed(100 * value) if not figure.unit else compact(value)

    sure = figure.low is not None and figure.high is not None
    unit = figure.unit or "points"
    return Cell(
        f"{written(figure.value)} {unit}",
        f"[{written(figure.low)}, {written(figure.high)}]" if sure else "",
        figure.note,
    )


def styles(checkpoints: Sequence[Checkpoint]) -> dict[str, int]:
    """Gray for the base, orange for SFT, light to dark blue for RL; the last is the darkest. Some have their own."""
    found, blues = {}, 0
    for number, checkpoint in enumerate(checkpoints):
        name = checkpoint.label.lower()
        if checkpoint.style is not None:
            found[checkpoint.key] = checkpoint.style
        elif name.startswith("base") and number == 0:
            found[checkpoint.key] = 0
        elif name.startswith("sft"):
            found[checkpoint.key] = 1
        elif number == len(checkpoints) - 1:
            found[checkpoint.key] = 4
        else:
            found[checkpoint.key] = (2, 3, 5)[blues % 3]
            blues += 1
    return found


def headline_metric(run: Run) -> str | None:
    """The figure the page leads with: avg@k with the largest k, else accuracy, else pass@1."""
    names = {f.metric for c in run.checkpoints for f in c.figures.values() if f.group is None}
    averages = sorted((n for n in names if re.fullmatch(r"avg@\d+", n)), key=lambda n: int(n[4:]))
    return next(iter([*reversed(averages), *(n for n in ("accuracy", "pass@1") if n in names)]), None)


def series_of(run: Run, rows: Sequence[str], *, of: Sequence[Checkpoint] | None = None) -> list[Series]:
    """For each checkpoint, or for some of them, the figures named by `rows`, as marks of an `intervals` chart."""
    style = styles(run.checkpoints)
    found = []
    for checkpoint in run.checkpoints if of is None else of:
        figures = [(place, checkpoint.figures.get(name)) for place, name in enumerate(rows)]
        marks = [Mark(place, f.value, f.low, f.high, f"n = {f.n:,}") for place, f in figures if f]
        if marks:
            found.append(Series(checkpoint.label, marks, style[checkpoint.key]))
    return found


def _with_unit(run: Run, name: str) -> str:
    unit = next((c.figures[name].unit for c in run.checkpoints if name in c.figures), "")
    return name_of(name) if not unit or unit in name else f"{name_of(name)}, {unit}"


def figures_table(run: Run, groups: Iterable[str]) -> Table:
    """Overall figures as rows, checkpoints as columns."""
    wanted = list(groups)
    names = list(dict.fromkeys(f.name for c in run.checkpoints for f in c.figures.values() if f.group is None))
    rows: list[tuple[str, Sequence[Cell]]] = []
    for group in wanted:
        inside = [name for name in names if group_of(name) == group]
        rows += [(group, ())] if inside and len(wanted) > 1 else []
        rows += [(_with_unit(run, name), [cell(c.figures.get(name)) for c in run.checkpoints]) for name in inside]
    return Table(["Figure", *(c.label for c in run.checkpoints)], rows)
