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
there exactly once. One process at a time writes a folder; the lock (`.lock`) ends with the process, however it ends.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

from . import atomic
from ._environment import environment
from ._progress import Progress, duration
from .errors import DataError, RunFolderError, RunInUseError
from .settings import leaves, read_yaml, write_yaml

__all__ = ["FORMAT", "Log", "Progress", "RunFolder", "duration", "read_log"]

FORMAT = 1
"""Version of the run folder; grows when an older thincode could no longer read a new folder."""


class Log:
    """An append-only JSONL file that survives kill -9: a torn last line is repaired when it is opened again."""

    def __init__(self, path: Path) -> None:
        """Open for appending; create it, and its folder, if missing; cut a torn last line."""
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("ab", buffering=0)
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
        """Write one record and hand it to the system (it then survives the death of this process, not of the machine).

        Raises:
            InfrastructureError: the disk takes no more; the log still ends with its last whole record.
        """
        line = json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass") + b"\n"
        start = self.offset
        with atomic.disk_errors(self.path.parent):
            try:
                while line:
                    line = line[self._file.write(line) :]
            except OSError:
                self.truncate(start)
                raise

    def sync(self) -> int:
        """Make everything written durable; returns the offset to commit."""
        with atomic.disk_errors(self.path.parent):
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


class RunFolder:
    """One run's folder, held by this process until `close`."""

    def __init__(self, path: Path, *, lock: _Lock, resumed: bool) -> None:
        """Use `create`."""
        self.path = path
        self.resumed = resumed
        """Whether an earlier process has written here."""
        self._lock = lock
        self._logs: dict[str, Log] = {}

    @classmethod
    def create(
        cls,
        path: Path,
        *,
        resolved: Mapping[str, Any],
        resume: bool,
        tier: str | None = None,
        interpreter: Mapping[str, Any] | None = None,
    ) -> Self:
        """Make the folder and write down what it runs with, or take up the run that stands there.

        Args:
            path: the folder; its parents are made too.
            resolved: every setting, as `settings.dump` gives them.
            resume: take up the run in `path`; without it, a folder that holds anything is refused.
            tier: the interpreter's isolation, for `environment.json`.
            interpreter: what holds for its blocks in the end, for the same.

        Raises:
            RunFolderError: another process writes there; it holds something and `resume` is False; or with `resume`,
                nothing stands there, the recipe differs (each key is named), or the folder is from a newer thincode.
            InfrastructureError: the disk takes no more.
        """
        if path.exists() and not path.is_dir():
            raise RunFolderError(f"{path}: a file of that name stands there; name another folder with --out")
        if resume and not path.is_dir():
            raise RunFolderError(f"{path}: no run to resume there; leave --resume out to start one")
        lock = _lock(path)
        try:
            begun = (path / "recipe.resolved.yaml").is_file()
            if begun and resume:
                check_same_recipe(path, resolved)
                _sweep(path)
            else:
                _check_empty(path, begun=begun)
            _write_environment(path, tier, interpreter, begun=begun)
            if not begun:  # written last: it makes the folder a run
                atomic.write_text(path / "recipe.resolved.yaml", write_yaml(dict(resolved)))
        except BaseException:
            lock.close()
            raise
        return cls(path, lock=lock, resumed=begun)

    def log(self, name: str) -> Log:
        """The log `NAME.jsonl`; the same object each time."""
        if name not in self._logs:
            self._logs[name] = Log(self.path / f"{name}.jsonl")
        return self._logs[name]

    def commit(self) -> dict[str, int]:
        """Make all logs durable; their lengths in bytes, by name, are what a checkpoint's manifest keeps."""
        return {name: log.sync() for name, log in sorted(self._logs.items())}

    def roll_back(self, committed: Mapping[str, int]) -> None:
        """Cut every log to its committed length; logs the commit doesn't know become empty.

        Raises:
            RunFolderError: a log is shorter than its committed length.
        """
        for path in sorted(self.path.glob("*.jsonl")):
            self.log(path.stem)
        for name, length in committed.items():
            if self.log(name).offset < length:
                raise RunFolderError(
                    f"{self.log(name).path}: {self.log(name).offset} bytes, but the checkpoint committed {length}; "
                    f"the file was changed since: restore it, or start again in another folder (--out)"
                )
        for name, log in self._logs.items():
            log.truncate(committed.get(name, 0))

    @property
    def done(self) -> dict[str, Any] | None:
        """The summary of a finished run; None while it is not finished."""
        try:
            found: dict[str, Any] = json.loads((self.path / "done.json").read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        return found

    def finish(self, summary: Mapping[str, Any]) -> None:
        """Make all logs durable, then say in `done.json` that the run is finished."""
        self.commit()
        atomic.write_json(self.path / "done.json", dict(summary))

    def take_back(self) -> bool:
        """Remove what `create` wrote if nothing else but empty files stands there, so that a mended command may have the folder."""
        own = {".lock", "environment.json", "recipe.resolved.yaml"}
        files = [path for path in self.path.rglob("*") if not path.is_dir()]
        if self.resumed or any(path.name not in own and path.stat().st_size for path in files):
            return False
        for path in self.path.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
        return True

    def close(self) -> None:
        """Close all logs and let the folder go."""
        for log in self._logs.values():
            log.close()
        self._logs.clear()
        self._lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: object) -> None:
        self.close()


class _Lock:
    """The right to write in a folder, held through a file descriptor, so that it ends with the process."""

    _held: ClassVar[set[int]] = set()

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._file, 100, 0).decode("ascii", "replace").strip()
            os.close(self._file)
            raise RunInUseError(
                f"{path.parent}: process {holder or '?'} is writing there; wait for it, stop it, or name another folder "
                f"with --out"
            ) from None
        except BaseException:
            os.close(self._file)
            raise
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)
        self._held.add(self._file)

    def close(self) -> None:
        if self._file in self._held:
            self._held.discard(self._file)
            os.close(self._file)

    @classmethod
    def leave_to_parent(cls) -> None:
        # A forked child shares the lock; without this the folder stays locked for as long as any child lives.
        for file in cls._held:
            os.close(file)
        cls._held.clear()


os.register_at_fork(after_in_child=_Lock.leave_to_parent)


def _lock(path: Path) -> _Lock:
    with atomic.disk_errors(path):
        try:
            path.mkdir(parents=True, exist_ok=True)
            return _Lock(path / ".lock")
        except (PermissionError, NotADirectoryError) as error:
            raise RunFolderError(
                f"{path}: can't write there ({error.strerror}); name another folder with --out"
            ) from None


def _sweep(path: Path) -> None:
    # What a killed process was writing beside its target. The lock says that nobody writes there now.
    for beside in path.glob(".*.tmp"):
        if beside.is_dir():
            shutil.rmtree(beside, ignore_errors=True)
        else:
            beside.unlink(missing_ok=True)


def _check_empty(path: Path, *, begun: bool) -> None:
    if begun:
        state = "finished" if (path / "done.json").exists() else "unfinished"
        raise RunFolderError(
            f"{path}: holds a run already ({state}); go on with --resume, or name another folder with --out"
        )
    held = sorted(
        item.name for item in path.iterdir() if not item.name.startswith(".") and item.name != "environment.json"
    )
    if held:
        raise RunFolderError(f"{path}: holds {held[0]!r} and no thincode run; name another folder with --out")


def check_same_recipe(path: Path, resolved: Mapping[str, Any], *, but: Collection[str] = ()) -> None:
    """Refuse to go on in `path` with other settings than the run there has, those in `but` aside.

    Raises:
        RunFolderError: each key that differs is named; or the folder is from a newer thincode.
    """
    written = _environment_at(path).get("format", FORMAT)
    if written > FORMAT:
        raise RunFolderError(
            f"{path}: written by a newer thincode (run format {written}; this one reads up to {FORMAT}); "
            f"upgrade: pip install -U thincode"
        )
    recipe = path / "recipe.resolved.yaml"
    before = dict(leaves(read_yaml(recipe.read_text(encoding="utf-8"), place=str(recipe))))
    now = dict(leaves(read_yaml(write_yaml(dict(resolved)), place="recipe")))
    absent = "absent"
    differs = [
        f"  {key}: {before.get(key, absent)!r} there, {now.get(key, absent)!r} now"
        for key in dict.fromkeys([*before, *now])
        if before.get(key, absent) != now.get(key, absent) and key not in but
    ]
    if differs:
        raise RunFolderError(
            f"{path}: the run there has another recipe; resume with the same one, or name another folder with --out\n"
            + "\n".join(differs)
        )


def _environment_at(path: Path) -> dict[str, Any]:
    try:
        found = json.loads((path / "environment.json").read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _write_environment(path: Path, tier: str | None, interpreter: Mapping[str, Any] | None, *, begun: bool) -> None:
    now = {**environment(tier=tier), **({} if interpreter is None else {"interpreter": dict(interpreter)})}
    record = _environment_at(path) if begun else {}
    if record:
        record.setdefault("resumed", []).append(now)
    else:
        record = {"format": FORMAT, **now}
    atomic.write_json(path / "environment.json", record)
