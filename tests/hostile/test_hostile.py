"""A session stands whatever a block does: in both tiers, and whether we are root or an ordinary user."""

from __future__ import annotations

import atexit
import builtins
import fcntl
import functools
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from hostile.cases import CASES, Case
from thincode.interpreter.tiers import Tier

ROOT = Path(__file__).parents[2]
SCRIPT = str(Path(__file__).with_name("cases.py"))
MODULES = os.pathsep.join([str(ROOT / "src"), sysconfig.get_path("purelib")])
ORDINARY = ("setpriv", "--reuid=65533", "--regid=65533", "--clear-groups")
Results = dict[str, dict[str, Any]]


class Setup(NamedTuple):
    """One corner of the matrix."""

    tier: Tier
    user: str

    def __str__(self) -> str:
        return f"{self.tier}-{self.user}"


SETUPS = [Setup(tier, user) for tier in (Tier.T3, Tier.T2) for user in ("root", "ordinary")]


def corner_of(case: Case) -> int:
    """The one setup in which `make test` runs a case; preloads are paid for once."""
    return 0 if case.needs else zlib.crc32(case.name.encode()) % len(SETUPS)


MATRIX = [
    pytest.param(setup, name, id=f"{setup}-{name}", marks=[] if corner_of(case) == index else [pytest.mark.slow])
    for index, setup in enumerate(SETUPS)
    for name, case in CASES.items()
]


@functools.cache
def public_python() -> str | None:
    """A Python that any user can start, with our packages: ours, or a light environment over the system's."""
    for candidate in (sys.executable, "/usr/bin/python3"):
        place = Path(tempfile.mkdtemp(prefix="hostile-"))
        place.chmod(0o755)
        made = subprocess.run([candidate, "-m", "venv", "--without-pip", str(place)], capture_output=True)
        packages = place / f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
        if made.returncode == 0 and packages.is_dir():  # of our own version
            (packages / "ours.pth").write_text(sysconfig.get_path("purelib"))
            python = str(place / "bin/python")
            # In a process of its own: what setpriv starts may still pass closed folders.
            again = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import thincode.interpreter'], check=True)"
            tried = subprocess.run([*ORDINARY, python, "-c", again], env={"PYTHONPATH": MODULES}, capture_output=True)
            if tried.returncode == 0:
                atexit.register(shutil.rmtree, place)
                return python
        shutil.rmtree(place)
    return None


class Outcomes:
    """What came of the cases of each setup: run when first asked for, and once for all test processes."""

    def __init__(self, items: list[pytest.Item], shared: Path) -> None:
        self.asked: dict[Setup, list[str]] = {}
        for item in items:
            called = getattr(item, "callspec", None)
            if called is not None and "setup" in called.params:
                self.asked.setdefault(called.params["setup"], []).append(called.params["name"])
        self.shared = shared
        self.known: dict[Setup, Results] = {}

    def of(self, setup: Setup) -> Results:
        if setup not in self.known:
            kept = self.shared / f"hostile-{os.environ.get('PYTEST_XDIST_TESTRUNUID', os.getpid())}-{setup}.json"
            with kept.with_suffix(".lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                if not kept.exists():
                    kept.write_text(json.dumps(run(setup, self.asked[setup])))
                self.known[setup] = json.loads(kept.read_text())
        return self.known[setup]


@pytest.fixture(scope="session")
def outcomes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    return Outcomes(request.session.items, tmp_path_factory.getbasetemp().parent)


@functools.cache
def reachable(setup: Setup) -> str:
    """Why a setup can't be had here; empty if it can."""
    if setup.user == "root" and os.geteuid() != 0:
        return "we are an ordinary user"
    if os.geteuid() == 0 and (setup.user == "ordinary" or setup.tier is Tier.T2) and public_python() is None:
        return "no Python that an ordinary user can start"
    return ""


def run(setup: Setup, names: list[str]) -> Results:
    """These cases, in a process of their own."""
    # Root's T3 is tried with our own Python, wherever it stands.
    own = os.geteuid() != 0 or (setup.user == "root" and setup.tier is Tier.T3)
    command = [sys.executable if own else str(public_python()), SCRIPT, setup.tier, *names]
    if os.geteuid() == 0 and setup.user == "ordinary":
        command = [*ORDINARY, *command]
    done = subprocess.run(
        command,
        env={"PYTHONPATH": MODULES, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr
    found: Results = json.loads(done.stdout)
    return found


def of_os_error(name: str) -> bool:
    kind = getattr(builtins, name, None)
    return name in ("gaierror", "URLError") or (isinstance(kind, type) and issubclass(kind, OSError))


@pytest.mark.parametrize(("setup", "name"), MATRIX)
def test_the_session_stands(setup: Setup, name: str, outcomes: Outcomes) -> None:
    if reachable(setup):
        pytest.skip(reachable(setup))
    case, got = CASES[name].on(setup.tier), outcomes.of(setup)[name]
    told = json.dumps(got, indent=1, default=str)[:3000]
    assert got["tier"] == setup.tier, told
    assert got["status"] in case.status, told
    if case.detail == "an OSError":
        assert of_os_error(got["detail"]), told
    elif case.detail:
        assert got["detail"] == case.detail, told
    for text in case.says:
        assert text in got["output"], told
    for text in case.hides:
        assert not any(text in output for output in (got["output"], *got["then"])), told
    assert len(got["output"]) < 2600, told
    for (_, wanted), found in zip(case.then, got["then"], strict=True):
        assert wanted is None or found == wanted, told
    assert not case.repeats or got["again"] == got["output"] != "", told
    assert "MARKED" not in case.hides or not got["marked"], told
    assert got["state_kept"], told
    assert (got["after"], got["alive"]) == ("42\n", "42\n"), told


def test_every_category_has_several_snippets() -> None:
    counted = {case.category for case in CASES.values()}
    assert counted == set(range(1, 53)) - {51}  # faults on our side: test_host_faults
    assert len(CASES) >= 150
    assert min(sum(case.category == number for case in CASES.values()) for number in counted) >= 2
