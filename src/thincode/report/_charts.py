"""Values → Vega-Lite specifications → SVG: curves, intervals, bars, and accuracy against something.

Every chart has axes with their units. No mark is told by color alone: marks differ in shape too, and each says its value,
interval and count when one points at it (`data-tip`, which the page's script shows).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from ._vega import draw

Text = Callable[[float], str]
Spec = dict[str, Any]
SHAPES = ("circle", "square", "diamond", "triangle-up")
MOST_CHARS = 36
"""Of a row's name."""
COLORS = tuple(f"var(--c{number})" for number in range(8))


@dataclass(frozen=True)
class Mark:
    """One value at a place, with its interval."""

    x: float
    y: float | None
    """None where it is undefined; said, not drawn."""
    low: float | None = None
    high: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Series:
    """Marks that belong together; `style` picks color and shape."""

    label: str
    marks: Sequence[Mark]
    style: int = 0
    dots: bool = False
    """Draw a mark at each value."""


@dataclass(frozen=True)
class Bar:
    """One labelled bar."""

    label: str
    value: float
    text: str
    style: int = 0


def percent(value: float) -> str:
    """A share to a tenth of a percent, finer below one percent."""
    if 0 < abs(value) < 0.01:
        return f"{100 * value:.2g}%"
    return f"{100 * value:.1f}%" if 0 < abs(value) < 1 else f"{100 * value:g}%"


def compact(value: float) -> str:
    """Three figures, and k or M for thousands and millions."""
    size = abs(value)
    for unit, scale in (("M", 1e6), ("k", 1e3)):
        if size >= 10 * scale or (unit == "M" and size >= scale):
            return f"{value / scale:.3g}{unit}"
    if size >= 1000:
        return f"{value:,.0f}"
    if size and size < 0.001:
        return f"{value:.0e}".replace("e-0", "e−")
    return f"{value:.3g}"


def signed(value: float) -> str:
    """A difference to a tenth."""
    return f"{value:+.1f}".replace("-", "−") if value else "0"


def smooth(values: Sequence[float], window: int) -> list[float]:
    """Centered moving mean; the window shrinks at the ends."""
    sums = [0.0]
    for value in values:
        sums.append(sums[-1] + value)
    half = window // 2
    ends = [(max(0, i - half), min(len(values), i + half + 1)) for i in range(len(values))]
    return [(sums[end] - sums[start]) / (end - start) for start, end in ends]


@dataclass(frozen=True)
class Chart:
    """A drawing, and the names of its series with their styles where it has several."""

    svg: Markup
    legend: Sequence[tuple[str, int]] = ()


def lines(
    title: str,
    series: Sequence[Series],
    *,
    x_label: str,
    y_label: str,
    text: Text = compact,
    boundaries: Sequence[tuple[float, str]] = (),
    x_ticks: Sequence[float] = (),
    log2_x: bool = False,
    zero: bool = True,
    size: tuple[float, float] = (280, 160),
) -> Chart:
    """Curves over a common x axis.

    Where a curve is dense, a faint raw line stands behind a smoothed one. `boundaries` are (x, name) of vertical lines, for
    stages; `x_ticks` the x values that are measured, else round ones are chosen; `zero` keeps 0 on the y axis.
    """
    shown = _shown(series)
    staged = boundaries if len(boundaries) > 1 else ()
    x = _axis("x", x_label, format=".12~g" if x_ticks else ",.6~g", labelOverlap=True)
    x["axis"] |= {"values": list(x_ticks)} if x_ticks else {"tickCount": 5}
    x["scale"] = {"type": "log", "base": 2} if log2_x else {"zero": False, "nice": False}
    x["scale"] |= {"padding": 12 if x_ticks else 0}
    y = _axis("y", y_label, format=_format(_ends(shown), text), grid=True, tickCount=4)
    y["scale"] = {"zero": zero} | ({} if any(_ends(shown)) else {"domain": [0, 1]})
    raw, soft = [], []
    for one in shown:
        for part, run in enumerate(_runs(one, [place for place, _ in staged])):
            # Curves of one hue are told apart by their parts, so that a jump between stages is not drawn as a slope.
            items = [_item(one, mark, text) | {"part": f"{one.label} {part}"} for mark in run]
            window = len(one.marks) // 20 * 2 + 1 if len(one.marks) > 40 and not one.dots else 1
            raw += items if window > 1 else []
            smoothed = smooth([mark.y or 0.0 for mark in run], window)
            soft += [item | {"y": value} for item, value in zip(items, smoothed, strict=True)]
    layers = [
        *_stages(staged, x),
        _layer(raw, {"type": "line", "strokeWidth": 1, "opacity": 0.35}, x=x, y=y, **HUE, detail={"field": "part"}),
        _layer(soft, {"type": "line", "strokeWidth": 2}, x=x, y=y, **HUE, detail={"field": "part"}),
    ]
    for place, one in enumerate(shown):
        # Marks that share an x would hide each other's whiskers.
        dodge = 6 * (place - (len(shown) - 1) / 2) if x_ticks else 0
        if one.dots or len(one.marks) == 1:
            layers += _dots([_item(one, mark, text) for mark in one.marks], x, y, xOffset=dodge)
    return _chart(title, layers, shown, size, "chart half" if size[0] > 300 else "chart")


def intervals(
    title: str, rows: Sequence[str], series: Sequence[Series], *, x_label: str, text: Text = percent, width: float = 470
) -> Chart:
    """Rows of values with their 95 % whiskers; `Mark.x` is the row."""
    shown = _shown(series)
    alone = len(series) == 1 or all(len(one.marks) == 1 for one in series)
    names = _distinct(rows)
    items = [
        _item(one, mark, text) | {"row": names[int(mark.x)], "lane": lane}
        for lane, one in enumerate(shown)
        for mark in one.marks
        if mark.y is not None
    ]
    x = _axis("y", x_label, format=_format(_ends(shown), text), grid=True, tickCount=6, domain=False)
    place: Spec = {"y": _rows(names)}
    if not alone:
        place["yOffset"] = {"field": "lane", "type": "nominal", "scale": {"paddingOuter": 0.7}}
    layers = [
        _layer(
            items,
            {"type": "rule", "strokeWidth": 2, "opacity": 0.55},
            x=x | {"field": "low"},
            x2={"field": "high"},
            **HUE,
            **place,
        ),
        _layer(items, DOT, x=x, **HUE, **SHAPE, **TIP, **place),
    ]
    if alone:
        layers.append(_layer(items, SAID, x=x | {"field": "high"}, text={"field": "said"}, **place))
        undefined = [
            {"row": names[int(m.x)], "said": f"undefined {m.note}"} for s in series for m in s.marks if m.y is None
        ]
        quiet = SAID | {"color": "var(--quiet)", "fontWeight": "normal"}
        layers.append(_layer(undefined, quiet, x={"value": 0}, text={"field": "said"}, **place))
    pitch = 30 if alone else 14 + 10 * len(shown)
    return _chart(title, layers, [] if alone else shown, (width, pitch * max(len(rows), 1)), "chart wide")


def bars(title: str, rows: Sequence[Bar], *, x_label: str, width: float = 470) -> Chart:
    """Horizontal bars from 0, each with its text at the end."""
    names = _distinct([row.label for row in rows])
    items = [
        {"row": name, "y": row.value, "said": row.text, "color": COLORS[row.style], "tip": f"{row.label}: {row.text}"}
        for name, row in zip(names, rows, strict=True)
    ]
    x = _axis("y", x_label, format=_format([row.value for row in rows], compact), tickCount=5)
    layers = [
        _layer(items, {"type": "bar", "cornerRadiusEnd": 2, "aria": True}, x=x, y=_rows(names, gap=0.3), **HUE, **TIP),
        _layer(items, SAID, x=x, y=_rows(names, gap=0.3), text={"field": "said"}),
    ]
    return _chart(title, layers, [], (width, 27 * max(len(rows), 1)), "chart wide")


def split(title: str, parts: Sequence[Bar], *, x_label: str, width: float = 620) -> Chart:
    """One bar split into shares."""
    ends = list(itertools.accumulate((part.value for part in parts), initial=0.0))
    items = [
        {"y": start, "high": end, "color": COLORS[part.style], "tip": f"{part.label}: {part.text}"}
        for part, (start, end) in zip(parts, itertools.pairwise(ends), strict=True)
    ]
    x = _axis("y", x_label, tickCount=6) | {"scale": {"nice": False}}
    mark = {"type": "bar", "stroke": "var(--paper)", "strokeWidth": 1.5, "cornerRadius": 2, "aria": True}
    svg = _chart(
        title, [_layer(items, mark, x=x, x2={"field": "high"}, **HUE, **TIP)], [], (width, 26), "chart wide"
    ).svg
    return Chart(svg, [(part.label, part.style) for part in parts])


def scatter(
    title: str,
    series: Sequence[Series],
    *,
    x_label: str,
    y_label: str,
    text: Text = percent,
    x_text: Text = compact,
    joined: bool = True,
    size: tuple[float, float] = (420, 230),
) -> Chart:
    """One mark a series, joined in order by a faint line where the order means something."""
    shown = [one for one in _shown(series) if one.marks[0].y is not None]
    items = [
        item | {"place": place, "tip": f"{item['tip']} at {x_text(one.marks[0].x)}"}
        for place, one in enumerate(shown)
        for item in [_item(one, one.marks[0], text)]
    ]
    x = _axis("x", x_label, format=_format([one.marks[0].x for one in shown], x_text), tickCount=5) | {
        "scale": {"zero": True}
    }
    y = _axis("y", y_label, format=_format(_ends(shown), text), grid=True, tickCount=5)
    way = {"type": "line", "strokeWidth": 1, "color": "var(--quiet)", "opacity": 0.5}
    layers = [_layer(items if joined else [], way, x=x, y=y, order={"field": "place"}), *_dots(items, x, y)]
    return _chart(title, layers, shown, size, "chart half")


# --- parts ------------------------------------------------------------------------------------------------------------

HUE: Spec = {"color": {"field": "color", "type": "nominal", "scale": None}}
SHAPE: Spec = {"shape": {"field": "shape", "type": "nominal", "scale": None}}
TIP: Spec = {"description": {"field": "tip"}}
DOT: Spec = {"type": "point", "filled": True, "opacity": 1, "size": 70, "aria": True}
SAID: Spec = {"type": "text", "align": "left", "dx": 9, "fontWeight": 600, "color": "var(--ink)"}


def _chart(title: str, layers: Sequence[Spec], legend: Sequence[Series], size: tuple[float, float], name: str) -> Chart:
    filled = [layer for layer in layers if layer["data"]["values"]]
    spec = {"width": size[0], "height": size[1], "layer": filled or [_layer([{}], {"type": "text", "text": "no data"})]}
    names = [(one.label, one.style) for one in legend] if len(legend) > 1 else []
    return Chart(draw(spec, title=title, name=name), names)


def _layer(items: Sequence[Spec], mark: Spec, **encoding: Spec) -> Spec:
    return {"data": {"values": list(items)}, "mark": mark, "encoding": encoding}


def _axis(field: str, title: str, **axis: Any) -> Spec:
    return {"field": field, "type": "quantitative", "title": title, "axis": axis}


def _rows(names: Sequence[str], *, gap: float = 0.0) -> Spec:
    axis = {"labelColor": "var(--ink)", "labelFontSize": 12, "labelPadding": 8}
    scale = {"domain": list(names), "paddingInner": gap}
    return {"field": "row", "type": "nominal", "title": None, "sort": None, "scale": scale, "axis": axis}


def _dots(items: Sequence[Spec], x: Spec, y: Spec, **mark: Any) -> list[Spec]:
    """Marks with their whiskers."""
    sure = [item for item in items if item["low"] != item["high"]]
    whisker = {"type": "rule", "strokeWidth": 2, "opacity": 0.55}
    return [
        _layer(sure, whisker | mark, x=x, y=y | {"field": "low"}, y2={"field": "high"}, **HUE),
        _layer([item for item in items if item["y"] is not None], DOT | mark, x=x, y=y, **HUE, **SHAPE, **TIP),
    ]


def _stages(boundaries: Sequence[tuple[float, str]], x: Spec) -> list[Spec]:
    """Dashed lines where stages begin, their names above."""
    items = [{"x": place, "name": name} for place, name in boundaries]
    rule = {"type": "rule", "strokeDash": [3, 3], "color": "var(--quiet)", "opacity": 0.7}
    name = {"type": "text", "align": "left", "dx": 2, "baseline": "bottom", "color": "var(--quiet)", "fontSize": 10}
    return [_layer(items, rule, x=x), _layer(items, name, x=x, y={"value": -2}, text={"field": "name"})]


def _item(one: Series, mark: Mark, text: Text) -> Spec:
    """A mark as a row of data; without an interval it is its own."""
    y = mark.y
    sure = y is not None and mark.low is not None and mark.high is not None
    low, high = (mark.low, mark.high) if sure else (y, y)
    tip = f"{one.label}: {'undefined' if y is None else text(y)}"
    if sure and mark.low is not None and mark.high is not None:
        tip += f" [{text(mark.low)}, {text(mark.high)}]"
    return {
        "x": mark.x,
        "y": y,
        "low": low,
        "high": high,
        "said": "" if y is None else text(y),
        "tip": f"{tip} {mark.note}".strip(),
        "color": COLORS[one.style % len(COLORS)],
        "shape": SHAPES[one.style % len(SHAPES)],
    }


def _runs(one: Series, breaks: Sequence[float]) -> list[list[Mark]]:
    """The marks of one curve, apart where a stage begins: what jumps there must not be smoothed away."""
    marks = [mark for mark in one.marks if mark.y is not None]
    edges = [-math.inf, *([] if one.dots else sorted(breaks)), math.inf]
    runs = ([mark for mark in marks if start <= mark.x < end] for start, end in itertools.pairwise(edges))
    return [run[:: max(1, len(run) // 400)] for run in runs if run]


def _shown(series: Sequence[Series]) -> list[Series]:
    return [one for one in series if any(mark.y is not None for mark in one.marks)]


def _ends(series: Sequence[Series]) -> list[float]:
    return [
        value for one in series for mark in one.marks for value in (mark.y, mark.low, mark.high) if value is not None
    ]


def _format(values: Sequence[float], text: Text) -> str:
    """How d3 writes round values of an axis."""
    if text is signed:
        return "+~g"
    if text is percent:
        return ".4~p"
    return "~s" if max(map(abs, values), default=0) >= 10_000 else ",.6~g"


def _distinct(names: Sequence[str]) -> list[str]:
    """Names of rows, not too long; two that read alike stay two."""
    seen: dict[str, int] = {}
    found = []
    for whole in names:
        name = whole if len(whole) <= MOST_CHARS else f"{whole[: MOST_CHARS - 1]}…"
        seen[name] = seen.get(name, 0) + 1
        found.append(name + "\u200b" * (seen[name] - 1))
    return found
