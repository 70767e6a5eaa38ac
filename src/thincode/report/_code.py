"""How much code there is, whether it runs, and what comes of it (ThinC, Fig. 4; CIR, Table 4)."""

from __future__ import annotations

from ._charts import Mark, Series, intervals, scatter
from ._figures import Plot, Section, Table, cell, styles
from ._read import Run

LINES, GROUNDED = "lines of code", "grounded"
PASSES = (
    ("full pass rate", "every block ran"),
    ("final pass rate", "the last block ran"),
    ("block pass rate", "blocks that ran"),
)
PARTS = (("/correct", "correct", 4), ("/wrong", "incorrect", 1))


def code(run: Run) -> Section | None:
    """Use of code against grounding, and the pass rates inside correct and incorrect trajectories."""
    plots = [plot for plot in (_use(run), _passes(run)) if plot]
    tables = [table for table in (_pass_table(run),) if table]
    if not plots and not tables:
        return None
    lead = (
        "Code that carries an answer is long and shows it. A wrong answer whose blocks all ran is an error of reasoning, not of "
        "programming."
    )
    return Section("code", "Code", lead, plots, tables)


def _use(run: Run) -> Plot | None:
    style = styles(run.checkpoints)
    series = []
    for c in run.checkpoints:
        x, y = c.figures.get(LINES), c.figures.get(GROUNDED)
        if x and y and x.value is not None and y.value is not None:
            series.append(Series(c.label, [Mark(x.value, y.value, y.low, y.high, f"n = {y.n:,}")], style[c.key]))
    if not series:
        return None
    title = "Code use against grounding"
    label = "lines of code, mean of a trajectory with code"
    chart = scatter(title, series, x_label=label, y_label="grounded answers", joined=not run.arms)
    return Plot(title, chart, "Whiskers are 95% intervals of the grounded share.")


def _passes(run: Run) -> Plot | None:
    """The last checkpoint that has them."""
    wanted = [name for name, _ in PASSES]
    last = next((c for c in reversed(run.checkpoints) if f"{wanted[0]}/correct" in c.figures), None)
    if last is None:
        return None
    series = []
    for suffix, label, style in PARTS:
        figures = [(place, last.figures.get(name + suffix)) for place, name in enumerate(wanted)]
        series.append(
            Series(label, [Mark(place, f.value, f.low, f.high, f"n = {f.n:,}") for place, f in figures if f], style)
        )
    title = f"Whether code ran, in correct and incorrect trajectories of {last.label}"
    chart = intervals(title, [said for _, said in PASSES], series, x_label="share, 95% interval")
    return Plot(title, chart)


def _pass_table(run: Run) -> Table | None:
    rows = []
    for suffix, label, _ in PARTS:
        for name, said in PASSES:
            if any(name + suffix in c.figures for c in run.checkpoints):
                cells = [cell(c.figures.get(name + suffix), count=True) for c in run.checkpoints]
                rows.append((f"{label}: {said}", cells))
    head = ["Trajectories", *(c.label for c in run.checkpoints)]
    return Table(head, rows, "n counts trajectories with code, in the last rows of each part blocks.") if rows else None
