"""A session stands whatever a block does, whether we are root or an ordinary user."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from hostile.cases import CASES, run_all

ROOT = Path(__file__).parents[2]
# The system's Python finds our one pure dependency beside ours.
MODULES = os.pathsep.join([str(ROOT / "src"), sysconfig.get_path("purelib")])
Results = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def ours() -> Results:
    return asyncio.run(run_all())


def readable_python() -> str | None:
    """A Python that an ordinary user can start: ours where it stands in public folders, else the system's."""
    for candidate in (sys.executable, "/usr/bin/python3"):
        probe = [shutil.which("setpriv") or "", "--reuid=65534", "--regid=65534", "--clear-groups", candidate, "-c",
                 "import sys, subprocess, thincode.interpreter as _; subprocess.run([sys.executable, '-c', ''], check=True); "
                 "sys.exit(sys.version_info < (3, 11))"]  # fmt: skip
        if probe[0] and subprocess.run(probe, env={"PYTHONPATH": MODULES}, capture_output=True).returncode == 0:
            return candidate
    return None


@pytest.fixture(scope="module")
def nobodys() -> Results:
    """The same, run by an ordinary user."""
    if os.geteuid() != 0:
        pytest.skip("we are an ordinary user already")
    python = readable_python()
    if python is None:
        pytest.skip("no Python that an ordinary user can start")
    script = str(Path(__file__).with_name("cases.py"))
    done = subprocess.run(
        ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", python, script],
        env={"PYTHONPATH": MODULES, "PYTHONDONTWRITEBYTECODE": "1"}, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: Results = json.loads(done.stdout)
    return found


def check(name: str, got: dict[str, Any]) -> None:
    case = CASES[name]
    told = json.dumps(got, indent=1, default=str)[:3000]
    assert got["status"] == case.status, told
    if case.detail:
        assert got["detail"] == case.detail, told
    assert case.says in got["output"], told
    assert case.hides not in got["output"], told
    assert len(got["output"]) < 2600, told
    assert got["state_kept"], told
    for wanted, found in zip(case.then.values(), got["then"], strict=True):
        assert wanted is None or found == wanted, told
    assert got["after"] == "42\n", told
    assert got["alive"] == "42\n", told


@pytest.mark.parametrize("name", CASES)
def test_the_session_stands(name: str, ours: Results) -> None:
    check(name, ours[name])


@pytest.mark.parametrize("name", CASES)
def test_the_session_stands_for_an_ordinary_user(name: str, nobodys: Results) -> None:
    check(name, nobodys[name])


# Only what touches nothing outside: without namespaces a block reaches what its user reaches.
BARE_PROCESS = [
    "children of a block die with it",
    "a grandchild that left its session dies too",
    "a child that returns from the block does not answer",
    "memory bomb at once",
    "endless loop that catches everything",
    "interrupts ignored",
    "a loop in C",
    "os._exit is no success",
    "segmentation fault",
    "huge output",
    "closes every descriptor",
    "forges an answer",
    "patches builtins",
    "has no secret in its environment",
]


@pytest.fixture(scope="module")
def without_namespaces() -> Results:
    """The same where the kernel gives no namespaces, as in a plain container."""
    inner = f"exec unshare -U --map-user=1000 --map-group=1000 '{sys.executable}' \"$@\""
    script = f"echo 1 > /proc/sys/user/max_user_namespaces && {inner}"
    command = ["unshare", "-Ur", "sh", "-c", script, "sh", str(Path(__file__).with_name("cases.py")), *BARE_PROCESS]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    if (
        shutil.which("unshare") is None
        or subprocess.run(["unshare", "-Ur", "true"], capture_output=True).returncode != 0
    ):
        pytest.skip("can't make the namespace in which namespaces are forbidden")
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    found: Results = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("name", BARE_PROCESS)
def test_the_session_stands_without_namespaces(name: str, without_namespaces: Results) -> None:
    check(name, without_namespaces[name])
