"""Record ↔ text ↔ ids and mask, pinned for each wire format."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from golden.renew import current, renew
from thincode.settings import kind, kinds
from thincode.trajectory.formats import build
from thincode.trajectory.store import from_json

ROOM = "thincode.trajectory.formats"
HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def made(pytestconfig: pytest.Config) -> dict[str, str]:
    if pytestconfig.getoption("--renew"):
        renew("wire_formats")
    return current("wire_formats")


@pytest.mark.parametrize("name", kinds(ROOM))
def test_the_golden_still_stands(made: dict[str, str], name: str) -> None:
    path = f"wire_formats/{name}.json"
    assert made[path] == (HERE / path).read_text(encoding="utf-8"), "if it should move: make golden, and say why"


@pytest.mark.parametrize("name", kinds(ROOM))
def test_the_pinned_text_reads_as_the_pinned_record(name: str) -> None:
    golden = json.loads((HERE / f"wire_formats/{name}.json").read_text(encoding="utf-8"))
    segments = from_json(golden["record"]).segments
    parsed = build(kind(ROOM, name)).parse(golden["text"])
    assert [(s.kind, s.text, s.content) for s in parsed] == [(s.kind, s.text, s.content) for s in segments]
