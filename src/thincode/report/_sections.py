"""View values → sections of the page: one sentence that says what was found, then charts and tables."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..runlog import duration
from ..settings import leaves
from ._charts import Bar, Mark, Series, bars, compact, intervals, percent, split
from ._code import code
from ._compared import by_k, categories, efficiency, gains
from ._figures import (
    GROUPS,
    Cell,
    Plot,
    Section,
    Table,
    cell,
    figures_table,
    group_of,
    headline_metric,
    name_of,
    said,
    series_of,
    styles,
)
from ._read import Run, is_number, label
from ._training import training

UNDEFINED = "“undefined” where there was nothing to count."


def result(run: Run) -> Section | None:
    """The headline: one figure from the first checkpoint to the last."""
    metric = headline_metric(run)
    if metric is None:
        return None
    style = styles(run.checkpoints)
    measured = [c for c in run.checkpoints if metric in c.figures]
    series = []
    for place, checkpoint in enumerate(measured):
        f = checkpoint.figures[metric]
        series.append(
            Series(checkpoint.label, [Mark(place, f.value, f.low, f.high, f"n = {f.n:,}")], style[checkpoint.key])
        )
    first, last = measured[0].figures[metric], measured[-1].figures[metric]
    samples = f"{measured[-1].problems:,} problems, {measured[-1].samples:,} samples each"
    lead = f"{measured[-1].label}: {said(last)} {metric} on {samples}."
    lead += f" {last.note.capitalize()}." if last.value is None and last.note else ""
    if run.arms:
        lead = (
            f"{metric} of {len(measured)} arms; each interval is over seeds, of an arm with one seed over its problems."
        )
    elif len(measured) > 1 and first.value is not None and last.value is not None:
        lead = f"{metric} went from {said(first)} ({measured[0].label}) to {said(last)} ({measured[-1].label}) on {samples}."
    text = compact if last.unit else percent
    title = f"{metric} by {run.what}"
    chart = intervals(title, [c.label for c in measured], series, x_label=f"{metric}, 95% interval", text=text)
    plot = Plot(title, chart)
    return Section("result", "Result", lead, [plot], gains(run))


def time_split(run: Run) -> Plot | None:
    """Where the seconds went."""
    total = sum(run.timing.values())
    if total <= 0:
        return None
    steps: dict[str, float] = {}
    for name, seconds in run.timing.items():
        step = label(name.partition("/")[0])
        steps[step] = steps.get(step, 0.0) + seconds
    parts = [
        Bar(name, seconds, f"{duration(seconds)} · {percent(seconds / total)}", number % 6)
        for number, (name, seconds) in enumerate(steps.items())
    ]
    caption = (
        f"{duration(total)} in all: {', '.join(f'{name} {duration(seconds)}' for name, seconds in steps.items())}."
    )
    return Plot("Where the time went", split("Where the time went", parts, x_label="seconds"), caption)


def data(run: Run) -> Section | None:
    """The funnel of distillation."""
    funnel = run.funnel
    if not funnel:
        return None
    dropped = {str(k): v for k, v in dict(funnel.get("dropped") or {}).items() if is_number(v)}
    sampled, kept = funnel.get("sampled") or 0, funnel.get("kept") or 0
    rows = (
        [Bar("problems", funnel["problems"], f"{funnel['problems']:,}", 0)] if is_number(funnel.get("problems")) else []
    )
    rows.append(Bar("trajectories sampled", sampled, f"{sampled:,}", 0))
    for reason, count in sorted(dropped.items(), key=lambda item: -item[1]):
        rows.append(Bar(f"dropped: {reason}", count, f"−{count:,} ({percent(count / sampled) if sampled else '–'})", 6))
    rows.append(Bar("kept", kept, f"{kept:,} ({percent(kept / sampled) if sampled else '–'})", 4))
    sources = {str(k): v for k, v in dict(funnel.get("by_source") or {}).items() if isinstance(v, Mapping)}
    lucky = any("lucky" in v for v in sources.values())
    head = ["Source", "Sampled", "Kept", "Kept share", *(["Lucky"] if lucky else [])]
    table_rows = []
    for name, counts in sorted(sources.items()):
        got, out_of = counts.get("kept") or 0, counts.get("sampled") or 0
        cells = [Cell(f"{out_of:,}"), Cell(f"{got:,}"), Cell(percent(got / out_of) if out_of else "–")]
        table_rows.append((name, [*cells, *([Cell(f"{counts.get('lucky', 0):,}")] if lucky else [])]))
    caption = (
        "Lucky: kept, although the program carries a flaw that happened to print the right answer." if lucky else ""
    )
    return Section(
        "data",
        "Data",
        f"The teacher gave {sampled:,} trajectories; {kept:,} passed every filter.",
        [Plot("What the filters kept", bars("What the filters kept", rows, x_label="problems and trajectories"))],
        [Table(head, table_rows, caption)] if table_rows else [],
        "A trajectory is counted under the first filter that dropped it." if dropped else "",
    )


def scores(run: Run) -> Section | None:
    """Every overall figure of the checkpoints, and the headline by group of problems."""
    if not any(c.figures for c in run.checkpoints):
        return None
    first, *others = (group for group, _ in GROUPS)
    table, folded = figures_table(run, [first]), figures_table(run, [*others, "Other"])
    plots = []
    metric = headline_metric(run)
    tags = dict.fromkeys(
        f.group[0] for c in run.checkpoints for f in c.figures.values() if f.group and f.metric == metric
    )
    for tag in tags:
        names = sorted(
            {
                f.name
                for c in run.checkpoints
                for f in c.figures.values()
                if f.metric == metric and (f.group or ("",))[0] == tag
            }
        )
        if len(names) < 2:
            continue
        rows = [name.partition("=")[2] for name in names]
        title = f"{metric} by {tag.replace('_', ' ')}"
        every = series_of(run, names)
        # Steps between the first and the last checkpoint would hide what changed; more arms than three each other.
        some = every[:3] if run.arms else [*every[:1], *every[1:][-1:]]
        plots.append(Plot(title, intervals(title, rows, some, x_label=f"{metric}, 95% interval")))
    curve = by_k(run, "pass", "samples k", log2=True)
    note = "Intervals are 95%. Tokens, calls and lines are means of a trajectory. A cell's tooltip has its count and its note."
    return Section("scores", "Scores", "", [*plots, *curve], [table], note, folded=[folded] if folded.rows else [])


def grounding(run: Run) -> Section | None:
    """Whether answers stand in what a block printed."""
    lead = (
        "The share of answers whose value some output shows. Small integers stand in many outputs by accident: the chance "
        "level, from answers swapped between problems, is what a rate must be read against."
    )
    return _shares(run, "Grounding", "Answers that an output shows", lead)


def failures(run: Run) -> Section | None:
    """The failures of interleaved reasoning that ThinC names, each beside its chance level."""
    return _shares(
        run,
        "Failures",
        "Failures of reasoning",
        "Code that only confirms what prose had found, constants that prose worked out, prose that retells the next block. "
        "The chance level, from other trajectories, is what a rate must be read against.",
    )


def _shares(run: Run, group: str, title: str, lead: str) -> Section | None:
    """The shares of a group as intervals, all of its figures in a table."""
    names = dict.fromkeys(f.name for c in run.checkpoints for f in c.figures.values() if f.group is None)
    inside = [name for name in names if group_of(name) == group]
    if not inside:
        return None
    units = {f.name for c in run.checkpoints for f in c.figures.values() if f.unit}
    rows = [name for name in inside if "/" not in name and name not in units]
    chart = intervals(title, [name_of(row) for row in rows], series_of(run, rows), x_label="share, 95% interval")
    plots = [Plot(title, chart)] if rows else []
    return Section(group.lower(), group, lead, plots, [figures_table(run, [group])], UNDEFINED)


def causal(run: Run) -> Section | None:
    """What the model does when outputs lie."""
    metric = headline_metric(run)
    swapped = [c for c in run.checkpoints if f"swapped/{metric}" in c.figures]
    if metric is None or not swapped:
        return None
    lead = "Outputs are replaced by another problem's. A model that thinks in code falls; one that derived in prose does not."
    rows = {metric: "its own outputs", f"swapped/{metric}": "another problem's"}
    chart = intervals(
        lead, list(rows.values()), series_of(run, list(rows), of=swapped), x_label=f"{metric}, 95% interval"
    )
    plot = Plot("Accuracy with its own and with another problem's outputs", chart)
    return Section(
        "causal", "Causal use", lead, [plot], [], UNDEFINED, folded=[figures_table(run, ["Outputs replaced"])]
    )


def recovery(run: Run) -> Section | None:
    """What becomes of trajectories whose first blocks failed."""
    names = dict.fromkeys(
        f.name
        for c in run.checkpoints
        for f in c.figures.values()
        if f.group is None and group_of(f.name) == "Recovery"
    )
    if not names:
        return None
    kinds = dict.fromkeys(re.sub(r"@\d+", "@k", name) for name in names)
    rows: list[tuple[str, Sequence[Cell]]] = []
    for kind in kinds:
        rows += [(name_of(kind).capitalize(), ())] if len(kinds) > 1 else []
        inside = sorted((n for n in names if re.sub(r"@\d+", "@k", n) == kind), key=lambda n: (len(n), n))
        rows += [(name_of(n), [cell(c.figures.get(n), count=True) for c in run.checkpoints]) for n in inside]
    lead = "Among trajectories whose first k blocks all failed, the share that ends correct. Counts decide what it is worth."
    plots = by_k(run, ".*recover.*", "first blocks that failed, k")
    table = Table(
        ["Figure", *(c.label for c in run.checkpoints)],
        rows,
        f"{'Intervals over seeds' if run.arms else 'Wilson intervals'}; undefined where no trajectory failed so.",
    )
    return Section("recovery", "Recovery", lead, plots, [table])


def build_sections(run: Run) -> list[Section]:
    """The sections there is something for, in the order of the page."""
    made = (
        result(run),
        training(run),
        data(run),
        scores(run),
        categories(run),
        code(run),
        grounding(run),
        failures(run),
        causal(run),
        recovery(run),
        efficiency(run),
    )
    return [section for section in made if section]


def environment_rows(environment: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Leaves of the environment file."""
    return [(path, str(value)) for path, value in leaves(environment) if path]
