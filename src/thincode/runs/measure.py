"""Measure trajectories that are there: published transcripts of any system we can read, or the records of a run folder.

for each line, in as many processes as there are cores:  record → grade → what each metric sees of it     then: sum up

Lines are read once and forgotten; memory grows with what the metrics saw, not with what was said.
"""

from __future__ import annotations

import gc
import itertools
import json
import multiprocessing
import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import DataError, RunFolderError
from ..evaluation import Scorecard
from ..evaluation.scorecard import Looked, look, sum_up
from ..grading import Graded, records
from ..grading.answers import Grader
from ..problems import Problem
from ..runlog import Progress
from ..settings import Kind, kind, kinds
from ..trajectory import published, store
from ..trajectory.formats import ROOM, Format, build, has_blocks
from .workshop import ShowProgress

_CHUNK = 200
"""Lines a process takes at a time."""
_ALONE = 2 * _CHUNK
"""Up to so many lines, starting processes costs more than it saves."""
_NO_TAGS = frozenset(
    {"id", "problem", "question", "prompt", "answer", "source", "pred", "report", "sample", "format", "url"}
)
_TAG_CHARS = 60
_TRIED = 50
"""Rows in which other formats look for blocks, where the one named found none anywhere."""


@dataclass(frozen=True)
class Measured:
    """A scorecard, and where the file itself says otherwise."""

    card: Scorecard
    claimed: int
    """Rows that say themselves, in a field `correct`, whether they are right."""
    disagree: Sequence[str]
    """Ids of those that we grade otherwise."""
    doubt: str = ""
    """Why the format may be another than the one that was named; empty where nothing speaks against it."""


@dataclass(frozen=True)
class _Task:
    """What a process needs to know once."""

    path: Path
    format: Kind | None
    """None for records of our own."""
    metrics: tuple[Kind, ...]


class _Line(NamedTuple):
    looked: Looked
    claim: bool | None
    has_blocks: bool


def run(
    path: Path, *, format: Kind | None, metrics: Sequence[Kind], progress: ShowProgress, processes: int = 0
) -> Measured:
    """The scorecard of a file of transcripts, or of a run folder.

    Args:
        path: a JSONL file, see `trajectory.published.trajectory_of` for what a row holds, with the gold answer in `answer`; or
            a folder with `trajectories.jsonl`, whose grades are taken as they are.
        format: the wire format of a file.
        metrics: kinds of `evaluation.metrics`.
        progress: makes the line that shows how far it is.
        processes: 0 takes as many as there are cores.

    Raises:
        DataError: no such file; a line that can't be read, or without a gold answer (file and line named).
        RunFolderError: the folder holds no trajectories.
    """
    if path.is_dir():
        path, format = path / store.LOG, None
        if not path.is_file():
            raise RunFolderError(
                f"{path.parent}: no {store.LOG} in it; name the folder of a distillation or an evaluation"
            )
    elif format is None:
        raise DataError(f"{path}: which format? Name it with --format NAME, for example tora")
    if not path.is_file():
        raise DataError(f"{path}: no such file; transcripts are read from a JSONL file, one object a line")
    task = _Task(path, format, tuple(metrics))
    with progress("measure", total=None, unit="trajectories") as line:
        found = list(_all_lines(task, processes or len(os.sched_getaffinity(0)), line))
    judged = [one for one in found if one.claim is not None]
    gc.freeze()  # millions of small objects and none of them garbage: looking for it would take as long as the sums
    try:
        card = sum_up([one.looked for one in found], metrics, name=path.parent.name if format is None else path.stem)
    finally:
        gc.unfreeze()
    return Measured(
        card=card,
        claimed=len(judged),
        disagree=[one.looked.row.problem for one in judged if one.claim != one.looked.row.correct],
        doubt="" if format is None or any(one.has_blocks for one in found) else _doubt(path, format),
    )


def _doubt(path: Path, format: Kind) -> str:
    """Of a file in which a format with code found no code: which format finds most, in its first lines."""
    if not has_blocks(build(format)):
        return ""
    with path.open("rb") as file:
        first = [_object(line, str(path)) for line in itertools.islice(filter(bytes.strip, file), _TRIED)]
    with_blocks = {name: sum(_reads(row, build(kind(ROOM, name))) for row in first) for name in kinds(ROOM)}
    most = max(with_blocks.values(), default=0)
    names = ", ".join(name for name, number in with_blocks.items() if number == most)
    better = f"; in the first {len(first)} rows {names}: blocks in {most}" if most else ""
    return f"{path}: {format.name} finds no block that ran{better}; is --format right?"


def _reads(row: Mapping[str, Any], format: Format) -> bool:
    try:
        return bool(published.trajectory_of(row, format=format, place="", name="").blocks)
    except DataError:
        return False


def _all_lines(task: _Task, processes: int, line: Progress) -> Iterator[_Line]:
    with task.path.open("rb") as file:
        numbered = ((number, text) for number, text in enumerate(file, start=1) if text.strip())
        first = list(itertools.islice(numbered, _ALONE))
        if processes < 2 or len(first) < _ALONE:
            with Grader() as grader:
                looker = _Looker(task, grader)
                for one in itertools.chain(first, numbered):
                    line.advance(1)
                    yield looker.look(*one)
            return
        # Spawned, not forked: this process may have threads. A few chunks are on their way; the rest waits in the file.
        pool = ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"), _begin, (task,))
        with pool:
            for found in _in_order(pool, _chunks(itertools.chain(first, numbered)), 3 * processes):
                line.advance(len(found))
                yield from found


def _chunks(lines: Iterable[tuple[int, bytes]]) -> Iterator[list[tuple[int, bytes]]]:
    lines = iter(lines)
    while chunk := list(itertools.islice(lines, _CHUNK)):
        yield chunk


def _in_order(pool: ProcessPoolExecutor, chunks: Iterator[list[tuple[int, bytes]]], most: int) -> Iterator[list[_Line]]:
    waiting: deque[Future[list[_Line]]] = deque()
    try:
        for chunk in chunks:
            waiting.append(pool.submit(_look, chunk))
            if len(waiting) >= most:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


# --- in a process of its own ----------------------------------------------------------------------------------------


class _Looker:
    """Turns lines into what the metrics saw of them."""

    def __init__(self, task: _Task, grader: Grader) -> None:
        self._task, self._grader = task, grader
        self._format = build(task.format) if task.format is not None else None

    def look(self, number: int, text: bytes) -> _Line:
        place = f"{self._task.path}:{number}"
        row = _object(text, place)
        if self._format is None:
            graded = _own(row, place)
        else:
            name = f"{self._task.path.stem}:{number}"
            graded = _foreign(row, format=self._format, grader=self._grader, place=place, name=name)
        claim = row.get("correct")
        claim = claim if isinstance(claim, bool) else None
        return _Line(look(graded, self._task.metrics), claim, bool(graded.trajectory.blocks))


_here: _Looker | None = None
"""In a process of the pool: its looker, which lives as long as the process."""


def _begin(task: _Task) -> None:
    global _here
    _here = _Looker(task, Grader())


def _look(lines: Sequence[tuple[int, bytes]]) -> list[_Line]:
    assert _here is not None
    return [_here.look(*line) for line in lines]


def _object(text: bytes, place: str) -> dict[str, Any]:
    try:
        row = json.loads(text.decode("utf-8", "surrogatepass"))
    except ValueError as error:
        raise DataError(f"{place}: not JSON ({error}); each line must be one JSON object in UTF-8") from None
    if not isinstance(row, dict):
        raise DataError(f"{place}: found {str(row)[:80]!r}; each line must be one JSON object")
    return row


def _own(row: Mapping[str, Any], place: str) -> Graded:
    try:
        trajectory, annotations = store.from_json(row), row["annotations"]
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{place}: no record of a trajectory ({type(error).__name__}: {error})") from None
    return records.graded_from_record(trajectory, annotations)


def _foreign(row: Mapping[str, Any], *, format: Format, grader: Grader, place: str, name: str) -> Graded:
    trajectory = published.trajectory_of(row, format=format, place=place, name=name)
    gold = row.get("answer")
    if gold is None or not str(gold).strip():
        raise DataError(f"{place}: no gold answer; a row holds it in the field `answer`")
    tags = {
        key: str(value)
        for key, value in row.items()
        if key not in _NO_TAGS
        and isinstance(value, (str, int))
        and not isinstance(value, bool)
        and len(str(value)) <= _TAG_CHARS
    }
    problem = Problem(trajectory.address.problem, trajectory.question, str(gold), tags)
    return Graded(problem, replace(trajectory, tokens=None), grader.grade(trajectory.answer, str(gold)))
