"""The C library as we need it, and the kernel's numbers for it."""

from __future__ import annotations

import ctypes
import os
import resource
import sys

NEWNS, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET = (
    0x00020000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000,
)  # fmt: skip
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = (
    1, 2, 4, 8, 32, 4096, 16384, 1 << 18,
)  # fmt: skip
MS_RELATIME, ST_RELATIME, MNT_DETACH = 1 << 21, 4096, 2
PDEATHSIG, DUMPABLE, SUBREAPER, NO_NEW_PRIVS = 1, 4, 36, 38
SECCOMP = {"x86_64": 317, "aarch64": 277}
PIVOT_ROOT = {"x86_64": 155, "aarch64": 41, "riscv64": 41}
LANDLOCK_CREATE, LANDLOCK_ADD, LANDLOCK_RESTRICT = 444, 445, 446
LINUX = sys.platform == "linux"

_libc = ctypes.CDLL(None, use_errno=True)


def call(name: str, *arguments: int | bytes | None) -> int:
    """Call the C library (`syscall`, too, for what it has no name for).

    Raises:
        OSError: the call failed.
    """
    # Plain integers would be cut to 32 bits.
    wide = [ctypes.c_ulong(value & 0xFFFFFFFFFFFFFFFF) if isinstance(value, int) else value for value in arguments]
    result = int(getattr(_libc, name)(*wide))
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result


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
