"""Training curves: small panels on a common step axis, stages marked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ._charts import Mark, Series, Text, compact, lines, percent
from ._figures import Plot, Section
from ._read import Curve, Run, label


@dataclass(frozen=True)
class Panel:
    """One chart: which logged figures it holds."""

    title: str
    keys: Sequence[tuple[str, str]]
    """(figure, what it is called); a figure that starts with `validation.` is of held-out problems."""
    unit: str
    text: Text = compact
    main: bool = True
    """Shown at once; else folded away."""
    zero: bool = True


PANELS = (
    Panel("Loss", (("loss", "training"), ("validation.loss", "held-out")), "nats a token"),
    Panel("Reward", (("reward_mean", "reward"),), "mean reward"),
    Panel("Accuracy", (("accuracy", "training rollouts"), ("validation.accuracy", "held-out")), "share", percent),
    Panel(
        "Response length",
        (
            ("response_tokens", "generated"),
            ("output_tokens", "outputs"),
            ("validation.response_tokens", "held-out, generated"),
        ),
        "tokens",
    ),
    Panel(
        "Use of code",
        (
            ("code_use", "trajectories with code"),
            ("block_pass_rate", "blocks that ran"),
            ("validation.block_pass_rate", "held-out blocks"),
        ),
        "share",
        percent,
    ),
    Panel("Calls", (("calls", "blocks a trajectory"),), "blocks"),
    Panel(
        "Groups without signal",
        (("zero_right_share", "all right"), ("zero_wrong_share", "all wrong")),
        "share",
        percent,
    ),
    Panel("Truncated and lost", (("truncated_share", "truncated"), ("lost_share", "lost")), "share", percent, False),
    Panel("Clipped tokens", (("clip_high_share", "above"), ("clip_low_share", "below")), "share", percent, False),
    Panel("Ratio", (("ratio_mean", "new ÷ old policy"),), "mean ratio", compact, False, False),
    Panel("Entropy", (("entropy", "entropy"),), "nats", compact, False),
    Panel("Throughput", (("tokens_per_s", "tokens a second"),), "tokens / s", compact, False),
    Panel(
        "Seconds a step",
        (("generate_s", "generate"), ("execute_s", "execute"), ("train_s", "train")),
        "seconds",
        compact,
        False,
    ),
)
CALLED = {"sft": "SFT", "rl": "RL"}
BOUNDARY_NOTE = (
    "Vertical lines mark where a stage begins. A stage may change the budget and the problems, so a jump of the reward at a "
    "line comes from that, not from an update."
)


def training(run: Run) -> Section | None:
    """Curves of SFT and RL."""
    return _arms(run) if run.arms else _loops(run)


def _arms(run: Run) -> Section | None:
    """A chart for each figure, with a line for each arm of a sweep."""
    plots = []
    for loop in dict.fromkeys(curve.name for curves in run.arms.values() for curve in curves):
        for panel in (panel for panel in PANELS if panel.main):
            for key, name in panel.keys:
                title = f"{panel.title.lower()}, {name}" if len(panel.keys) > 1 else panel.title.lower()
                plot = _arms_panel(run, loop, panel, key, f"{CALLED.get(loop, label(loop))}: {title}")
                plots += [plot] if plot else []
    lead = "Every line is one arm, the mean of its seeds at each step."
    return Section("training", "Training", lead, plots) if plots else None


def _arms_panel(run: Run, loop: str, panel: Panel, key: str, title: str) -> Plot | None:
    held_out = key.startswith("validation.")
    series = []
    for number, (arm, curves) in enumerate(run.arms.items()):
        curve = next((curve for curve in curves if curve.name == loop), None)
        points = curve.line(key.removeprefix("validation."), validation=held_out) if curve else []
        if points:
            series.append(Series(arm, [Mark(x, y) for x, y in points], number % 7, dots=held_out))
    if not series:
        return None
    chart = lines(title, series, x_label="step", y_label=panel.unit, text=panel.text, zero=panel.zero)
    return Plot(title, chart)


def _loops(run: Run) -> Section | None:
    plots: list[Plot] = []
    more: list[Plot] = []
    for curve in run.curves:
        called = CALLED.get(curve.name, label(curve.name))
        drawn: set[str] = set()
        for panel in PANELS:
            plot = _panel(curve, panel, called)
            if plot:
                (plots if panel.main else more).append(plot)
            drawn |= {key for key, _ in panel.keys}
        for key in curve.logged():
            if key not in drawn and key not in ("epoch", "wall_s", "time_s"):
                plot = _panel(curve, Panel(key, ((key, key.replace("_", " ")),), "", zero=False), called)
                more += [plot] if plot else []
    if not plots and not more:
        return None
    steps = [f"{curve.rows[-1].step + 1:,} steps of {label(curve.name)}" for curve in run.curves if curve.rows]
    staged = any(len(curve.boundaries) > 1 for curve in run.curves)
    dense = any(len(curve.rows) > 40 for curve in run.curves)
    note = " ".join(
        [
            *([BOUNDARY_NOTE] if staged else []),
            *(
                ["Where a curve is dense, the bold line is a centered moving mean over a tenth of the steps."]
                if dense
                else []
            ),
        ]
    )
    lead = f"The log has {' and '.join(steps)}." if steps else ""
    return Section("training", "Training", lead, plots, (), note, more)


def _panel(curve: Curve, panel: Panel, called: str) -> Plot | None:
    series = []
    for number, (key, name) in enumerate(panel.keys):
        held_out = key.startswith("validation.")
        points = curve.line(key.removeprefix("validation."), validation=held_out)
        if points:
            style = 1 if held_out else (4, 2, 6)[number % 3]
            series.append(Series(name, [Mark(x, y) for x, y in points], style, dots=held_out))
    if not series:
        return None
    title = f"{called}: {panel.title[0].lower()}{panel.title[1:]}"
    boundaries = [(float(step), label(stage)) for step, stage in curve.boundaries]
    chart = lines(
        title, series, x_label="step", y_label=panel.unit, text=panel.text, boundaries=boundaries, zero=panel.zero
    )
    return Plot(title, chart)
