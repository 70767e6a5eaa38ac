"""The run folder: plain files that viewer, report, tests and users read.

    recipe.resolved.yaml   every setting with its value
    environment.json       versions, machine, isolation tier
    metrics.jsonl          one line a step
    trajectories.jsonl     one line a trajectory
    ids/                   token ids and log-probabilities, compressed
    checkpoint/            weights and state; its manifest holds the committed length of each log
    scorecard.json         estimates
    report.html            the page
    done.json              written last

A log is append-only. What stands behind the committed offset after a crash is cut off on resume, so that each record is
there exactly once.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .errors import DataError


class Log:
    """An append-only JSONL file that survives kill -9: a torn last line is repaired when it is opened again."""

    def __init__(self, path: Path) -> None:
        """Open for appending; create it, and its folder, if missing; cut a torn last line."""
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("ab")
        self._cut_torn_line()

    def _cut_torn_line(self) -> None:
        size = self.path.stat().st_size
        with self.path.open("rb") as file:
            keep = size
            while keep > 0:
                start = max(0, keep - 65_536)
                file.seek(start)
                found = file.read(keep - start).rfind(b"\n")
                if found >= 0:
                    keep = start + found + 1
                    break
                keep = start
        if keep < size:
            self.truncate(keep)

    @property
    def offset(self) -> int:
        """Bytes written so far."""
        return self._file.seek(0, os.SEEK_END)

    def append(self, record: Any) -> None:
        """Write one record and hand it to the system (it then survives the death of this process, not of the machine)."""
        self._file.write(
            json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass") + b"\n"
        )
        self._file.flush()

    def sync(self) -> int:
        """Make everything written durable; returns the offset to commit."""
        self._file.flush()
        os.fsync(self._file.fileno())
        return self.offset

    def truncate(self, offset: int) -> None:
        """Drop everything from `offset` on."""
        os.ftruncate(self._file.fileno(), offset)
        self._file.seek(0, os.SEEK_END)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read_log(path: Path) -> Iterator[Any]:
    """The records of a log; a torn last line is left out.

    Raises:
        DataError: a line before the last one is no JSON (file and line named).
    """
    if not path.exists():
        return
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                return
            try:
                yield json.loads(line.decode("utf-8", "surrogatepass"))
            except ValueError as error:
                raise DataError(f"{path}:{number}: not JSON ({error}); the line was not written by thincode") from None
