"""The page in a real Chromium: what people see, click and type, and what hostile text does there (nothing)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from thincode.report import build
from unit.report import folders
from unit.report.browsing import Seen, chromium, needs_chromium, tab
from unit.report.test_hostile import HOSTILE

pytestmark = needs_chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = folders.write_pipeline(tmp_path_factory.mktemp("browser") / "run")
    said = [
        folders.trajectory("alpha", answer="42", text=r"Take $\frac{1}{2}$."),
        folders.trajectory("beta", answer="7"),
        folders.trajectory("beta", answer="8", sample=1),
    ]
    grounded = [{"problem": "alpha", "sample": 0, "spans": [{"output": 1, "start": 0, "end": 2}]}]
    for name in ("3-early", "4-late"):
        folders.write_checkpoint(folder / "evaluate" / name, [], said, grounded=grounded)
    return build(folder).as_uri()


@pytest.fixture
def seen(browser: Any, plain: str) -> Iterator[Seen]:
    with tab(browser, plain) as opened:
        yield opened
        assert opened.faults == []


def test_every_plot_has_axes_units_and_data(seen: Seen) -> None:
    seen.page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
    figures = seen.page.locator("figure").all()
    assert len(figures) > 10
    for figure in figures:
        name = figure.locator("figcaption").inner_text()
        texts = figure.locator("svg text").all_text_contents()
        numbers = [text for text in texts if re.fullmatch(r"[−+-]?[\d,.]+[%kM]?", text)]
        titles = [text for text in texts if text not in numbers]
        assert len(numbers) >= 2, (name, texts)
        assert titles, (name, texts)
        drawn = "svg [data-tip], svg path[stroke^='var(--c']"
        assert figure.locator(drawn).count() > 0, name
        box = figure.locator("svg").bounding_box()
        assert box["width"] > 150, name
        assert box["height"] > 50, name


@pytest.mark.slow
def test_a_mark_shows_its_value_when_one_points_at_it(seen: Seen) -> None:
    seen.page.locator("#result svg").first.locator("[data-tip]").nth(2).hover()
    assert seen.page.locator("#tip").inner_text() == "Final: 72.5% [62.5%, 82.5%] n = 10"


ALL = ["alpha · 0", "beta · 0", "beta · 1"]
FILTERS = [
    ("f-shelf", "3-early", ALL),
    ("f-ok", "false", []),
    ("f-ground", "true", ALL[:1]),
    ("f-ground", "false", ALL[1:]),
    ("f-end", "finished", ALL),
    ("f-calls", "2", ALL),
    ("f-calls", "4", []),
    ("f-errors", "1", ALL),
    ("f-errors", "0", []),
    ("f-errors", "every", []),
    ("f-tag", "echo", ALL),
]


def test_a_filter_keeps_what_it_names(seen: Seen) -> None:
    for field, value, expected in FILTERS:
        before = seen.page.input_value(f"#{field}")
        seen.page.select_option(f"#{field}", value)
        assert (field, value, seen.shown()) == (field, value, expected)
        assert seen.count().startswith(f"{len(expected)} of 15 ")
        seen.page.select_option(f"#{field}", before)


def test_problem_and_search_filter_as_one_types(seen: Seen) -> None:
    seen.page.fill("#f-problem", "bet")
    assert seen.shown() == ["beta · 0", "beta · 1"]
    seen.page.fill("#f-text", "PRINT(8)")
    assert seen.shown() == ["beta · 1"]
    assert seen.page.locator("#reader mark.hit").all_inner_texts() == ["print(", "8", ")"]
    seen.page.click("#clear")
    assert seen.count().startswith("15 of 15 ")


def test_a_trajectory_shows_authors_statuses_seconds_and_where_its_answer_stands(seen: Seen) -> None:
    reader = seen.page.locator("#reader")
    assert reader.locator(".what").all_inner_texts() == [
        "model · plan", "model · block 1\nerror: NameError\n0.25 s", "interpreter · output", "driver · notice",
        "model · block 2\nok\n1.50 s", "interpreter · output", "model · answer",
    ]  # fmt: skip
    assert reader.locator("mark.answer").inner_text() == "42"
    assert reader.locator(".seg.interpreter mark.ground").all_inner_texts() == ["42"]
    assert reader.locator(".question math mfrac").count() == 1


def test_two_checkpoints_stand_side_by_side_on_one_problem(seen: Seen) -> None:
    seen.page.select_option("#f-beside", "3-early")
    seen.page.locator("#list li", has_text="beta · 1").click()
    first, second = (seen.page.locator(f"#{name}") for name in ("reader", "beside"))
    assert [pane.locator("h3").inner_text() for pane in (first, second)] == ["✓ right · beta · sample 1"] * 2
    assert first.locator(".meta").inner_text().startswith("Late")
    assert second.locator(".meta").inner_text().startswith("Early")
    boxes = [pane.bounding_box() for pane in (first, second)]
    assert boxes[0]["x"] + boxes[0]["width"] <= boxes[1]["x"] + 1
    seen.page.select_option("#f-beside", "2-final")
    assert second.inner_text() == "Final has no other trajectory of this problem."


def test_the_keyboard_reaches_everything(seen: Seen) -> None:
    page = seen.page
    page.locator("#list").focus()
    page.keyboard.press("ArrowDown")
    assert page.locator("#list [aria-selected=true]").inner_text().startswith("✓\nbeta · 0")
    page.keyboard.press("k")
    assert page.locator("#reader h3").inner_text() == "✓ right · alpha · sample 0"
    page.keyboard.press("[")
    assert page.locator("#reader .meta").inner_text().startswith("Early")
    page.keyboard.press("/")
    page.keyboard.type("print(7)")
    page.keyboard.press("Escape")
    assert seen.shown() == ["beta · 0"]
    page.keyboard.press("b")
    assert page.evaluate("document.activeElement.id") == "f-beside"


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_follows_the_system_and_its_own_button(browser: Any, plain: str, scheme: str) -> None:
    light = "getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0] > 128"
    with tab(browser, plain, color_scheme=scheme) as seen:
        assert seen.page.evaluate(light) is (scheme == "light")
        seen.page.click("#theme")
        assert seen.page.evaluate(light) is (scheme == "dark")


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_to_mend(browser: Any, plain: str, scheme: str) -> None:
    from axe_playwright_python.sync_playwright import Axe

    with tab(browser, plain, color_scheme=scheme) as seen:
        seen.page.select_option("#f-beside", "3-early")
        found = Axe().run(seen.page).response["violations"]
        assert [(rule["id"], [node["html"][:200] for node in rule["nodes"]]) for rule in found] == []


@pytest.mark.slow
def test_on_a_phone_nothing_sticks_out(browser: Any, plain: str) -> None:
    with tab(browser, plain) as seen:
        seen.page.set_viewport_size({"width": 390, "height": 844})
        assert seen.page.evaluate("document.documentElement.scrollWidth") == 390


@pytest.mark.slow
def test_on_paper_there_is_no_furniture(seen: Seen) -> None:
    seen.page.emulate_media(media="print")
    assert [seen.page.locator(name).is_visible() for name in ("nav", "#filters", "#list")] == [False] * 3
    assert [seen.page.locator(name).is_visible() for name in ("#result h2", "#reader")] == [True] * 2
    assert seen.page.pdf(format="A4").startswith(b"%PDF")


def test_hostile_text_stays_text(browser: Any, tmp_path: Path) -> None:
    page = build(folders.write_pipeline(tmp_path / "run", hostile=HOSTILE))
    with tab(browser, page.as_uri()) as seen:
        seen.page.select_option("#f-beside", "1-sft")
        seen.page.keyboard.press("j")
        assert seen.count() == "3 of 9 trajectories, 3 of 3 right"
        assert HOSTILE[:60] in seen.page.locator("#reader .question").inner_text()
        assert HOSTILE[:60] in seen.page.locator("#beside .question").inner_text()
        for name in ("img", "iframe", "a:not([href^='#'])", "[onerror]", "[onclick]"):
            assert seen.page.locator(name).count() == 0, name
        assert seen.page.title() == "small run · thincode report"
        assert seen.faults == []
