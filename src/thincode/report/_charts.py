"""Inline SVG, made by hand: axes with units, values written at the marks, a title that screen readers say.

Colors are classes (`c0` … `c7`), so that light, dark and print share one drawing; no mark is told by color alone: marks
differ in shape too, and each has its value in text or in a tooltip. Labels may be hostile text; all of it is escaped.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

Text = Callable[[float], str]


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


def _tick(value: float, text: Text) -> str:
    """A round value; shares without the tenths that only measured ones need."""
    if not value:
        return "0"
    return f"{100 * value:.6g}%" if text is percent else text(value)


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


def ticks(low: float, high: float, *, count: int = 4) -> list[float]:
    """Round values from at most `low` to at least `high`."""
    span = (high - low) or abs(high) or 1.0
    raw = span / count
    scale = 10.0 ** math.floor(math.log10(raw))
    step = next(m * scale for m in (1, 2, 2.5, 5, 10) if m * scale >= raw * 0.999)
    first = math.floor(low / step + 1e-9)
    last = math.ceil(high / step - 1e-9)
    return [round(n * step, 12) for n in range(first, max(last, first + 1) + 1)]


def _svg(width: float, height: float, title: str, parts: Sequence[str], *, name: str = "") -> Markup:
    head = f'<svg class="{name}" viewBox="0 0 {width:g} {height:g}" role="img" xmlns="http://www.w3.org/2000/svg">'
    return Markup(f"{head}<title>{escape(title)}</title>{''.join(parts)}</svg>")


def _text(x: float, y: float, text: str, name: str = "", anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{name}" text-anchor="{anchor}">{escape(text)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, name: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{name}"/>'


def _dot(x: float, y: float, style: int, tip: str, size: float = 4.5) -> str:
    """Circle, square, diamond or triangle, by style."""
    r, d = size, 1.3 * size
    shapes = (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r:g}"',
        f'<rect x="{x - r * 0.9:.1f}" y="{y - r * 0.9:.1f}" width="{1.8 * r:.1f}" height="{1.8 * r:.1f}"',
        f'<path d="M{x:.1f} {y - d:.1f}l{d:.1f} {d:.1f}l{-d:.1f} {d:.1f}l{-d:.1f} {-d:.1f}z"',
        f'<path d="M{x:.1f} {y - 1.2 * r:.1f}l{1.2 * r:.1f} {2.1 * r:.1f}h{-2.4 * r:.1f}z"',
    )
    return f'{shapes[style % 4]} class="dot c{style}"><title>{escape(tip)}</title></{shapes[style % 4][1:].split()[0]}>'


def spread(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """The places moved apart to at least `gap`, inside [low, high] where there is room; order kept."""
    order = sorted(range(len(places)), key=lambda i: places[i])
    found = list(places)
    for before, now in itertools.pairwise(order):
        found[now] = max(found[now], found[before] + gap)
    over = (found[order[-1]] - high) if order else 0
    if over > 0:
        limit = high
        for now in reversed(order):
            found[now] = min(found[now], limit)
            limit = found[now] - gap
    return [max(place, low) for place in found]


def smooth(values: Sequence[float], window: int) -> list[float]:
    """Centered moving mean; the window shrinks at the ends."""
    sums = [0.0]
    for value in values:
        sums.append(sums[-1] + value)
    half = window // 2
    ends = [(max(0, i - half), min(len(values), i + half + 1)) for i in range(len(values))]
    return [(sums[end] - sums[start]) / (end - start) for start, end in ends]


# --- charts ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Frame:
    """From values to pixels."""

    left: float
    right: float
    top: float
    bottom: float
    x: tuple[float, float]
    y: tuple[float, float]
    log2_x: bool = False
    inset: float = 0.0
    """Pixels kept free at both ends of the x axis."""

    def px(self, x: float) -> float:
        """Pixel of an x value."""
        low, high, value = ((math.log2(v) if self.log2_x else v) for v in (*self.x, x))
        room = self.right - self.left - 2 * self.inset
        return self.left + self.inset + (value - low) / ((high - low) or 1) * room

    def py(self, y: float) -> float:
        """Pixel of a y value."""
        return self.bottom - (y - self.y[0]) / ((self.y[1] - self.y[0]) or 1) * (self.bottom - self.top)


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
    size: tuple[float, float] = (360, 220),
) -> Markup:
    """Curves over a common x axis; a value is written where its curve reaches the right edge.

    Where a curve is dense, a faint raw line stands behind a smoothed one. `boundaries` are (x, name) of vertical lines, for
    stages; `x_ticks` the x values that are measured, else round ones are chosen; `zero` keeps 0 on the y axis.
    """
    width, height = size
    shown = [s for s in series if any(m.y is not None for m in s.marks)]
    xs = [m.x for s in shown for m in s.marks] or [0.0, 1.0]
    ys = [v for s in shown for m in s.marks for v in (m.y, m.low, m.high) if v is not None] or [0.0]
    y_ticks = ticks(min([*ys, 0.0] if zero else ys), max(ys))
    legend, legend_height = _legend([(s.label, s.style) for s in shown] if len(shown) > 1 else [], 44, width - 8)
    top = 12 + legend_height + (13 if len(boundaries) > 1 else 0)
    edge = (min(x_ticks), max(x_ticks)) if x_ticks else (min(xs), max(xs))
    frame = Frame(44, width - 54, top, height - 36, edge, (y_ticks[0], y_ticks[-1]), log2_x, 18 if x_ticks else 0)
    parts = _axes(frame, y_ticks, list(x_ticks) or [t for t in ticks(*edge) if edge[0] <= t <= edge[1]], text)
    parts.append(_text((frame.left + frame.right) / 2, height - 4, x_label, "label", "middle"))
    parts.append(
        f'<g transform="rotate(-90)">{_text(-(frame.top + frame.bottom) / 2, 9, y_label, "label", "middle")}</g>'
    )
    for place, name in boundaries if len(boundaries) > 1 else ():
        parts.append(_line(frame.px(place), frame.top - 3, frame.px(place), frame.bottom, "boundary"))
        parts.append(_text(frame.px(place) + 2, frame.top - 5, name, "stage"))
    ends = []
    parts += legend
    for number, one in enumerate(shown):
        # Marks that share an x would hide each other's whiskers.
        dodge = 5 * (number - (len(shown) - 1) / 2) if one.dots and x_ticks else 0.0
        parts += _curve(frame, one, text, [place for place, _ in boundaries], dodge)
        last = next(m for m in reversed(one.marks) if m.y is not None)
        ends += [(last.y or 0.0, one.style)] if last.x == edge[1] else []
    # Two values at one height would be unreadable.
    places = spread([frame.py(value) for value, _ in ends], 12, frame.top + 2, frame.bottom)
    for place, (value, style) in zip(places, ends, strict=True):
        parts.append(_text(frame.right + (3 if x_ticks else 7), place + 4, text(value), f"value t{style}"))
    return _svg(width, height, title, parts, name="chart half" if width > 400 else "chart")


def _legend(items: Sequence[tuple[str, int]], left: float, right: float) -> tuple[list[str], float]:
    """Marks with their names, in rows from the top; and the height they take."""
    parts: list[str] = []
    x, y = left, 9
    for name, style in items:
        long = 28 + 6.3 * len(name)
        if x + long > right and x > left:
            x, y = left, y + 15
        parts += [_dot(x + 4, y, style, name, 3.5), _text(x + 13, y + 4, name, "legend")]
        x += long
    return parts, float(y + 8 if items else 0)


def _axes(frame: Frame, ys: Sequence[float], xs: Sequence[float], text: Text) -> list[str]:
    parts = []
    for y in ys:
        parts.append(_line(frame.left, frame.py(y), frame.right, frame.py(y), "axis" if y == ys[0] else "grid"))
        parts.append(_text(frame.left - 5, frame.py(y) + 4, _tick(y, text), "tick", "end"))
    for x in xs:
        parts.append(_line(frame.px(x), frame.bottom, frame.px(x), frame.bottom + 4, "axis"))
        parts.append(_text(frame.px(x), frame.bottom + 16, compact(x), "tick", "middle"))
    return parts


def _curve(frame: Frame, one: Series, text: Text, breaks: Sequence[float], dodge: float) -> list[str]:
    """The line of one series, broken where a stage begins: what jumps there must not be smoothed away."""
    marks = [m for m in one.marks if m.y is not None]
    window = len(marks) // 20 * 2 + 1 if len(marks) > 40 and not one.dots else 1
    edges = [-math.inf, *sorted(breaks), math.inf] if not one.dots else [-math.inf, math.inf]
    parts = []
    for start, end in itertools.pairwise(edges):
        run = [(m.x, m.y or 0.0) for m in marks if start <= m.x < end]
        parts += [_path(frame, run, f"raw c{one.style}", dodge)] if window > 1 and run else []
        soft = smooth([y for _, y in run], window)
        parts += (
            [_path(frame, [(x, y) for (x, _), y in zip(run, soft, strict=True)], f"line c{one.style}", dodge)]
            if run
            else []
        )
    for mark in marks if one.dots or len(marks) == 1 else ():
        x = frame.px(mark.x) + dodge
        if mark.low is not None and mark.high is not None:
            parts.append(_line(x, frame.py(mark.low), x, frame.py(mark.high), f"whisker c{one.style}"))
        parts.append(_dot(x, frame.py(mark.y or 0), one.style, f"{one.label}: {text(mark.y or 0)} {mark.note}", 3.5))
    return parts


def _path(frame: Frame, points: Sequence[tuple[float, float]], name: str, dodge: float) -> str:
    stride = max(1, len(points) // 400)
    picked = [point for i, point in enumerate(points) if i % stride == 0 or i == len(points) - 1]
    places = " ".join(f"{frame.px(x) + dodge:.1f},{frame.py(y):.1f}" for x, y in picked)
    return f'<polyline points="{places}" class="{name}"/>'


def intervals(
    title: str, rows: Sequence[str], series: Sequence[Series], *, x_label: str, text: Text = percent, width: float = 720
) -> Markup:
    """Rows of values with their 95 % whiskers; `Mark.x` is the row. One series: the value is written beside its mark."""
    alone = len(series) == 1 or all(len([m for m in s.marks if m.y is not None]) == 1 for s in series)
    left = min(250.0, 24 + 7 * max([len(row) for row in rows] or [0]))
    pitch = 34 if alone else 12 + 11 * len(series)
    top = 8 if alone else 28
    height = top + pitch * len(rows) + 40
    values = [v for s in series for m in s.marks for v in (m.y, m.low, m.high) if v is not None] or [1.0]
    x_ticks = ticks(min(0.0, *values, 0.0), max(values), count=5)
    frame = Frame(left, width - (70 if alone else 20), top, height - 36, (x_ticks[0], x_ticks[-1]), (0, 1))
    parts = [_line(frame.px(x), top, frame.px(x), frame.bottom, "axis" if x == 0 else "grid") for x in x_ticks]
    parts += [_text(frame.px(x), frame.bottom + 16, _tick(x, text), "tick", "middle") for x in x_ticks]
    parts.append(_text((frame.left + frame.right) / 2, height - 3, x_label, "label", "middle"))
    for number, row in enumerate(rows):
        parts.append(_text(left - 10, top + pitch * (number + 0.5) + 4, _short(row, 34), "row", "end"))
        if number and not alone:
            parts.append(_line(8, top + pitch * number, frame.right, top + pitch * number, "grid"))
    parts += [] if alone else _legend([(one.label, one.style) for one in series], left, width)[0]
    for lane, one in enumerate(series):
        offset = 0.0 if alone else 11 * (lane - (len(series) - 1) / 2)
        for mark in one.marks:
            y = top + pitch * (mark.x + 0.5) + offset
            parts += _interval(frame, mark, one, y, text, said=alone)
    return _svg(width, height, title, parts, name="chart wide")


def _interval(frame: Frame, mark: Mark, one: Series, y: float, text: Text, *, said: bool) -> list[str]:
    if mark.y is None:
        return [_text(frame.left + 6, y + 4, f"undefined {mark.note}".strip(), "tick")] if said else []
    parts, ends = [], [mark.y]
    tip = f"{one.label}: {text(mark.y)}"
    if mark.low is not None and mark.high is not None:
        parts.append(_line(frame.px(mark.low), y, frame.px(mark.high), y, f"whisker c{one.style}"))
        tip += f" [{text(mark.low)}, {text(mark.high)}]"
        ends.append(mark.high)
    parts.append(_dot(frame.px(mark.y), y, one.style, f"{tip} {mark.note}".strip(), 5.5 if said else 4))
    if said:
        parts.append(_text(frame.px(max(ends)) + 10, y + 4, text(mark.y), "big"))
    return parts


def bars(title: str, rows: Sequence[Bar], *, width: float = 720) -> Markup:
    """Horizontal bars from 0, each with its text at the end."""
    left = min(260.0, 24 + 6.8 * max([len(row.label) for row in rows] or [0]))
    room = width - left - 12 - 7 * max([len(row.text) for row in rows] or [0])
    most = max([row.value for row in rows] or [1]) or 1
    parts = []
    for number, row in enumerate(rows):
        y = 4 + 27 * number
        long = max(1.0, row.value / most * room)
        parts.append(_text(left - 10, y + 15, _short(row.label, 36), "row", "end"))
        parts.append(f'<rect x="{left:.1f}" y="{y}" width="{long:.1f}" height="20" rx="2" class="bar c{row.style}"/>')
        parts.append(_text(left + long + 7, y + 15, row.text, "value"))
    return _svg(width, 8 + 27 * len(rows), title, parts, name="chart wide")


def split(title: str, parts_of: Sequence[Bar], *, width: float = 720) -> Markup:
    """One bar split into shares; names and values below where there is room, all of them in tooltips."""
    total = sum(bar.value for bar in parts_of) or 1
    parts, x = [], 0.0
    for bar in parts_of:
        long = bar.value / total * width
        tip = f"{bar.label}: {bar.text}"
        shape = (
            f'<rect x="{x:.1f}" y="2" width="{max(long - 1.5, 0.5):.1f}" height="26" rx="2" class="bar c{bar.style}">'
        )
        parts.append(f"{shape}<title>{escape(tip)}</title></rect>")
        if long > 7 * max(len(bar.label), len(bar.text)):
            parts += [_text(x + 1, 45, bar.label, "row"), _text(x + 1, 61, bar.text, "value")]
        x += long
    return _svg(width, 66, title, parts, name="chart wide")


def scatter(
    title: str,
    points: Sequence[Series],
    *,
    x_label: str,
    y_label: str,
    text: Text = percent,
    size: tuple[float, float] = (560, 300),
) -> Markup:
    """One labelled mark a series, joined in order by a faint line."""
    width, height = size
    marks = [(one, one.marks[0]) for one in points if one.marks and one.marks[0].y is not None]
    x_ticks = ticks(0.0, max([m.x for _, m in marks] or [1.0]))
    y_ticks = ticks(0.0, max([m.high or m.y or 0.0 for _, m in marks] or [1.0]))
    frame = Frame(48, width - 96, 12, height - 38, (x_ticks[0], x_ticks[-1]), (y_ticks[0], y_ticks[-1]))
    parts = _axes(frame, y_ticks, x_ticks, text)
    parts.append(_text((frame.left + frame.right) / 2, height - 4, x_label, "label", "middle"))
    parts.append(
        f'<g transform="rotate(-90)">{_text(-(frame.top + frame.bottom) / 2, 9, y_label, "label", "middle")}</g>'
    )
    way = " ".join(f"{frame.px(m.x):.1f},{frame.py(m.y or 0):.1f}" for _, m in marks)
    parts.append(f'<polyline points="{way}" class="raw"/>')
    labels = spread([frame.py(m.y or 0) for _, m in marks], 14, frame.top, frame.bottom)
    for (one, mark), place in zip(marks, labels, strict=True):
        x = frame.px(mark.x)
        if mark.low is not None and mark.high is not None:
            parts.append(_line(x, frame.py(mark.low), x, frame.py(mark.high), f"whisker c{one.style}"))
        parts.append(
            _dot(x, frame.py(mark.y or 0), one.style, f"{one.label}: {text(mark.y or 0)} at {compact(mark.x)}", 6)
        )
        parts.append(_text(x + 11, place + 4, one.label, "legend"))
    return _svg(width, height, title, parts, name="chart middle")


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
