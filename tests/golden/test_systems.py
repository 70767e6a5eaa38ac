"""The table of systems says what a walk over all of them finds."""

from __future__ import annotations

import pytest

from golden.renew import HERE, current, renew


def test_the_golden_page_is_what_the_walk_finds(pytestconfig: pytest.Config) -> None:
    if pytestconfig.getoption("--renew"):
        renew("systems")
    ((path, text),) = current("systems").items()
    assert text == (HERE / path).read_text(encoding="utf-8"), "if it should move: make golden, and say why"
