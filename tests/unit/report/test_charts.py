"""Charts are well-formed SVG whose labels are text, and whose axes are round."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from thincode.report import _charts as charts

SVG = "{http://www.w3.org/2000/svg}"


def texts(svg: str) -> list[str]:
    return [node.text or "" for node in ElementTree.fromstring(svg).iter(f"{SVG}text")]


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0, 1, [0, 0.25, 0.5, 0.75, 1]),
        (0, 0.83, [0, 0.25, 0.5, 0.75, 1]),
        (0, 300, [0, 100, 200, 300]),
        (-0.4, 0.9, [-0.5, 0, 0.5, 1]),
        (0, 0, [0, 0.25]),
        (7, 7, [6, 8]),
    ],
)
def test_ticks_are_round_and_hold_the_data(low: float, high: float, expected: list[float]) -> None:
    found = charts.ticks(low, high)
    assert found == expected
    assert found[0] <= low <= high <= found[-1]


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


@pytest.mark.parametrize(
    ("places", "expected"),
    [([], []), ([50], [50]), ([10, 12], [10, 20]), ([98, 99], [90, 100]), ([5, 60, 7], [5, 60, 15])],
)
def test_labels_are_moved_apart_inside_their_frame(places: list[float], expected: list[float]) -> None:
    assert charts.spread(places, 10, 0, 100) == expected


def test_smoothing_keeps_a_constant_and_the_mean_of_a_window() -> None:
    assert charts.smooth([2.0] * 5, 3) == [2.0] * 5
    assert charts.smooth([0.0, 3.0, 6.0, 0.0], 3) == [1.5, 3.0, 3.0, 3.0]


def test_a_curve_is_broken_at_a_stage_so_that_a_jump_stays_a_jump() -> None:
    marks = [charts.Mark(n, 1.0 if n <= 50 else 0.0) for n in range(1, 101)]
    svg = charts.lines(
        "r", [charts.Series("reward", marks)], x_label="step", y_label="reward", boundaries=[(1, "a"), (51, "b")]
    )
    heights = [
        {point.split(",")[1] for point in (node.get("points") or "").split()}
        for node in ElementTree.fromstring(svg).iter(f"{SVG}polyline")
    ]
    assert all(len(found) == 1 for found in heights)
    assert len(set.union(*heights)) == 2
    assert {"a", "b"} <= set(texts(svg))


def test_an_undefined_value_is_said_and_not_drawn() -> None:
    rows = [charts.Series("SFT", [charts.Mark(0, None, note="n = 0")])]
    svg = charts.intervals("g", ["grounded"], rows, x_label="share")
    assert "undefined n = 0" in texts(svg)
    assert [node.tag for node in ElementTree.fromstring(svg).iter(f"{SVG}circle")] == []


LABEL = "<b onclick=x>&'\""


@pytest.mark.parametrize(
    "svg",
    [
        charts.bars(LABEL, [charts.Bar(LABEL, 3, LABEL)]),
        charts.bars(LABEL, []),
        charts.split(LABEL, [charts.Bar(LABEL, 3, LABEL), charts.Bar("b", 0, "0")]),
        charts.intervals(
            LABEL, [LABEL], [charts.Series(LABEL, [charts.Mark(0, 0.5, 0.4, 0.6, LABEL)], 3)], x_label=LABEL
        ),
        charts.intervals(LABEL, [], [], x_label=LABEL),
        charts.lines(LABEL, [charts.Series(LABEL, [charts.Mark(1, 2.0, note=LABEL)])], x_label=LABEL, y_label=LABEL),
        charts.lines(LABEL, [], x_label=LABEL, y_label=LABEL),
        charts.scatter(LABEL, [charts.Series(LABEL, [charts.Mark(9, 0.5)])], x_label=LABEL, y_label=LABEL),
    ],
)
def test_every_chart_is_well_formed_and_has_a_title_whatever_its_labels_are(svg: str) -> None:
    root = ElementTree.fromstring(svg)
    assert root.get("role") == "img"
    title = root.find(f"{SVG}title")
    assert title is not None
    assert title.text == LABEL
    assert {node.tag for node in root.iter()} <= {
        SVG + name for name in ("svg", "title", "text", "line", "rect", "circle", "path", "polyline", "g")
    }
