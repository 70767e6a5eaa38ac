"""Run folders as they grow: an index of their trajectories in memory, each trajectory from disk when somebody reads it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..trajectory import store
from ._math import Formulas
from ._read import Run, read_runs
from ._records import Place, Shelf, places, row_of, set_formulas

MOST_CHARS = 200
"""Of a question, in the index."""


@dataclass
class _Log:
    """What is known of the records of one place."""

    place: Place
    rows: list[dict[str, Any]] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    """Byte at which each record begins."""
    end: int = 0
    """Bytes read so far."""


class Library:
    """Trajectories of run folders; `refresh` reads what was appended since."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = folders
        self._logs: dict[str, _Log] = {}

    def version(self) -> str:
        """Changes when a file of the runs does: names, sizes and times."""
        digest = hashlib.blake2b(digest_size=8)
        for folder in self._folders:
            for pattern in ("*.*", "*/*.*", "*/*/*.*", "*/*/*/*.*"):
                for path in sorted(folder.glob(pattern)):
                    if path.suffix in (".json", ".jsonl", ".yaml") and path.is_file():
                        found = path.stat()
                        digest.update(f"{path}\0{found.st_size}\0{found.st_mtime_ns}\n".encode("utf-8", "replace"))
        return digest.hexdigest()

    def refresh(self) -> tuple[Run, list[Shelf]]:
        """The runs, and the index of their trajectories: rows without segments, numbered by `i` in each place.

        Raises:
            RunFolderError: a folder is missing, or has nothing of a run in it.
            DataError: a file can't be read.
        """
        run = read_runs(self._folders)
        now = {place.key: place for place in places(self._folders, run.checkpoints)}
        self._logs = {key: self._follow(place) for key, place in now.items()}
        return run, [Shelf(key, log.place.label, len(log.rows), log.rows) for key, log in self._logs.items()]

    def _follow(self, place: Place) -> _Log:
        log = self._logs.get(place.key)
        size = (place.folder / store.LOG).stat().st_size
        if log is None or log.place != place or size < log.end:
            log = _Log(place)  # new, measured since, or cut by a resumed run
        for start, end, record in store.follow(place.folder, start=log.end):
            row = row_of(record, place)
            del row["s"]
            log.rows.append(row | {"q": row["q"][:MOST_CHARS], "i": len(log.rows)})
            log.starts.append(start)
            log.end = end
        return log

    def trajectory(self, key: str, number: int) -> dict[str, Any]:
        """A row with its segments, and the formulas they name.

        Raises:
            LookupError: no such place, or no record of that number in it.
        """
        log = self._logs[key]
        _, _, record = next(store.follow(log.place.folder, start=log.starts[number]))
        formulas = Formulas()
        row = row_of(record, log.place)
        set_formulas(row, formulas)
        return {"row": row, "formulas": formulas.trees}

    def search(self, text: str) -> dict[str, list[int]]:
        """By place, the numbers of records that have a text in question, answer, id or any segment; case does not matter."""
        wanted = text.lower()
        return {
            key: [
                number
                for number, (_, end, record) in enumerate(store.follow(log.place.folder))
                if end <= log.end and wanted in _text(record)
            ]
            for key, log in self._logs.items()
        }


def _text(record: store.Record) -> str:
    one = record.trajectory
    about = (one.address.problem, one.question, one.answer or "", str(record.annotations.get("gold") or ""))
    return "\n".join((*about, *(segment.text for segment in one.segments))).lower()
