"""Layers between a session and the machine; each is tried, and what came of it is reported, never assumed.

The zygote gets what all sessions share (a root file system of its own, an ordinary user, user, pid, network, ipc and host
name namespaces); each session adds what must be its own. A layer that can't be had leaves its reason in the report.
"""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import signal
import sys
import sysconfig
from collections.abc import Callable, Iterable
from pathlib import Path

NEWNS, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET = (
    0x00020000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000,
)  # fmt: skip
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = (
    1, 2, 4, 8, 32, 4096, 16384, 1 << 18,
)  # fmt: skip
MS_RELATIME, ST_RELATIME, MNT_DETACH = 1 << 21, 4096, 2
PDEATHSIG, DUMPABLE, SUBREAPER, NO_NEW_PRIVS = 1, 4, 36, 38
PIVOT_ROOT = {"x86_64": 155, "aarch64": 41, "riscv64": 41}
NOBODY = 65534
LINUX = sys.platform == "linux"

_libc = ctypes.CDLL(None, use_errno=True)

Report = dict[str, str]
"""Layer → `on`, or why not."""


def call(name: str, *arguments: int | bytes | None) -> int:
    """Call the C library; raises OSError."""
    # Plain integers would be cut to 32 bits.
    wide = [ctypes.c_ulong(value & 0xFFFFFFFFFFFFFFFF) if isinstance(value, int) else value for value in arguments]
    result = int(getattr(_libc, name)(*wide))
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result


def attempt(report: Report, layer: str, action: Callable[[], object]) -> bool:
    """Try one layer and note what came of it."""
    if not LINUX and layer not in ("process group", "rlimits"):
        report[layer] = f"not on {sys.platform}"
        return False
    try:
        action()
    except (OSError, ValueError, AttributeError, KeyError) as error:
        report[layer] = str(error) or type(error).__name__
        return False
    report[layer] = "on"
    return True


class Procfs:
    """The /proc the zygote saw at its start; sessions see none."""

    def __init__(self) -> None:
        self.descriptor = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC) if LINUX else -1

    def read(self, name: str) -> str:
        descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self.descriptor)
        try:
            return os.read(descriptor, 1 << 16).decode()
        finally:
            os.close(descriptor)

    def entries(self, name: str) -> list[str]:
        descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self.descriptor)
        try:
            return os.listdir(descriptor)  # noqa: PTH208 - a path would lead into another /proc
        finally:
            os.close(descriptor)

    def write(self, name: str, text: str) -> None:
        descriptor = os.open(name, os.O_WRONLY | os.O_CLOEXEC, dir_fd=self.descriptor)
        try:
            os.write(descriptor, text.encode())
        finally:
            os.close(descriptor)

    def address_space(self) -> int:
        """Bytes this process maps."""
        return int(self.read("self/statm").split()[0]) * resource.getpagesize() if LINUX else 0

    def threads(self) -> int:
        if not LINUX:
            return 1
        return next(
            int(line.split()[1]) for line in self.read("self/status").splitlines() if line.startswith("Threads")
        )


def new_user_namespace(procfs: Procfs, others: int) -> None:
    """Enter a user namespace where our ids keep their numbers, and `others` owned by it."""
    uid, gid = os.geteuid(), os.getegid()
    call("unshare", NEWUSER | others)
    procfs.write("self/setgroups", "deny")
    procfs.write("self/uid_map", f"{uid} {uid} 1")
    procfs.write("self/gid_map", f"{gid} {gid} 1")


# --- the zygote -----------------------------------------------------------------------------------------------------


def enter_zygote(procfs: Procfs, room: str) -> Report:
    """Isolate the process that will fork the zygote; its next child is the zygote.

    Root first builds the file system, then becomes an ordinary user, then makes the namespaces: a limit on processes does
    not hold for the machine's uid 0, not even inside a user namespace.

    Args:
        procfs: opened before the file system changes.
        room: an empty folder of ours, where the new root is put together.
    """
    report: Report = {}
    others = NEWPID | NEWNET | NEWIPC | NEWUTS
    if os.geteuid() == 0:
        attempt(report, "file system", lambda: own_root(room))
        if not attempt(report, "ordinary user", lambda: become_nobody(room)):
            return report
        attempt(report, "namespaces", lambda: new_user_namespace(procfs, others))
    else:
        report["ordinary user"] = "on"
        if attempt(report, "namespaces", lambda: new_user_namespace(procfs, others | NEWNS)):
            attempt(report, "file system", lambda: new_root(room))
        else:
            report["file system"] = report["namespaces"]
    return report


def own_root(room: str) -> None:
    call("unshare", NEWNS)
    new_root(room)


def become_nobody(room: str) -> None:
    """Leave root for good, unless Python itself could not be read any more."""
    needed = [Path(os.__file__), Path(sysconfig.get_path("purelib"))]
    if not all(readable_by_all(path) for path in needed):
        raise PermissionError(f"Python stands in a folder that only root may enter ({sys.base_prefix})")
    if Path(room).exists():
        os.chown(room, NOBODY, NOBODY)
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    # Changing ids makes /proc/self root's; the id maps must still be written.
    call("prctl", DUMPABLE, 1, 0, 0, 0)


def readable_by_all(path: Path) -> bool:
    """Whether any user may reach and read `path`."""
    real = path.resolve()
    return all(folder.stat().st_mode & 0o001 for folder in real.parents) and bool(real.stat().st_mode & 0o004)


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
    os.chdir(room)
    if _libc.syscall(PIVOT_ROOT[platform.machine()], b".", b"old") != 0:
        raise OSError(ctypes.get_errno(), "pivot_root")
    os.chdir("/")
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


# --- a session ------------------------------------------------------------------------------------------------------


def enter_session(procfs: Procfs, shared: Report, scratch: str, disk_mib: int) -> Report:
    """What the root process of a session gets: its own user and mount namespace, and a scratch folder of fixed size."""
    report: Report = {}
    attempt(report, "dies with parent", lambda: call("prctl", PDEATHSIG, signal.SIGKILL, 0, 0, 0))
    attempt(report, "adopts orphans", lambda: call("prctl", SUBREAPER, 1, 0, 0, 0))
    if shared.get("namespaces") != "on":
        report["own namespaces"] = "needs the zygote's"
    elif attempt(report, "own namespaces", lambda: new_user_namespace(procfs, NEWNS | NEWIPC)) and (
        shared.get("file system") == "on"
    ):
        size = f"size={disk_mib}m,nr_inodes=4096,mode=700".encode()
        attempt(report, "disk quota", lambda: mount_scratch(scratch, size))
    report.setdefault("disk quota", "needs an own file system")
    return report


def mount_scratch(scratch: str, options: bytes) -> None:
    call("mount", b"tmpfs", scratch.encode(), b"tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, options)


def enter_worker(report: Report, limits: dict[str, int], *, address_space: int, own_counter: bool) -> None:
    """What the process that runs the blocks gets: limits, and no way back to any privilege."""
    attempt(report, "process group", os.setsid)
    attempt(report, "dies with parent", lambda: call("prctl", PDEATHSIG, signal.SIGKILL, 0, 0, 0))
    attempt(report, "adopts orphans", lambda: call("prctl", SUBREAPER, 1, 0, 0, 0))
    attempt(report, "rlimits", lambda: set_limits(limits, address_space))
    if own_counter:
        # The session's root process and a checkpoint are counted too.
        attempt(report, "process limit", lambda: lower(resource.RLIMIT_NPROC, limits["processes"] + 2))
    else:
        report["process limit"] = "needs own namespaces: the count would be shared with everything this user runs"
    attempt(report, "no capabilities", drop_capabilities)
    attempt(report, "no new privileges", lambda: call("prctl", NO_NEW_PRIVS, 1, 0, 0, 0))
    attempt(report, "not dumpable", lambda: call("prctl", DUMPABLE, 0, 0, 0, 0))


def set_limits(limits: dict[str, int], address_space: int) -> None:
    lower(resource.RLIMIT_CORE, 0)
    lower(resource.RLIMIT_FSIZE, limits["disk_mib"] << 20)
    lower(resource.RLIMIT_NOFILE, limits["files"])
    if address_space:
        lower(resource.RLIMIT_AS, address_space + (limits["memory_mib"] << 20))


def lower(which: int, value: int) -> None:
    hard = resource.getrlimit(which)[1]
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(which, (value, value))


def drop_capabilities() -> None:
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    nothing = (ctypes.c_uint32 * 6)()
    if _libc.capset(ctypes.byref(header), ctypes.byref(nothing)) != 0:
        raise OSError(ctypes.get_errno(), "capset")


def close_all_but(kept: Iterable[int]) -> None:
    """Close every descriptor except 0, 1, 2 and `kept`."""
    low = 3
    for descriptor in sorted(kept):
        if descriptor > low:
            os.closerange(low, descriptor)
        low = max(low, descriptor + 1)
    os.closerange(low, 1 << 20)


def blank_environment(procfs: Procfs) -> None:
    """Overwrite the block the process was started with; clearing `os.environ` leaves it in memory and in /proc."""
    if not LINUX:
        return
    fields = procfs.read("self/stat").rpartition(")")[2].split()
    start, end = int(fields[47]), int(fields[48])
    if 0 < start < end:
        ctypes.memset(start, 0, end - start)
