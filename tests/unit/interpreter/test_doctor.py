"""The doctor tells what isolation there is, by trying what must not be possible."""

from __future__ import annotations

import sys

import pytest

from thincode.errors import IsolationError
from thincode.interpreter import doctor
from thincode.interpreter.backends import python
from thincode.interpreter.tiers import NEEDS, Tier, advice, demand, lacking, reached

ALL = {layer: "on" for layers in NEEDS.values() for layer in layers}
PLAIN = {**ALL, **dict.fromkeys(NEEDS[Tier.T3], "refused")}
"""What a plain container gives."""
CLOSED = {**PLAIN, "ordinary user": "Python stands in a folder that other users may not enter (/closed)"}


@pytest.mark.parametrize(
    ("layers", "tier"),
    [
        (ALL, Tier.T3),
        (PLAIN, Tier.T2),
        ({**ALL, "seccomp": "not built"}, Tier.T1),
        ({**ALL, "rlimits": "refused"}, Tier.T0),
        ({"process group": "on", "rlimits": "on"}, Tier.T1),
        ({}, Tier.T0),
    ],
)
def test_a_tier_is_what_all_layers_up_to_it_make(layers: dict[str, str], tier: Tier) -> None:
    assert reached(layers) is tier


def test_what_is_lacking_is_named_with_its_reason() -> None:
    assert lacking({**ALL, "disk quota": "EPERM"}, Tier.T3) == {"disk quota": "EPERM"}
    assert lacking({**ALL, "disk quota": "EPERM"}, Tier.T2) == {}
    assert lacking({}, Tier.T1) == {"process group": "was not tried", "rlimits": "was not tried"}


def test_less_than_demanded_is_refused_with_what_to_do() -> None:
    assert demand(PLAIN, Tier.T2) is Tier.T2
    assert demand(PLAIN, None) is Tier.T2
    with pytest.raises(
        IsolationError, match=r"tier T2 here.*asks for T3.*namespaces \(refused\).*user namespaces.*tier=T2"
    ):
        demand(PLAIN, Tier.T3)


def test_no_isolation_at_all_needs_an_explicit_word() -> None:
    with pytest.raises(IsolationError, match=r"tier T0 here, and this needs T1.*tier=T0"):
        demand({}, None)
    assert demand({}, Tier.T0) is Tier.T0


def test_a_python_in_a_closed_folder_is_refused_with_the_command_that_mends_it() -> None:
    assert any("chmod o+x '/closed'" in step for step in advice(CLOSED, Tier.T2))
    with pytest.raises(IsolationError, match=r"chmod o\+x '/closed'.*or accept less: interpreter.backend.tier=T1"):
        demand(CLOSED, None)
    assert demand(CLOSED, Tier.T1) is Tier.T1


def test_a_layer_that_does_not_hold_what_it_promises_lowers_the_tier() -> None:
    refused = {name: "refused" for tried in doctor.ATTEMPTS.values() for name in tried}
    assert doctor.judge(ALL, refused) is Tier.T3
    for tier, below in ((Tier.T3, Tier.T2), (Tier.T2, Tier.T1), (Tier.T1, Tier.T0)):
        for name in doctor.ATTEMPTS[tier]:
            assert doctor.judge(ALL, {**refused, name: "open"}) is below


def test_probe_tries_everything_and_claims_no_tier_it_lacks() -> None:
    found = doctor.probe()
    assert set(found["layers"]) >= set(ALL)
    assert set(found["attempts"]) == {name for tried in doctor.ATTEMPTS.values() for name in tried}
    lack = lacking(found["layers"], Tier.T3)
    assert (found["tier"] == "T3") == (not lack and not found["open"]), (lack, found["open"])


@pytest.mark.skipif(sys.platform != "linux", reason="turns off what only Linux has")
def test_a_run_that_asks_for_more_is_refused_before_it_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    real = doctor.probe
    monkeypatch.setattr(doctor, "probe", lambda settings: real(settings, off=("seccomp", "landlock")))
    with pytest.raises(IsolationError, match=r"asks for T2; missing: landlock \(turned off\); seccomp \(turned off\)"):
        doctor.require(python.Settings(preload=(), tier=Tier.T2))
    assert doctor.require(python.Settings(preload=(), tier=Tier.T1)) is Tier.T1


def test_without_any_isolation_a_session_can_do_what_you_can() -> None:
    found = doctor.probe(python.Settings(tier=Tier.T0))
    assert found["tier"] == "T0"
    assert {"run a program", "read a file of yours", "reach a service on this machine"} <= set(found["open"])
