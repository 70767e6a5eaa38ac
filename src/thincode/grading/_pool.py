"""A few killable processes that answer one question: do these two expressions have the same value?"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import sys
import threading
import time
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from ..errors import InfrastructureError

_WORKER = Path(__file__).with_name("_equality_worker.py")
_ENVIRONMENT = ("PATH", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT", "TMPDIR")
"""What a worker inherits: what Python needs to start, and no secrets."""
_START_S = 120.0
"""Wall seconds a worker may take to load sympy, on however busy a machine."""


class Comparison(Enum):
    """What a worker found."""

    EQUAL = "equal"
    DIFFERENT = "different"
    UNPARSABLE = "unparsable"
    TIME_LIMIT = "time_limit"


_FOUND = {
    True: Comparison.EQUAL,
    False: Comparison.DIFFERENT,
    None: Comparison.UNPARSABLE,
    "crash": Comparison.UNPARSABLE,
    "time_limit": Comparison.TIME_LIMIT,
}


class Compared(NamedTuple):
    """What was found, and the CPU seconds it took."""

    found: Comparison
    cpu_s: float


class _Worker:
    def __init__(self, memory_mib: int) -> None:
        # Started by exec, never by a bare fork: the owner may have threads. One hash seed: sympy's orders repeat.
        self.process = subprocess.Popen(
            [sys.executable, "-P", str(_WORKER), str(memory_mib)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ} | {"PYTHONHASHSEED": "0"},
        )
        self.is_ready = False
        self.answers = True
        """False once a question was left unanswered: what comes next would be the answer to that one."""

    def wait_ready(self) -> None:
        if not self.is_ready:
            if self.read_line(_START_S) != b'"ready"\n':
                self.kill()
                raise InfrastructureError(
                    f"a grading process did not start (exit {self.process.returncode}): run `{sys.executable} "
                    f"{_WORKER} 2048` to see why"
                )
            self.is_ready = True

    def read_line(self, wall_s: float) -> bytes:
        """One line, or what there is of it when the process ended or the seconds are over."""
        assert self.process.stdout is not None
        end, line = time.monotonic() + wall_s, b""
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while not line.endswith(b"\n") and selector.select(max(0.0, end - time.monotonic())):
                piece = os.read(self.process.stdout.fileno(), 65_536)
                if not piece:
                    break
                line += piece
        return line

    def ask(self, gold: str, answer: str, cpu_s: float) -> Compared | None:
        """None if the process is gone."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps([gold, answer, cpu_s]).encode() + b"\n")
            self.process.stdin.flush()
        except OSError:
            return None
        # The CPU limit decides; the wall limit is for a process that sleeps or a machine that stalls.
        line = self.read_line(20 * cpu_s + 5)
        if not line.endswith(b"\n"):
            self.answers = False
            return None if self.process.poll() is not None else Compared(Comparison.TIME_LIMIT, cpu_s)
        found, used = json.loads(line)
        return Compared(_FOUND[found], cpu_s if used is None else used)

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):  # unsent bytes for a dead process
                    pipe.close()


class Pool:
    """At most `processes` workers, started when first needed; any thread may ask."""

    def __init__(self, *, processes: int, memory_mib: int) -> None:
        self._memory_mib = memory_mib
        self._room = threading.BoundedSemaphore(processes)
        self._idle: list[_Worker] = []
        self._owner = os.getpid()

    def compare(self, gold: str, answer: str, *, cpu_s: float) -> Compared:
        """Whether `answer` has the value of `gold`; what is not decided within the CPU seconds is killed.

        Raises:
            InfrastructureError: no worker can be started.
        """
        with self._room:
            for _ in range(2):
                worker = self._take()
                worker.wait_ready()
                compared = worker.ask(gold, answer, cpu_s)
                if compared is None or not worker.answers:
                    worker.kill()
                else:
                    self._idle.append(worker)
                if compared is not None:
                    return compared
            return Compared(Comparison.UNPARSABLE, 0.0)  # two processes in a row died on it

    def _take(self) -> _Worker:
        if self._owner != os.getpid():  # after a fork the workers belong to the parent
            self._owner, self._idle = os.getpid(), []
        while self._idle:
            worker = self._idle.pop()
            if worker.alive:
                return worker
            worker.kill()
        return _Worker(self._memory_mib)

    def close(self) -> None:
        """End the workers."""
        while self._idle:
            worker = self._idle.pop()
            if self._owner == os.getpid():
                worker.kill()
