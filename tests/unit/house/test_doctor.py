"""The doctor says what is there, and for what is missing how to get it."""

from __future__ import annotations

import json
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from thincode import doctor


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    return doctor.report(runs=Path("no/such/folder/yet"))


@pytest.mark.train
def test_the_report_is_plain_and_true(report: dict[str, Any]) -> None:
    assert json.loads(json.dumps(report)) == report
    assert report["packages"]["numpy"] == {"version": metadata.version("numpy"), "extra": ""}
    assert report["packages"]["trl"] == {"version": metadata.version("trl"), "extra": "train"}
    assert "pytest" not in report["packages"]
    assert report["devices"][-1].startswith("cpu, ")
    assert report["memory_gib"] > 0.1
    assert Path(report["disk"]["path"]).is_dir()
    assert not any(line.startswith("missing") for line in doctor.lines(report) if "torch" in line)


def made(**changes: Any) -> dict[str, Any]:
    return {
        "thincode": "1.0",
        "commit": None,
        "python": "3.11",
        "executable": "python",
        "platform": "Linux",
        "machine": "x86_64",
        "cpus": 2,
        "memory_gib": None,
        "disk": {"path": "runs", "free_gib": 1.0, "writable": True},
        "packages": {},
        "devices": [],
        "gp": {"version": "2.17.2", "library": "/lib/libpari.so"},
        "tier": "T3",
        "layers": {},
        "attempts": {},
        "open": [],
        "advice": [],
        **changes,
    }


SHOWN: list[tuple[dict[str, Any], str]] = [
    ({}, "memory       unknown"),
    ({"commit": "abc-dirty"}, "thincode     1.0 (abc-dirty)"),
    ({"disk": {"path": "runs", "free_gib": 1.0, "writable": False}}, "disk         1.0 GiB free at runs, not writable"),
    ({"devices": None}, "torch        not installed; training needs it: pip install 'thincode[train]'"),
    ({}, "PARI/GP      2.17.2  /lib/libpari.so"),
    ({"gp": {"error": "needs it"}}, "PARI/GP      needs it"),
    ({"devices": ["cpu, 2 threads"]}, "device       cpu, 2 threads"),
    ({"tier": "T0", "error": "no room"}, "isolation    tier T0: no room"),
    ({"layers": {"seccomp": "not on Darwin"}}, "layer        seccomp: not on Darwin"),
    ({"attempts": {"be root": "refused", "mount": "open"}}, "refused      be root"),
    ({"open": ["mount"]}, "POSSIBLE     mount"),
    ({"advice": ["namespaces: allow them"]}, "better tier  namespaces: allow them"),
    ({"packages": {"numpy": {"version": "2.0", "extra": ""}}}, "package      numpy 2.0"),
    ({"packages": {"numpy": {"version": None, "extra": ""}}}, "missing      numpy: pip install 'thincode'"),
    (
        {"packages": {name: {"version": None, "extra": "train"} for name in ("peft", "trl")}},
        "missing      peft, trl: pip install 'thincode[train]'",
    ),
]


@pytest.mark.parametrize(("changes", "line"), SHOWN)
def test_each_finding_is_one_line(changes: dict[str, Any], line: str) -> None:
    assert line in doctor.lines(made(**changes))
