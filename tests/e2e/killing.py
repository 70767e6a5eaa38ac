"""Run the real command in a process of its own, and kill it where and when a test says."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

PATIENCE_S = 600.0
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}


@dataclass(frozen=True)
class Moment:
    """A moment of a run: as soon as a path matches, and a random while later."""

    glob: str
    """Relative to the run folder."""
    at_least: int = 0
    """Bytes the path must have (files only)."""
    within_s: float = 0.5
    """The longest that is waited after that."""

    def has_come(self, out: Path) -> bool:
        try:
            return any(path.is_dir() or path.stat().st_size >= self.at_least for path in out.glob(self.glob))
        except FileNotFoundError:  # renamed while we looked
            return False


def command(verb: str, *words: str) -> list[str]:
    return [sys.executable, "-m", "thincode", verb, *words]


def run(*words: str, timeout: float = PATIENCE_S, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "thincode", *words],
        capture_output=True,
        text=True,
        timeout=timeout,
        env=ENVIRONMENT,
        cwd=cwd,
    )


@dataclass(frozen=True)
class Ended:
    """How a run that was to be stopped ended."""

    code: int
    hit: bool
    """Whether it was stopped, and not over before."""
    stderr: str
    left_over: Sequence[str]
    """Processes it had started that are still there two seconds later."""


def stop(words: Sequence[str], *, out: Path, moment: Moment, random: Random, with_signal: int, log: Path) -> Ended:
    """Start the command, send it a signal at the moment, and wait for its end and its processes'.

    Args:
        words: of the command line.
        out: its run folder.
        moment: when.
        random: draws the while after it.
        with_signal: SIGKILL; or SIGINT, which the whole process group gets, as Ctrl-C in a terminal does.
        log: where its stderr goes.
    """
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            command(*words),
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            env=ENVIRONMENT,
            start_new_session=True,
            preexec_fn=_hear_ctrl_c,
        )
    # Python itself answers Ctrl-C with a traceback until our first line runs, so that one waits for a run that has begun.
    ready = (lambda: _holds(out, process.pid)) if with_signal == signal.SIGINT else (lambda: True)
    _wait(lambda: (moment.has_come(out) and ready()) or process.poll() is not None)
    time.sleep(random.uniform(0, moment.within_s))
    started = _descendants(process.pid)
    hit = process.poll() is None
    if hit and with_signal == signal.SIGINT:
        os.killpg(process.pid, with_signal)  # as a terminal does
    elif hit:
        process.send_signal(with_signal)
    process.wait(PATIENCE_S)
    deadline = time.monotonic() + 2.0
    while time.monotonic() < deadline and any(_alive(*one) for one in started.items()):
        time.sleep(0.02)
    left = [_command_line(pid) for pid, born in started.items() if _alive(pid, born)]
    return Ended(process.returncode, hit, log.read_text(encoding="utf-8", errors="replace"), left)


def _hear_ctrl_c() -> None:
    """Tests that run in a shell's background were told to ignore it, and would pass that on."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _holds(out: Path, pid: int) -> bool:
    """Whether the process has taken the run folder."""
    try:
        return (out / ".lock").read_text(encoding="ascii").strip() == str(pid)
    except FileNotFoundError:
        return False


def _wait(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "the moment did not come"
        time.sleep(0.002)


def _stat(pid: int) -> list[str] | None:
    """Fields of /proc/PID/stat behind the name: state, parent, …; None when there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None


def _descendants(root: int) -> dict[int, str]:
    """Processes below `root`, each with the time it was born, which tells a number that was given again."""
    parents = {int(path.name): _stat(int(path.name)) for path in Path("/proc").glob("[0-9]*")}
    found: dict[int, str] = {}
    wanted = {root}
    while wanted:
        below = {pid: stat[19] for pid, stat in parents.items() if stat and int(stat[1]) in wanted}
        wanted = set(below) - set(found)
        found |= below
    return found


def _alive(pid: int, born: str) -> bool:
    stat = _stat(pid)
    return stat is not None and stat[0] not in "ZX" and stat[19] == born


def _command_line(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
    except (FileNotFoundError, ProcessLookupError):
        words = "?"
    return f"{pid} {words}"
