"""Files that are whole or absent: written beside, synced, renamed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


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
        OSError: the disk is full or the folder is not writable; the old file is untouched.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
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
