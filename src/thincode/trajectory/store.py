"""Records on disk: `trajectories.jsonl`, one line each, and `ids/`, the token ids and log-probabilities beside it.

    {"schema": 1, "address": {…}, "question": …, "segments": [{"kind": "plan", "text": …}, …], …,
     "ids": {"file": "rl-1-000012.z", "at": 0, "bytes": 812, "tokens": 311}, "annotations": {…}}

A file in `ids/` holds the records of one stage and step, each as one zlib block of three little-endian arrays of T: ids
(int32), authors (uint8), log-probabilities (float32). Both are only ever appended to, the ids before the line that names
them, so a line never points at ids that are not there. What a kill leaves behind the last line is cut off when the store is
opened again.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np

from .. import atomic
from ..errors import DataError, RunFolderError
from ..runlog import Log, read_log
from . import Address, Block, BlockStatus, EndReason, Segment, SegmentKind, Tokens, Trajectory

SCHEMA = 1
LOG = "trajectories.jsonl"
IDS = "ids"


@dataclass(frozen=True)
class Record:
    """A trajectory, and what the loops found out about it."""

    trajectory: Trajectory
    annotations: Mapping[str, Any] = field(default_factory=dict)
    """Free JSON: gold answer, tags, grade, reward, verdicts."""


class Store:
    """The records of one run folder, open for appending by one process."""

    def __init__(self, folder: Path | str, *, keep_ids: bool = True) -> None:
        """Open or create; cut off what a killed writer left half written.

        Args:
            folder: the run folder.
            keep_ids: whether `append` writes ids; a record read back has no tokens otherwise.

        Raises:
            RunFolderError: the records were written by a newer version.
        """
        self._folder = Path(folder)
        self._keep_ids = keep_ids
        self._log = Log(self._folder / LOG)
        self._keys: set[tuple[str, int, str, int]] = set()
        self._length: dict[str, int] = {}  # bytes of each ids file that lines name
        self._unsynced: set[str] = set()
        try:
            self._repair()
        except BaseException:
            self.close()
            raise

    def append(self, trajectory: Trajectory, annotations: Mapping[str, Any] | None = None) -> None:
        """Write one record; it survives the death of this process, and after `sync` that of the machine.

        Raises:
            ValueError: the run folder has a record of this address already.
            OSError: the disk is full; the record is not there then.
        """
        key = trajectory.address.key
        if key in self._keys:
            raise ValueError(f"there is a record of {key} already")
        line = to_json(trajectory)
        if self._keep_ids and trajectory.tokens is not None:
            line["ids"] = self._append_ids(trajectory.address, trajectory.tokens)
        line["annotations"] = dict(annotations or {})
        self._log.append(line)
        self._keys.add(key)
        if "ids" in line:
            self._length[line["ids"]["file"]] += line["ids"]["bytes"]

    def sync(self) -> dict[str, int]:
        """Make everything durable; returns the committed length by file, for a checkpoint's manifest."""
        for name in sorted(self._unsynced):
            with (self._folder / IDS / name).open("rb") as file:
                os.fsync(file.fileno())
        if self._unsynced:
            atomic.sync_folder(self._folder / IDS)
            self._unsynced.clear()
        offset = self._log.sync()
        atomic.sync_folder(self._folder)
        return {LOG: offset}

    def truncate(self, offsets: Mapping[str, int]) -> None:
        """Go back to what `sync` returned: later records, and their ids, are gone.

        Raises:
            RunFolderError: the log is shorter than that.
        """
        if self._log.offset < offsets[LOG]:
            raise RunFolderError(
                f"{self._log.path}: {self._log.offset} bytes, but the checkpoint was taken at {offsets[LOG]}; the file was "
                "changed since. Restore it, or start a new run folder"
            )
        self._log.truncate(offsets[LOG])
        self._repair()

    def keys(self) -> set[tuple[str, int, str, int]]:
        """`Address.key` of every record."""
        return set(self._keys)

    def records(self, *, ids: bool = True) -> Iterator[Record]:
        """The records in the order they were written; see `read`."""
        return read(self._folder, ids=ids)

    def close(self) -> None:
        """Close the log; nothing is synced."""
        self._log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: object) -> None:
        self.close()

    def _append_ids(self, address: Address, tokens: Tokens) -> dict[str, Any]:
        name = f"{re.sub(r'[^A-Za-z0-9.-]+', '-', address.stage)}-{address.step:06d}.z"
        path = self._folder / IDS / name
        path.parent.mkdir(exist_ok=True)
        at = self._length.setdefault(name, 0)
        block = _pack(tokens)
        # Not appended blindly: an earlier write may have failed half way.
        with path.open("r+b" if path.exists() else "wb") as file:
            file.truncate(at)
            file.seek(at)
            file.write(block)
        self._unsynced.add(name)
        return {"file": name, "at": at, "bytes": len(block), "tokens": len(tokens)}

    def _repair(self) -> None:
        """Learn what the lines name; cut the log at the first line whose ids are missing, and ids that no line names."""
        self._keys, self._length = set(), {}
        folder = self._folder / IDS
        sizes = {path.name: path.stat().st_size for path in folder.glob("*.z")} if folder.exists() else {}
        for at, line in _lines(self._log.path):
            ids = line.get("ids")
            if ids is not None:
                end = ids["at"] + ids["bytes"]
                if end > sizes.get(ids["file"], 0):  # only after the machine died: everything synced is there
                    self._log.truncate(at)
                    break
                self._length[ids["file"]] = end
            self._keys.add(_address(line).key)
        for name, size in sizes.items():
            if name not in self._length:
                (folder / name).unlink()
            elif size > self._length[name]:
                os.truncate(folder / name, self._length[name])


def read(folder: Path | str, *, ids: bool = True) -> Iterator[Record]:
    """The records of a run folder, also of one that another process is writing.

    Args:
        folder: the run folder; without a log there are no records.
        ids: False leaves the tokens out, which is quicker.

    Raises:
        DataError: a line or its ids can't be read (file and line named).
        RunFolderError: the records were written by a newer version.
    """
    folder = Path(folder)
    for number, line in enumerate(read_log(folder / LOG), start=1):
        place = f"{folder / LOG}:{number}"
        _check_schema(line, place)
        try:
            tokens = _unpack(folder / IDS, line["ids"]) if ids and "ids" in line else None
            yield Record(from_json(line, tokens), line.get("annotations", {}))
        except (KeyError, TypeError, ValueError, OSError, zlib.error) as error:
            raise DataError(
                f"{place}: no record of a trajectory ({type(error).__name__}: {error}); restore the file, or read without it"
            ) from None


def follow(folder: Path | str, *, start: int = 0) -> Iterator[tuple[int, int, Record]]:
    """The records from a byte of the log on, without their tokens, each with the bytes it begins and ends at.

    A torn last line is left for the next time: another process may be writing it.

    Args:
        folder: the run folder; without a log there are no records.
        start: a byte at which a record begins.

    Raises:
        DataError: a line can't be read (file and byte named).
        RunFolderError: the records were written by a newer version.
    """
    path = Path(folder) / LOG
    if not path.exists():
        return
    with path.open("rb") as file:
        file.seek(start)
        for raw in file:
            end = start + len(raw)
            if not raw.endswith(b"\n"):
                return
            place = f"{path}, byte {start}"
            try:
                line = json.loads(raw.decode("utf-8", "surrogatepass"))
                _check_schema(line, place)
                record = Record(from_json(line), line.get("annotations", {}))
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise DataError(
                    f"{place}: no record of a trajectory ({type(error).__name__}: {error}); restore the file"
                ) from None
            yield start, end, record
            start = end


def _lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Each line with the byte it starts at."""
    at = 0
    with path.open("rb") as file:
        for number, raw in enumerate(file, start=1):
            place = f"{path}:{number}"
            try:
                line = json.loads(raw.decode("utf-8", "surrogatepass"))
                _check_schema(line, place)
                _address(line)
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise DataError(
                    f"{place}: no record of a trajectory ({error}); it was not written by thincode"
                ) from None
            yield at, line
            at += len(raw)


def _check_schema(line: Mapping[str, Any], place: str) -> None:
    schema = line.get("schema", 0)
    if schema > SCHEMA:
        raise RunFolderError(
            f"{place}: written in schema {schema}, this thincode reads up to {SCHEMA}; install the version that wrote it "
            "(environment.json has it) or a newer one"
        )


def to_json(trajectory: Trajectory) -> dict[str, Any]:
    """A record as plain JSON, without its tokens."""
    usage = {"usage": dict(trajectory.usage)} if trajectory.usage else {}
    return {
        "schema": SCHEMA,
        "address": vars(trajectory.address),
        "question": trajectory.question,
        "format": trajectory.format,
        "prompt": trajectory.prompt,
        "segments": [_segment_to_json(segment) for segment in trajectory.segments],
        "end": trajectory.end,
        "answer": trajectory.answer,
        "versions": dict(trajectory.versions),
        "generate_s": trajectory.generate_s,
        "execute_s": trajectory.execute_s,
        **usage,
    }


def _segment_to_json(segment: Segment) -> dict[str, Any]:
    line: dict[str, Any] = {"kind": segment.kind, "text": segment.text, "content": segment.content}
    if segment.start is not None:
        line |= {"start": segment.start, "end": segment.end}
    if segment.block is not None:
        line["block"] = vars(segment.block)
    return line


def _address(line: Mapping[str, Any]) -> Address:
    return Address(**line["address"])


def from_json(line: Mapping[str, Any], tokens: Tokens | None = None) -> Trajectory:
    """What `to_json` gave, with its tokens put back."""
    return Trajectory(
        address=_address(line),
        question=line["question"],
        format=line["format"],
        prompt=line["prompt"],
        segments=tuple(_segment_from_json(segment) for segment in line["segments"]),
        end=EndReason(line["end"]),
        answer=line["answer"],
        tokens=tokens,
        versions=line["versions"],
        generate_s=line["generate_s"],
        execute_s=line["execute_s"],
        usage=line.get("usage", {}),
    )


def _segment_from_json(line: Mapping[str, Any]) -> Segment:
    block = line.get("block")
    return Segment(
        kind=SegmentKind(line["kind"]),
        text=line["text"],
        content=line["content"],
        start=line.get("start"),
        end=line.get("end"),
        block=None if block is None else Block(**{**block, "status": BlockStatus(block["status"])}),
    )


def _pack(tokens: Tokens) -> bytes:
    arrays = (tokens.ids.astype("<i4"), tokens.author.astype("u1"), tokens.logprob.astype("<f4"))
    return zlib.compress(b"".join(array.tobytes() for array in arrays))


def _unpack(folder: Path, place: Mapping[str, Any]) -> Tokens:
    with (folder / place["file"]).open("rb") as file:
        file.seek(place["at"])
        raw = zlib.decompress(file.read(place["bytes"]))
    length = place["tokens"]
    if len(raw) != 9 * length:
        raise ValueError(f"{place['file']} holds {len(raw)} bytes for {length} tokens")
    return Tokens(
        np.frombuffer(raw, "<i4", length).astype(np.int32),
        np.frombuffer(raw, "u1", length, offset=4 * length).astype(np.uint8),
        np.frombuffer(raw, "<f4", length, offset=5 * length).astype(np.float32),
    )
