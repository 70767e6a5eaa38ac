"""One system beside another: paired gains, gains by category (CIR, Fig. 7), pass@k of every arm, efficiency (CIR, Table 2)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ._charts import Mark, Series, compact, intervals, lines, percent, scatter, signed
from ._figures import Cell, Plot, Section, Table, cell, gain, headline_metric, name_of, styles
from ._read import Checkpoint, Figure, Run

BLUE = 3


def gains(run: Run) -> list[Table]:
    """Paired differences over all problems, a table for each file they stand in."""
    return [
        Table(
            ["Paired gain", "Gain", "Counted"],
            [
                (f"{where}: {name_of(f.name)}" if where else name_of(f.name), [gain(f), Cell(f"{f.n:,}")])
                for f in figures
                if "bootstrap" not in f.name and "=" not in f.name
            ],
            "Paired by problem; the interval is of the difference.",
        )
        for where, figures in run.comparisons.items()
    ]


def categories(run: Run) -> Section | None:
    """Where the gain comes from: the paired difference inside each group of problems."""
    plots = []
    for where, figures in run.comparisons.items():
        tags = dict.fromkeys(f.group[0] for f in figures if f.group and f.metric == "difference")
        for tag in tags:
            inside = [
                f for f in figures if f.group and f.group[0] == tag and f.metric == "difference" and f.value is not None
            ]
            if len(inside) < 2:
                continue
            inside.sort(key=lambda f: -(f.value or 0))
            marks = [_in_points(place, f) for place, f in enumerate(inside)]
            names = [f.group[1].replace("_", " ") for f in inside if f.group]
            title = f"Gain by {tag.replace('_', ' ')}" + (f", {where}" if where else "")
            label = "gain in percentage points, 95% interval"
            plots.append(Plot(title, intervals(title, names, [Series(tag, marks, BLUE)], x_label=label, text=signed)))
    if not plots:
        return None
    lead = "Where the gain comes from: the difference on the same problems, inside each group of them."
    return Section("categories", "Categories", lead, plots)


def _in_points(place: int, figure: Figure) -> Mark:
    value, low, high = (None if v is None else 100 * v for v in (figure.value, figure.low, figure.high))
    return Mark(place, value, low, high, f"n = {figure.n:,}")


def by_k(run: Run, pattern: str, x_label: str, *, log2: bool = False) -> list[Plot]:
    """One chart for each metric measured at several k; a line for each checkpoint and each arm (`text/pass@4`) of it."""
    style = styles(run.checkpoints)
    names = {f.name for c in run.checkpoints for f in c.figures.values() if f.group is None}
    found: dict[tuple[str, str], dict[str, list[int]]] = {}
    for name in names:
        match = re.fullmatch(rf"(?:(\w+)/)?({pattern})@(\d+)(.*)", name)
        if match and int(match[3]) and match[1] not in ("greedy", "swapped"):
            found.setdefault((match[2], match[4]), {}).setdefault(match[1] or "", []).append(int(match[3]))
    plots = []
    for (before, after), arms in sorted(found.items()):
        ks = sorted({k for of_arm in arms.values() for k in of_arm})
        if len(ks) < 3:
            continue
        series = []
        for c in run.checkpoints:
            for number, arm in enumerate(sorted(arms)):
                prefix = f"{arm}/" if arm else ""
                figures = [(k, c.figures[name]) for k in ks if (name := f"{prefix}{before}@{k}{after}") in c.figures]
                marks = [Mark(k, f.value, f.low, f.high, f"n = {f.n:,}") for k, f in figures]
                if len(marks) > 1:
                    series.append(
                        Series(
                            f"{c.label}, {arm}" if arm else c.label, marks, (style[c.key] + 5 * number) % 7, dots=True
                        )
                    )
        shown = name_of(f"{before}@k{after}")
        shown = shown[0].upper() + shown[1:]
        ticks = ks if len(ks) < 9 else [k for k in ks if not k & (k - 1)]
        chart = lines(
            shown, series, x_label=x_label, y_label="share", text=percent, x_ticks=ticks, log2_x=log2, size=(400, 220)
        )
        plots.append(Plot(shown, chart))
    return plots


def efficiency(run: Run) -> Section | None:
    """Accuracy against tokens, and both as ratios to one reference."""
    metric = headline_metric(run)
    lengths = {
        f.name: f.unit for c in run.checkpoints for f in c.figures.values() if f.unit in ("tokens", "characters")
    }
    # What the model wrote costs; outputs come with it, and parts of the trajectories are another question.
    names = sorted((n for n in lengths if "/" not in n), key=lambda n: (n != "generated", "output" in n))
    if metric is None or not names:
        return None
    pairs = [
        (c, x, y)
        for c in run.checkpoints
        if (x := c.figures.get(names[0])) and (y := c.figures.get(metric)) and x.value is not None
    ]
    if not pairs:
        return None
    style = styles(run.checkpoints)
    series = [Series(c.label, [Mark(x.value or 0, y.value, y.low, y.high)], style[c.key]) for c, x, y in pairs]
    title = "Accuracy against tokens"
    label = f"{lengths[names[0]]} {name_of(names[0])}, mean of a trajectory"
    chart = scatter(title, series, x_label=label, y_label=metric, joined=not run.arms)
    lead = "What an answer costs: up and to the left is better."
    return Section(
        "efficiency", "Efficiency", lead, [Plot(title, chart)], _ratios(pairs, metric, name_of(names[0]), run.what)
    )


def _ratios(pairs: Sequence[tuple[Checkpoint, Figure, Figure]], metric: str, length: str, what: str) -> list[Table]:
    """Accuracy ratio and length ratio to the first checkpoint that solves anything."""
    reference = next(((c, x.value, y.value) for c, x, y in pairs if x.value and y.value), None)
    if reference is None or len(pairs) < 2:
        return []
    first, tokens, accuracy = reference
    rows = [
        (
            c.label,
            [
                cell(y),
                cell(x),
                Cell(f"{compact((y.value or 0) / (accuracy or 1))}" if y.value is not None else "undefined"),
                Cell(f"{compact((x.value or 0) / (tokens or 1))}"),
            ],
        )
        for c, x, y in pairs
    ]
    head = [what.capitalize(), metric, f"Tokens, {length}", "Accuracy ratio", "Length ratio"]
    return [Table(head, rows, f"Ratios to {first.label}.")]
