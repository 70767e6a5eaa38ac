"""Many sessions for a long time: no cross-talk, no orphan, flat memory; and nothing is left however it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
ROOT = Path(__file__).parents[2]
GRACE_S = 2.0
"""After which nothing may be left."""


def processes_of(mark: str) -> list[str]:
    """Processes that carry the mark in their environment or command: sessions have neither, so all below those too."""
    parents: dict[int, int] = {}
    marked = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text().rpartition(")")[2].split()
                if stat[0] == "Z":
                    continue
                parents[int(entry.name)] = int(stat[1])
                if mark.encode() in (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes():
                    marked.add(int(entry.name))
            except OSError:
                continue
    while more := {pid for pid, parent in parents.items() if parent in marked} - marked:
        marked |= more
    return sorted(map(str, marked))


def left(scratch: Path, seen: set[str]) -> str:
    """What is left of an interpreter whose folder was here; empty if nothing. (It makes no cgroup.)"""
    found = [f"file {path}" for path in scratch.rglob("*")]
    found += [f"process {pid}" for pid in processes_of(str(scratch))]
    found += [f"process {pid}" for pid in seen if Path(f"/proc/{pid}").exists() and not ended(pid)]
    found += [f"mount {line}" for line in Path("/proc/self/mountinfo").read_text().splitlines() if str(scratch) in line]
    return "\n".join(found)


def ended(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


@contextmanager
def soaking(scratch: Path, *, seconds: float, sessions: int) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, str(Path(__file__).with_name("soak.py")), str(seconds), str(sessions), "7"]
    environment = {
        **os.environ, "TMPDIR": str(scratch), "PYTHONPATH": f"{ROOT / 'src'}:{ROOT / 'tests'}",
        "PYTHONDONTWRITEBYTECODE": "1",
    }  # fmt: skip
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as client:
        try:
            yield client
        finally:
            client.kill()


def check(scratch: Path, *, seconds: float, sessions: int) -> None:
    with soaking(scratch, seconds=seconds, sessions=sessions) as client:
        told, _ = client.communicate(timeout=10 * seconds + 600)
    assert client.returncode == 0
    time.sleep(GRACE_S)
    assert not left(scratch, set())
    seen = json.loads(told)
    assert not seen["wrong"], "\n".join(seen["wrong"][:20])
    assert seen["blocks"] > sessions / 2
    assert {"ok", "error", "limit"} <= set(seen["statuses"])
    assert "lost" not in seen["statuses"], seen
    assert seen["branches"]
    assert seen["spent"] < seen["blocks"] / 50
    # After the first quarter nothing grows with the number of blocks.
    memory = seen["rss_mib"][len(seen["rss_mib"]) // 4 :]
    assert max(memory) - memory[0] < 8, memory


def test_two_hundred_sessions_for_a_minute(tmp_path: Path) -> None:
    check(tmp_path, seconds=60, sessions=200)


@pytest.mark.slow
def test_a_thousand_sessions_for_ten_minutes(tmp_path: Path) -> None:
    check(tmp_path, seconds=600, sessions=1000)


@pytest.mark.parametrize("victim", ["the client", "the supervisor"])
def test_nothing_is_left_after_a_kill(victim: str, tmp_path: Path) -> None:
    with soaking(tmp_path, seconds=6, sessions=10) as client:
        deadline = time.monotonic() + 60
        while len(seen := set(processes_of(str(tmp_path)))) < 25:  # each session has a root and a worker
            assert time.monotonic() < deadline
            time.sleep(0.1)
        time.sleep(1)
        seen |= set(processes_of(str(tmp_path)))
        if victim == "the client":
            client.kill()
        else:
            (supervisor,) = Path(f"/proc/{client.pid}/task/{client.pid}/children").read_text().split()
            os.kill(int(supervisor), signal.SIGKILL)
            client.wait(timeout=120)
        time.sleep(GRACE_S)
        assert not left(tmp_path, seen - {str(client.pid)})
