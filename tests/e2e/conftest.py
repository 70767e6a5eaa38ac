"""One finished small run, made once, that tests look at and copy but never change."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from e2e.killing import run
from e2e.small import SMALL


@pytest.fixture(scope="session")
def small_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run folder of `SMALL`, not interrupted; all test processes share it."""
    pytest.importorskip("torch", reason="needs torch: pip install 'thincode[train]'")
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "small-run"
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            ran = run("run", *SMALL, "--quiet", "--out", str(folder))
            assert ran.returncode == 0, ran.stderr
    return folder
