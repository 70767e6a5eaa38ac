"""The doctor tells what isolation there is, by trying what must not be possible."""

from __future__ import annotations

from thincode.interpreter import doctor


def test_probe_names_every_layer_and_claims_no_tier_it_lacks() -> None:
    found = doctor.probe()
    assert set(found["layers"]) >= {
        "file system",
        "namespaces",
        "ordinary user",
        "rlimits",
        "no new privileges",
        "seccomp",
    }
    lacking = [layer for layer, state in found["layers"].items() if state != "on"]
    assert (found["tier"] == "T3") == (not lacking and not found["open"])
    if found["layers"]["file system"] == "on":
        assert found["open"] == []
