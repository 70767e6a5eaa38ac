"""The table of systems says what a walk over all of them finds."""

from __future__ import annotations

import pytest

from golden.renew import HERE, current, renew
from systems import walk


def test_the_golden_page_is_what_the_walk_finds(pytestconfig: pytest.Config) -> None:
    missing = [row.backend for row in walk() if row.ran is None]
    if missing:
        pytest.skip(f"this machine lacks what some rows run on: {', '.join(missing)}")
    if pytestconfig.getoption("--renew"):
        renew("systems")
    ((path, text),) = current("systems").items()
    assert text == (HERE / path).read_text(encoding="utf-8"), "if it should move: make golden, and say why"
