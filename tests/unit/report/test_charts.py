"""Charts are well-formed SVG with axes, whose labels are text."""

from __future__ import annotations

import re
from collections.abc import Callable
from xml.etree import ElementTree

import pytest

from thincode.report import _charts as charts
from thincode.report._vega import ATTRIBUTES, ELEMENTS, draw

SVG = "{http://www.w3.org/2000/svg}"


def texts(svg: str) -> list[str]:
    return [node.text or "" for node in ElementTree.fromstring(svg).iter(f"{SVG}text")]


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0, "0%"), (1, "100%"), (0.725, "72.5%"), (0.0012, "0.12%"), (-0.25, "-25.0%"), (0.999, "99.9%")],
)
def test_shares_read_as_percent(value: float, expected: str) -> None:
    assert charts.percent(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0, "0"), (0.28, "0.28"), (1234, "1,234"), (21_000, "21k"), (3_500_000, "3.5M"), (2e-5, "2e−5")],
)
def test_numbers_stay_short(value: float, expected: str) -> None:
    assert charts.compact(value) == expected


def test_smoothing_keeps_a_constant_and_the_mean_of_a_window() -> None:
    assert charts.smooth([2.0] * 5, 3) == [2.0] * 5
    assert charts.smooth([0.0, 3.0, 6.0, 0.0], 3) == [1.5, 3.0, 3.0, 3.0]


def test_a_curve_is_broken_at_a_stage_so_that_a_jump_stays_a_jump() -> None:
    marks = [charts.Mark(n, 1.0 if n <= 50 else 0.0) for n in range(1, 101)]
    stages = [(1, "a"), (51, "b")]
    svg = charts.lines(
        "r", [charts.Series("reward", marks)], x_label="step", y_label="mean reward", boundaries=stages
    ).svg
    paths = [node.get("d") or "" for node in ElementTree.fromstring(svg).iter(f"{SVG}path")]
    heights = [{point.split(",")[1] for point in path[1:].split("L")} for path in paths if path.count("L") > 20]
    assert len(heights) == 4  # raw and smoothed, of each stage
    assert all(len(found) == 1 for found in heights)
    assert {"a", "b"} <= set(texts(svg))


def test_an_undefined_value_is_said_and_not_drawn() -> None:
    svg = charts.intervals(
        "g", ["grounded"], [charts.Series("SFT", [charts.Mark(0, None, note="n = 0")])], x_label="share"
    ).svg
    assert "undefined n = 0" in texts(svg)
    assert "data-tip" not in svg


def test_a_mark_says_its_value_interval_and_count_and_takes_its_color_from_the_page() -> None:
    series = [charts.Series("SFT", [charts.Mark(0, 0.5, 0.4, 0.6, "n = 8")], 1)]
    svg = charts.intervals("g", ["grounded"], series, x_label="share, 95% interval").svg
    mark = next(node for node in ElementTree.fromstring(svg).iter() if node.get("data-tip"))
    assert mark.get("data-tip") == "SFT: 50.0% [40.0%, 60.0%] n = 8"
    assert mark.get("fill") == "var(--c1)"


def test_several_series_have_a_legend_and_one_has_none() -> None:
    one, two = (charts.Series(name, [charts.Mark(k, 0.5) for k in (1, 2)], style) for style, name in enumerate("ab"))
    assert charts.lines("t", [one], x_label="k", y_label="share").legend == []
    assert charts.lines("t", [one, two], x_label="k", y_label="share").legend == [("a", 0), ("b", 1)]


def test_rows_that_read_alike_stay_two() -> None:
    svg = charts.bars("t", [charts.Bar("same", 1, "one"), charts.Bar("same", 2, "two")], x_label="trajectories").svg
    assert {"one", "two"} <= set(texts(svg))
    assert sum(text.rstrip("\u200b") == "same" for text in texts(svg)) == 2


LABEL = "<b\U0001f600>&'\"]\ud800\x00{{datum.x}}"
SAID = LABEL.replace("\ud800", "\ufffd").replace("\x00", "\ufffd")
HOSTILE = charts.Series(LABEL, [charts.Mark(0, 0.5, 0.4, 0.6, LABEL)], 3, dots=True)


@pytest.mark.parametrize(
    ("draw", "axes"),
    [
        (lambda: charts.bars(LABEL, [charts.Bar(LABEL, 3, LABEL)], x_label=LABEL), 1),
        (lambda: charts.bars(LABEL, [], x_label=LABEL), 0),
        (lambda: charts.split(LABEL, [charts.Bar(LABEL, 3, LABEL), charts.Bar("b", 0, "0")], x_label=LABEL), 1),
        (lambda: charts.intervals(LABEL, [LABEL], [HOSTILE], x_label=LABEL), 1),
        (lambda: charts.intervals(LABEL, [], [], x_label=LABEL), 0),
        (lambda: charts.lines(LABEL, [HOSTILE, HOSTILE], x_label=LABEL, y_label=LABEL, boundaries=[(0, LABEL), (1, "b")]), 2),
        (lambda: charts.lines(LABEL, [], x_label=LABEL, y_label=LABEL), 0),
        (lambda: charts.scatter(LABEL, [HOSTILE], x_label=LABEL, y_label=LABEL), 2),
    ],
    ids=["bars", "no bars", "split", "intervals", "no intervals", "lines", "no lines", "scatter"],
)  # fmt: skip
def test_every_chart_is_well_formed_has_a_title_and_its_axes_whatever_its_labels_are(
    draw: Callable[[], charts.Chart], axes: int
) -> None:
    root = ElementTree.fromstring(draw().svg)
    assert root.get("role") == "img"
    title = root.find(f"{SVG}title")
    assert title is not None
    assert title.text == SAID
    assert sum(node.text == SAID for node in root.iter(f"{SVG}text")) >= axes
    assert {node.tag.removeprefix(SVG) for node in root.iter()} <= ELEMENTS
    assert {name for node in root.iter() for name in node.attrib} <= ATTRIBUTES | {"role", "data-tip"}


def test_places_are_written_to_the_hundredth_of_a_pixel() -> None:
    spec = {
        "data": {"values": [{"x": 1 / 3, "y": 2 / 7}, {"x": 2.5, "y": 1}]},
        "mark": "line",
        "encoding": {"x": {"field": "x", "type": "quantitative"}, "y": {"field": "y", "type": "quantitative"}},
    }
    drawn = draw(spec, title="one third")
    assert re.search(r'd="M[\d.]+,[\d.]+L', drawn)
    assert not re.search(r'(?:d|x|y|x2|y2|transform)="[^"]*\.\d{3}', drawn)
