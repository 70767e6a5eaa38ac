"""A root file system of its own: what a session may read of this machine, and nothing else."""

from __future__ import annotations

import contextlib
import os
import platform
import sys
import sysconfig
from pathlib import Path

from ._kernel import (
    MNT_DETACH,
    MS_BIND,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_PRIVATE,
    MS_RDONLY,
    MS_REC,
    MS_RELATIME,
    MS_REMOUNT,
    NEWNS,
    PIVOT_ROOT,
    ST_RELATIME,
    call,
)


def own_root(room: str) -> None:
    """Leave the machine's root for one of our own; needs root."""
    call("unshare", NEWNS)
    new_root(room)


def closed_to_others() -> str:
    """The outermost folder that keeps other users from Python or its packages; empty where there is none."""
    for needed in (os.__file__, sysconfig.get_path("purelib")):
        real = Path(needed).resolve()
        for folder in [*reversed(real.parents), real]:
            if folder.is_dir() and not folder.stat().st_mode & 0o001:
                return str(folder)
    return ""


def readable_folders() -> list[Path]:
    """What a session may read: Python's modules, packages, and the shared libraries they load; no program, no data."""
    python = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    packages = [entry for entry in sys.path if entry.endswith(("site-packages", "dist-packages"))]
    system = ["/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/share/zoneinfo", "/etc/ld.so.cache",
              "/etc/localtime", "/dev/null", "/dev/zero", "/dev/urandom", "/dev/random"]  # fmt: skip
    found: list[Path] = []
    # Outer folders first, so that an inner one needs no mount of its own.
    for path in sorted({Path(entry) for entry in [f"{sys.base_prefix}/lib", *python, *packages, *system]}):
        if path.exists() and not any(path.is_relative_to(outer) for outer in found):
            found.append(path)
    return found


def new_root(room: str) -> None:
    """Make a root of its own: Python and the system's libraries, read-only; four devices; a place for scratch; nothing else."""
    call("mount", b"none", b"/", None, MS_REC | MS_PRIVATE, None)
    call("mount", b"tmpfs", room.encode(), b"tmpfs", MS_NOSUID | MS_NODEV, b"size=1m,mode=755")
    for source in readable_folders():
        bind(source, Path(f"{room}{source}"))
    for name in ("tmp", "scratch", "old"):
        Path(room, name).mkdir(parents=True, exist_ok=True)
    for name in ("tmp", "scratch"):
        Path(room, name).chmod(0o1777)
    place = os.path.realpath(room)
    os.chdir(room)
    call("syscall", PIVOT_ROOT[platform.machine()], b".", b"old")
    os.chdir("/")
    with contextlib.suppress(OSError):
        Path(f"/old{place}").rmdir()  # now, so that nothing of it is left however we end
    call("umount2", b"/old", MNT_DETACH)
    Path("/old").rmdir()
    call("mount", b"none", b"/", None, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV, None)


def scratch_place() -> str:
    """Where sessions get their scratch folder in a root of its own: /tmp, unless Python or its packages lie below it."""
    return "/scratch" if any(path.is_relative_to("/tmp") for path in readable_folders()) else "/tmp"


def bind(source: Path, target: Path) -> None:
    """Show `source` at `target`, read-only."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_symlink() and source.parent == Path("/"):
        target.symlink_to(source.readlink())  # /lib → usr/lib
        return
    if source.is_dir():
        target.mkdir(exist_ok=True)
    else:
        target.touch()
    place = str(target).encode()
    call("mount", str(source).encode(), place, None, MS_BIND | MS_REC, None)
    flags = os.statvfs(target).f_flag
    # What the machine set on the mount is locked inside a user namespace and must be repeated.
    kept = flags & (MS_NOSUID | MS_NODEV | MS_NOEXEC | 1024 | 2048) | (MS_RELATIME if flags & ST_RELATIME else 0)
    call("mount", b"none", place, None, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | kept, None)
