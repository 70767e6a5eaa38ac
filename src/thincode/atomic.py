"""Files that are whole or absent: written beside, synced, renamed."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .errors import InfrastructureError

_DISK = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the file is as large as this process may make one (ulimit -f)",
    errno.EROFS: "the file system is read-only",
    errno.EIO: "the disk failed",
}


@contextmanager
def disk_errors(folder: Path) -> Iterator[None]:
    """Inside it, a disk that takes no more bytes is an InfrastructureError that names `folder` and what to do."""
    try:
        yield
    except OSError as error:
        if error.errno not in _DISK:
            raise
        raise InfrastructureError(
            f"{folder}: {_DISK[error.errno]}; what was written before is whole: make room there, then go on with --resume"
        ) from error


def sync_folder(folder: Path) -> None:
    """Make a rename inside `folder` durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_bytes(path: Path, data: bytes) -> None:
    """Replace `path` by `data`; a crash leaves the old file or the new one, never a part.

    Raises:
        InfrastructureError: the disk takes no more; the old file is untouched.
        OSError: the folder is missing or not writable; the old file is untouched.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with disk_errors(path.parent):
        try:
            with beside.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(path)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise
        sync_folder(path.parent)


def write_text(path: Path, text: str) -> None:
    """`write_bytes` for UTF-8 text."""
    write_bytes(path, text.encode("utf-8"))


def write_json(path: Path, value: Any) -> None:
    """`write_text` for JSON, with a last newline so that the file reads well in a terminal."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")
