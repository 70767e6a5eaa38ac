"""Text from models, interpreters and files never becomes markup or code on the page."""

from __future__ import annotations

import base64
import hashlib
import re
from importlib import resources
from pathlib import Path

import pytest

from thincode.report import build
from thincode.report._page import SCRIPTS
from unit.report import folders
from unit.report.pages import Page

HOSTILE = (
    "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    "<a href=\"javascript:document.title='owned'\">'\"`&amp;&lt;<!--<script>{{ 7 * 7 }}{% raw %}]]>\u2028\u2029\u202e</style>"
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(folders.write_pipeline(tmp_path_factory.mktemp("hostile") / "run", hostile=HOSTILE))


def test_the_page_holds_its_own_scripts_only(path: Path) -> None:
    page = Page(path)
    kinds = [attributes.get("type") for attributes, _ in page.scripts]
    assert kinds == ["application/json"] * 3 + [None] * 3
    assert [tag for tag, _ in page.elements if tag in ("img", "iframe", "object", "embed", "link", "base")] == []


def test_no_attribute_runs_or_loads_anything(path: Path) -> None:
    for tag, attributes in Page(path).elements:
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, name)
            assert name not in ("src", "srcset", "style", "action", "formaction", "data", "srcdoc"), (tag, name)
            if name in ("href", "xlink:href"):
                assert re.fullmatch(r"#[\w-]+", value or ""), (tag, value)


def test_the_policy_allows_the_pages_own_script_and_style_and_nothing_else(path: Path) -> None:
    page = Page(path)

    def source(text: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    rules = dict(rule.strip().split(" ", 1) for rule in page.policy.split(";"))
    assert rules == {
        "default-src": "'none'",
        "script-src": " ".join(source(text) for attributes, text in page.scripts if "type" not in attributes),
        "style-src": source("".join(page.styles)),
        "base-uri": "'none'",
        "form-action": "'none'",
    }


def test_hostile_text_arrives_whole_as_data_and_as_text(path: Path) -> None:
    page = Page(path)
    assert all(HOSTILE in row["q"] and HOSTILE in row["s"][0]["x"] and HOSTILE in row["s"][2]["x"] for row in page.data)
    assert page.data[0]["p"].endswith(HOSTILE)
    assert f"dropped: wrong answer{HOSTILE}"[:35] in page.text
    for attributes, text in page.scripts[:3]:
        assert re.search(r"[<>&\u2028\u2029]", text) is None, attributes


@pytest.mark.parametrize("name", SCRIPTS)
def test_no_script_makes_markup_from_text(name: str) -> None:
    script = (resources.files("thincode.report") / "page" / name).read_text(encoding="utf-8")
    banned = r"(inner|outer)HTML|insertAdjacent|document\.write|DOMParser|ContextualFragment|\beval\b|Function\("
    assert re.findall(banned, script) == []
    assert "</script" not in script.lower()


def test_lone_surrogates_and_control_characters_do_not_stop_the_page(tmp_path: Path) -> None:
    odd = "\ud800 \x00 \x1b[31m \ufffe"
    folders.write_log(tmp_path / "rl" / "metrics.jsonl", folders.rl_rows({f"rl-1{odd}": 3, "rl-2": 3}))
    folders.write_trajectories(tmp_path, [folders.trajectory("p", text=odd)])
    page = Page(build(tmp_path))
    assert odd in page.data[0]["q"]
    assert "training" in page.sections
