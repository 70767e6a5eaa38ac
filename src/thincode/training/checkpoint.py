"""Checkpoints at step boundaries: `checkpoint/step-000123/` with everything a run needs to go on exactly.

Written beside, synced, renamed; `manifest.json` holds the SHA-256 of every file and the caller's own state (committed
offsets of logs, curriculum). The last two are kept, so that a damaged newest one loses a step, not the run; `newest.json`
tells that one is missing.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import atomic
from ..errors import RunFolderError
from .models import put_in_place

MANIFEST = "manifest.json"
FORMAT = 1
KEPT = 2
WRITING = ".writing"
NEWEST = "newest.json"


@dataclass(frozen=True)
class Checkpoint:
    """A verified checkpoint."""

    path: Path
    """A folder that plain transformers loads too."""
    step: int
    """Steps completed."""
    state: Mapping[str, Any]
    """What the caller's `state` gave when it was written."""
    finished: bool
    """Whether the run's last update had been made."""


def name_of(step: int) -> str:
    """Folder name of the checkpoint after `step` steps."""
    return f"step-{step:06d}"


def seal(written: Path, folder: Path, *, step: int, state: Mapping[str, Any], finished: bool = False) -> Path:
    """Turn a folder of complete files into the checkpoint of `step` in `folder`, and let go of old ones."""
    _write_manifest(written, step=step, state=state, finished=finished)
    target = folder / name_of(step)
    put_in_place(written, target)
    atomic.write_json(folder / NEWEST, {"step": step})
    for old in _folders(folder)[KEPT:]:
        shutil.rmtree(old, ignore_errors=True)
    return target


def finish(path: Path, *, state: Mapping[str, Any]) -> None:
    """Say in a checkpoint's manifest that the run ended with it, and renew the caller's state."""
    manifest = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
    atomic.write_json(path / MANIFEST, {**manifest, "state": dict(state), "finished": True})


def _write_manifest(written: Path, *, step: int, state: Mapping[str, Any], finished: bool) -> None:
    files = {
        str(path.relative_to(written)): {"sha256": _sha256(path), "bytes": path.stat().st_size}
        for path in sorted(written.rglob("*"))
        if path.is_file()
    }
    atomic.write_json(
        written / MANIFEST,
        {"format": FORMAT, "step": step, "finished": finished, "state": dict(state), "files": files},
    )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _folders(folder: Path) -> list[Path]:
    """Checkpoint folders, newest first."""
    return sorted((path for path in folder.glob("step-*") if path.is_dir()), key=lambda path: path.name, reverse=True)


def latest(folder: Path, *, on_warning: Callable[[str], None]) -> Checkpoint | None:
    """The newest checkpoint in `folder` whose files are as they were written; None if there is none at all.

    Args:
        folder: the run's `checkpoint/`.
        on_warning: told of each checkpoint that is passed over, and why.

    Raises:
        RunFolderError: there are checkpoints, but none can be read; or one is of a newer version.
    """
    found = _folders(folder)
    missing = _missing(folder, found)
    reasons = []
    for path in [*missing, *found]:
        checkpoint = _verified(path)
        if isinstance(checkpoint, Checkpoint):
            return checkpoint
        reasons.append(f"{path}: {checkpoint}")
        if found and path is not found[-1]:
            on_warning(f"{path}: {checkpoint}; going back to the checkpoint before it")
    if reasons:
        raise RunFolderError(
            "no checkpoint can be read, so the run can't go on:\n  "
            + "\n  ".join(reasons)
            + f"\nrestore {folder} from a copy, or start again with another --out"
        )
    return None


def _missing(folder: Path, found: list[Path]) -> list[Path]:
    """The newest checkpoint that was written, if it is no longer there."""
    try:
        step = int(json.loads((folder / NEWEST).read_text(encoding="utf-8"))["step"])
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return []
    path = folder / name_of(step)
    return [path] if path not in found and all(other.name < path.name for other in found) else []


def _verified(path: Path) -> Checkpoint | str:
    """The checkpoint, or why it can't be used."""
    try:
        manifest = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
        version, files = manifest["format"], dict(manifest["files"])
        checkpoint = Checkpoint(path, int(manifest["step"]), dict(manifest["state"]), bool(manifest["finished"]))
    except FileNotFoundError:
        return f"no {MANIFEST}" if path.is_dir() else "missing, though it was written"
    except (ValueError, KeyError, TypeError):
        return f"{MANIFEST} is damaged"
    if version > FORMAT:
        raise RunFolderError(
            f"{path}: written by a newer thincode (format {version}, this one reads {FORMAT}); upgrade"
        )
    for name, expected in files.items():
        file = path / name
        if not file.is_file():
            return f"{name} is missing"
        if file.stat().st_size != expected["bytes"] or _sha256(file) != expected["sha256"]:
            return f"{name} is damaged (its SHA-256 differs from the manifest)"
    return checkpoint
