"""Landlock: what a process may open, connect to and signal, held by the kernel without any privilege.

It says nothing about looking (`stat`, `access`) and marking (`chmod`, `utime`); the system-call filter and, where there is
one, a file system of its own do.
"""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Mapping
from enum import IntFlag

from ._kernel import LANDLOCK_ADD, LANDLOCK_CREATE, LANDLOCK_RESTRICT, call

ASK_VERSION, PATH_BENEATH = 1, 1
TCP = 0b11
"""Binding and connecting; no rule allows any."""
SIGNALS_SINCE = 6
"""Version from which signals and abstract sockets stop at the border."""


class Access(IntFlag):
    """What can be done to files, in the kernel's order."""

    EXECUTE = 1 << 0
    WRITE_FILE = 1 << 1
    READ_FILE = 1 << 2
    READ_DIR = 1 << 3
    REMOVE_DIR = 1 << 4
    REMOVE_FILE = 1 << 5
    MAKE_CHAR = 1 << 6
    MAKE_DIR = 1 << 7
    MAKE_REG = 1 << 8
    MAKE_SOCK = 1 << 9
    MAKE_FIFO = 1 << 10
    MAKE_BLOCK = 1 << 11
    MAKE_SYM = 1 << 12
    REFER = 1 << 13
    TRUNCATE = 1 << 14
    IOCTL_DEV = 1 << 15


SINCE = {1: Access(0x1FFF), 2: Access.REFER, 3: Access.TRUNCATE, 5: Access.IOCTL_DEV}
"""Which version of Landlock brought which."""

READ = Access.READ_FILE | Access.READ_DIR
WRITE = Access.WRITE_FILE | Access.TRUNCATE
SCRATCH = (
    READ
    | WRITE
    | Access.REMOVE_DIR
    | Access.REMOVE_FILE
    | Access.MAKE_DIR
    | Access.MAKE_REG
    | Access.MAKE_SYM
    | Access.REFER
)
OF_A_FILE = Access.EXECUTE | WRITE | Access.READ_FILE | Access.IOCTL_DEV
"""A rule for what is no folder may hold only these."""


def version() -> int:
    """Which Landlock this kernel has.

    Raises:
        OSError: none.
    """
    return call("syscall", LANDLOCK_CREATE, None, 0, ASK_VERSION)


def restrict(allowed: Mapping[str, Access]) -> None:
    """Bind this process, and all it starts, to these paths for good; no TCP; no signal to a process that is not so bound.

    Args:
        allowed: path → what may be done to it and all below it; what does not exist is passed over.

    Raises:
        OSError: the kernel has no Landlock, or new privileges were not given up before.
    """
    found = version()
    handled = Access(sum(access for since, access in SINCE.items() if since <= found))
    attributes = struct.pack("QQQ", handled, TCP if found >= 4 else 0, 0b11 if found >= SIGNALS_SINCE else 0)
    size = 24 if found >= SIGNALS_SINCE else 16 if found >= 4 else 8
    ruleset = call("syscall", LANDLOCK_CREATE, attributes, size, 0)
    try:
        for path, access in allowed.items():
            _allow(ruleset, path, access & handled)
        call("syscall", LANDLOCK_RESTRICT, ruleset, 0)
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, access: Access) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (FileNotFoundError, PermissionError):
        return
    try:
        if not stat.S_ISDIR(os.fstat(place).st_mode):
            access &= OF_A_FILE
        call("syscall", LANDLOCK_ADD, ruleset, PATH_BENEATH, struct.pack("=Qi", access, place), 0)
    finally:
        os.close(place)
