"""A real `thincode interpreter serve` in a process of its own, on a real loopback socket."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Self

SOURCE = Path(__file__).parents[1] / "src"
BARE = ("backend.preload=[]", "backend.pool=2")
"""The quickest sessions to make."""


class Server:
    """One service; it may be stopped and started again at the same place."""

    def __init__(self, *words: str, token: str | None = None) -> None:
        self.words = words
        self.token = token
        self.url = ""
        self.start()

    def start(self) -> None:
        """Start it, at the port it had before."""
        port = self.url.rpartition(":")[2] or "0"
        kept = {name: value for name, value in os.environ.items() if name != "THINCODE_TOKEN"}
        secret = {"THINCODE_TOKEN": self.token} if self.token else {}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "thincode", "interpreter", "serve", f"port={port}", *BARE, *self.words],
            stdout=subprocess.PIPE,
            text=True,
            env={**kept, **secret, "PYTHONPATH": str(SOURCE)},
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line.startswith("serving at "):
            self.stop()
            raise AssertionError("the server did not start: see its words on standard error")
        self.url = line.split()[2]

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and wait for the end; the exit status."""
        self.process.send_signal(number)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return self.process.wait(timeout=60)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: object) -> None:
        if self.process.returncode is None:
            self.stop()
