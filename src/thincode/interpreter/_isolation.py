"""Layers between a session and the machine; each is tried, and what came of it is reported, never assumed.

    the zygote    file system, ordinary user, namespaces        once, for all sessions
    └── root      own namespaces, disk quota, goes first        once a session; it runs no block
        └── worker   everything else, seccomp last              what runs the blocks, and all that they start

Where a user may not make namespaces (a plain container), a zygote of root's stays root, so that each of its workers can be a
user of its own. A layer that can't be had leaves its reason in the report; `tiers` says what the layers amount to.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import resource
import signal
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from . import _filesystem as filesystem
from . import _landlock as landlock
from . import _seccomp as seccomp
from ._kernel import (
    DUMPABLE,
    LINUX,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    NEWIPC,
    NEWNET,
    NEWNS,
    NEWPID,
    NEWUSER,
    NEWUTS,
    NO_NEW_PRIVS,
    PDEATHSIG,
    SUBREAPER,
    Procfs,
    call,
)
from ._orders import CLOSED

NOBODY = 65534
USERS = range(20_000, 60_000)
"""Whom root's workers become where there are no namespaces, one after the other."""


class Report(dict[str, str]):
    """Layer → `on`, or why not."""

    def __init__(self, off: Iterable[str] = ()) -> None:
        super().__init__()
        self.off = frozenset(off)
        """Layers that are not tried: by tests, and where the user wants none."""

    def on(self, layer: str) -> bool:
        """Whether a layer holds."""
        return self.get(layer) == "on"


def attempt(report: Report, layer: str, action: Callable[[], object]) -> bool:
    """Try one layer and note what came of it."""
    if layer in report.off:
        report[layer] = "turned off"
        return False
    if not LINUX and layer not in ("process group", "rlimits"):
        report[layer] = f"not on {platform.system()}"
        return False
    try:
        action()
    except (OSError, ValueError, AttributeError, KeyError) as error:
        report[layer] = str(error) or type(error).__name__
        return False
    report[layer] = "on"
    return True


# --- the zygote -----------------------------------------------------------------------------------------------------

SHARED_NAMESPACES = NEWPID | NEWNET | NEWIPC | NEWUTS


def enter_zygote(procfs: Procfs, room: str, off: Iterable[str] = ()) -> Report:
    """Isolate the process that will fork the zygote; its next child is the zygote.

    Root first builds the file system, then becomes an ordinary user, then makes the namespaces: a limit on processes does
    not hold for the machine's uid 0, not even inside a user namespace.

    Args:
        procfs: opened before the file system changes.
        room: an empty folder of ours, where the new root is put together.
        off: layers not to try.
    """
    report = Report(off)

    def later_root() -> None:
        attempt(report, "file system", lambda: filesystem.new_root(room))

    if os.geteuid() != 0:
        report["ordinary user"] = "on"
        if attempt(report, "namespaces", lambda: new_user_namespace(procfs, SHARED_NAMESPACES | NEWNS)):
            later_root()
    elif attempt(report, "namespaces", users_may_make_namespaces):
        attempt(report, "file system", lambda: filesystem.own_root(room))
        attempt(report, "ordinary user", lambda: become_nobody(room))
        more = 0 if report.on("file system") else NEWNS
        if attempt(report, "namespaces", lambda: new_user_namespace(procfs, SHARED_NAMESPACES | more)) and more:
            later_root()
    report.setdefault("file system", "needs namespaces")
    return report


def users_may_make_namespaces() -> None:
    """Try it in a process that has left root.

    Raises:
        OSError: they may not.
    """
    pid = os.fork()
    if pid == 0:
        try:
            leave_root(NOBODY)
            call("unshare", NEWUSER | SHARED_NAMESPACES)
        except OSError as error:
            os._exit(error.errno or 1)
        os._exit(0)
    refused = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if refused:
        raise OSError(refused, f"unshare, as an ordinary user: {os.strerror(refused)}")


def leave_root(uid: int) -> None:
    """Become an ordinary user for good."""
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def become_nobody(room: str) -> None:
    """Leave root for good, unless Python itself could not be read any more.

    Raises:
        PermissionError: it could not; the message names the folder.
    """
    folder = filesystem.closed_to_others()
    if folder:
        raise PermissionError(closed(folder))
    if os.path.exists(room):  # noqa: PTH110 - it is gone where there is a new root
        os.chown(room, NOBODY, NOBODY)
    leave_root(NOBODY)
    # Changing ids makes /proc/self root's; the id maps must still be written.
    call("prctl", DUMPABLE, 1, 0, 0, 0)


def closed(folder: str) -> str:
    return f"{CLOSED} ({folder})"


def new_user_namespace(procfs: Procfs, others: int) -> None:
    """Enter a user namespace where our ids keep their numbers, and `others` owned by it."""
    uid, gid = os.geteuid(), os.getegid()
    call("unshare", NEWUSER | others)
    procfs.write("self/setgroups", "deny")
    procfs.write("self/uid_map", f"{uid} {uid} 1")
    procfs.write("self/gid_map", f"{gid} {gid} 1")


@dataclass
class Ground:
    """What all sessions of a zygote stand on; made once, so that a session pays for little."""

    procfs: Procfs
    shared: Report
    room: str
    """Folder of the machine that scratch folders are made in where sessions have no file system of their own."""
    readable: dict[str, landlock.Access] = field(default_factory=dict)
    filter: bytes = b""
    no_filter: str = ""
    """Why there is none."""
    landlock: int = 0
    """Its version; 0: none."""

    def __post_init__(self) -> None:
        self.own_files = self.shared.on("file system")
        self.own_users = self.has_own_users()
        self.scratch = filesystem.scratch_place() if self.own_files else self.room
        devices = {"/dev/null": landlock.READ | landlock.WRITE}
        self.readable = {str(path): landlock.READ for path in filesystem.readable_folders()} | devices
        with contextlib.suppress(OSError):
            self.landlock = landlock.version() if LINUX else 0
        try:
            self.filter = seccomp.for_sessions(processor=platform.machine(), own_files=self.own_files)
        except ValueError as error:
            self.no_filter = str(error)

    def has_own_users(self) -> bool:
        """Whether each worker becomes a user of its own; if not though it should, the report says why."""
        if not LINUX or os.geteuid() != 0 or self.shared.on("namespaces") or "ordinary user" in self.shared.off:
            return False
        folder = filesystem.closed_to_others()
        if folder:
            self.shared["ordinary user"] = closed(folder)
            return False
        os.chmod(self.room, 0o711)  # noqa: PTH101 - they must reach their scratch folders
        return True

    def user(self, count: int) -> int | None:
        """Whom the worker of the session with this number becomes; None: stays who it is."""
        return USERS[count % len(USERS)] if self.own_users else None


# --- a session ------------------------------------------------------------------------------------------------------


def enter_session(ground: Ground, scratch: str, disk_mib: int, user: int | None) -> Report:
    """What the root process of a session gets: its own user and mount namespace, and a scratch folder of fixed size."""
    report = Report(ground.shared.off)
    # Without a namespace that ends with us, our death must be heard: what the block started is to die first.
    at_death = signal.SIGKILL if ground.shared.on("namespaces") else signal.SIGTERM
    attempt(report, "dies with parent", lambda: call("prctl", PDEATHSIG, at_death, 0, 0, 0))
    attempt(report, "adopts orphans", lambda: call("prctl", SUBREAPER, 1, 0, 0, 0))
    # When memory runs short the kernel kills a session before anything of the user's.
    attempt(report, "goes first", lambda: ground.procfs.write("self/oom_score_adj", "1000"))
    if user is not None:
        os.chown(scratch, user, user)
    if not ground.shared.on("namespaces"):
        report["own namespaces"] = "needs the zygote's"
    elif attempt(report, "own namespaces", lambda: new_user_namespace(ground.procfs, NEWNS | NEWIPC)) and (
        ground.own_files
    ):
        size = f"size={disk_mib}m,nr_inodes=4096,mode=700".encode()
        attempt(report, "disk quota", lambda: mount_scratch(scratch, size))
    report.setdefault("disk quota", "needs an own file system")
    return report


def mount_scratch(scratch: str, options: bytes) -> None:
    call("mount", b"tmpfs", scratch.encode(), b"tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, options)


def enter_worker(
    ground: Ground, report: Report, limits: dict[str, int], *, user: int | None, address_space: int
) -> None:
    """What the process that runs the blocks gets: limits, and no way back to any privilege. It may write in its folder alone.

    Args:
        ground: the zygote's.
        report: the session's; what comes of each layer is added.
        limits: `memory_mib`, `processes`, `disk_mib`, `files`.
        user: whom to become.
        address_space: bytes it maps already.
    """
    attempt(report, "process group", os.setsid)
    if user is not None:
        attempt(report, "ordinary user", lambda: leave_root(user))
    # After the change of user, which makes the kernel forget it.
    attempt(report, "dies with parent", lambda: call("prctl", PDEATHSIG, signal.SIGKILL, 0, 0, 0))
    attempt(report, "adopts orphans", lambda: call("prctl", SUBREAPER, 1, 0, 0, 0))
    attempt(report, "process limit", lambda: limit_processes(report, limits["processes"]))
    attempt(report, "rlimits", lambda: set_limits(limits, address_space))
    attempt(report, "no capabilities", drop_capabilities)
    attempt(report, "no new privileges", lambda: call("prctl", NO_NEW_PRIVS, 1, 0, 0, 0))
    attempt(report, "not dumpable", lambda: call("prctl", DUMPABLE, 0, 0, 0, 0))
    attempt(report, "landlock", lambda: landlock.restrict({**ground.readable, ".": landlock.SCRATCH}))
    attempt(report, "own signals", lambda: keep_signals(ground, report))
    attempt(report, "seccomp", lambda: filter_calls(ground))


def limit_processes(report: Report, processes: int) -> None:
    """Bound the processes and threads of this session.

    The kernel counts by user and namespace. Where the session has neither for itself, what its user runs already is added:
    then the bound holds against a bomb, but moves with what else the user starts and ends.

    Raises:
        OSError: the kernel does not count this user's processes.
    """
    alone = report.on("own namespaces") or report.on("ordinary user")
    if one_more_starts(0):
        raise OSError("the kernel counts no processes of the machine's root, by whatever name")
    # The session's root process and a checkpoint are counted too.
    lower(resource.RLIMIT_NPROC, processes + 2 + (0 if alone else counted_processes()))


def counted_processes() -> int:
    """How many processes and threads the kernel counts for this user: found by lowering the limit until nothing starts."""
    hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    low, high = 0, 1 << 16 if hard == resource.RLIM_INFINITY else hard
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if one_more_starts(middle) else (middle + 1, high)
    return low - 1


def one_more_starts(limit: int) -> bool:
    """Whether a process can be started under this limit, which stays until it is set anew."""
    resource.setrlimit(resource.RLIMIT_NPROC, (limit, resource.getrlimit(resource.RLIMIT_NPROC)[1]))
    try:
        os.posix_spawn("/", ["/"], {})
    except BlockingIOError:
        return False
    except OSError:  # it started, and then found no program
        pass
    return True


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
    third_version = struct.pack("=Ii", 0x20080522, 0)
    call("capset", third_version, bytes(24))


def signals_stay(ground: Ground, report: Report) -> bool:
    """Whether what the worker may signal is its own session: then `kill(-1)` means that too."""
    apart = ground.shared.on("namespaces") or (ground.own_users and report.on("ordinary user"))
    return apart or (report.on("landlock") and ground.landlock >= landlock.SIGNALS_SINCE)


def keep_signals(ground: Ground, report: Report) -> None:
    """Where nothing else does it, a filter sees to it that the worker signals itself alone."""
    if not signals_stay(ground, report):
        seccomp.install(seccomp.no_signals_but_to(os.getpid(), processor=platform.machine()))


def filter_calls(ground: Ground) -> None:
    if not ground.filter:
        raise ValueError(ground.no_filter)
    seccomp.install(ground.filter)


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
