"""The isolation tier that a gate asks for is there: `pytest --require-tier T2` fails below it."""

from __future__ import annotations

import pytest

from thincode.interpreter import doctor

TIERS = ("T0", "T1", "T2", "T3")


def test_the_machine_reaches_the_tier_that_is_asked_for(pytestconfig: pytest.Config) -> None:
    required = pytestconfig.getoption("--require-tier")
    if required is None:
        pytest.skip("no tier is asked for: pytest --require-tier T2")
    assert required in TIERS
    found = doctor.probe()
    lacking = {layer: state for layer, state in found["layers"].items() if state != "on"}
    assert TIERS.index(found["tier"]) >= TIERS.index(required), (
        found["tier"],
        found.get("error"),
        lacking,
        found["open"],
    )
