"""The system-call filter of a session: a list of what is allowed, as a program that the kernel runs before each call.

The program is built once, by the zygote; a session pays for one system call. What is refused gets EPERM, so that Python
raises `PermissionError` and the block goes on; a foreign way of calling (32-bit code) ends the process.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from . import _syscalls
from ._kernel import SECCOMP, call

ALLOW, KILL = 0x7FFF0000, 0x80000000
"""What a program answers; see `refuse` for the third answer."""

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
SET_MODE_FILTER = 1

NUMBER, ARCHITECTURE, ARGUMENTS = 0, 4, 16
"""Offsets in what the kernel shows the program: the call's number, the processor, and six arguments of eight bytes."""
LOAD, AND, IF_EQUAL, IF_GREATER, RETURN = 0x20, 0x54, 0x15, 0x25, 0x06
"""Instructions: load a word, mask it, two conditional jumps, answer."""


def refuse(number: int) -> int:
    """The answer that fails a call with this `errno`; 0 says that it went well without doing anything."""
    return 0x00050000 | number


@dataclass(frozen=True)
class Only:
    """Allows a call where its argument, under a mask, is one of these; the lower 32 bits are all that the kernel reads of it."""

    argument: int
    values: tuple[int, ...]
    mask: int = 0xFFFFFFFF


Rule = int | tuple[Only, ...]
"""One answer, or conditions that must all hold."""
Instruction = tuple[int, int, int, int]
"""Code; how many instructions to skip if true, if false; operand."""


def program(rules: Mapping[int, Rule], *, processor: str, otherwise: int, unknown: int) -> bytes:
    """Assemble a filter.

    Args:
        rules: number of a call → what is done about it.
        processor: `x86_64` or `aarch64`.
        otherwise: answer to a call without a rule.
        unknown: answer to a call that is newer than our table.

    Returns:
        The instructions as the kernel reads them.
    """
    code: list[Instruction] = [
        (LOAD, 0, 0, ARCHITECTURE),
        (IF_EQUAL, 1, 0, ARCHITECTURES[processor]),
        (RETURN, 0, 0, KILL),
        (LOAD, 0, 0, NUMBER),
    ]
    for number, rule in sorted(rules.items()):
        body = [(RETURN, 0, 0, rule)] if isinstance(rule, int) else list(_conditions(rule))
        code += [(IF_EQUAL, 0, len(body), number), *body]
    code += [(IF_GREATER, 0, 1, _syscalls.NEWEST), (RETURN, 0, 0, unknown), (RETURN, 0, 0, otherwise)]
    return b"".join(struct.pack("HBBI", *instruction) for instruction in code)


def _conditions(rule: Iterable[Only]) -> Iterable[Instruction]:
    for only in rule:
        yield LOAD, 0, 0, ARGUMENTS + 8 * only.argument
        yield AND, 0, 0, only.mask
        for left in range(len(only.values), 0, -1):
            yield IF_EQUAL, left, 0, only.values[-left]  # over the others and the refusal
        yield RETURN, 0, 0, refuse(errno.EPERM)
    yield RETURN, 0, 0, ALLOW


NEW_NAMESPACES = 0x7E020000
"""Flags of `clone` that make a namespace."""
UNIX, STREAM, SEQUENCED = 1, 1, 5
CONDITIONS: dict[str, tuple[Only, ...]] = {
    "clone": (Only(0, (0,), NEW_NAMESPACES),),
    # Cutting a file that was opened for reading: old kernels let it pass where Landlock allows reading alone.
    **{
        name: (Only(at, (0, os.O_WRONLY, os.O_RDWR, 3, *(os.O_TRUNC | way for way in (1, 2, 3))), os.O_TRUNC | 3),)
        for name, at in (("open", 1), ("openat", 2))
    },
    # Duplicates, flags, locks, the size of a pipe, seals; not whom to signal.
    "fcntl": (Only(1, (0, 1, 2, 3, 4, 5, 6, 7, 36, 37, 38, 1030, 1032, 1033, 1034)),),
    # What a terminal is asked, and by the standard library of every file it opens; size of what waits; flags.
    "ioctl": (Only(1, (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)),),
    # Death of the parent, names, the state of things, orphans.
    "prctl": (Only(0, (1, 2, 3, 15, 16, 21, 23, 36, 37, 39, 0x53564D41)),),
    "prlimit64": (Only(0, (0,)),),
    # Datagrams could be sent to any socket that has a name.
    "socketpair": (Only(0, (UNIX,)), Only(1, (STREAM, SEQUENCED), 0xF)),
}
MARKS = ("chmod", "fchmod", "fchmodat", "fchmodat2", "utime", "utimes", "futimesat", "utimensat")
"""Change what is written on a file rather than in it; no rule of Landlock covers them."""
ATTRIBUTES = tuple(f"{way}{verb}xattr" for verb in ("get", "set", "list") for way in ("", "l", "f"))


def for_sessions(*, processor: str, own_files: bool) -> bytes:
    """The program that every session gets.

    Args:
        processor: as `platform.machine()` names it.
        own_files: the session has a file system of its own, in which it may mark files as it likes. Elsewhere marking
            says yes and does nothing: the files could be anyone's, and `shutil.copy` must not fail.

    Raises:
        ValueError: no table for this processor.
    """
    rules: dict[int, Rule] = {}
    for name, number in _syscalls.numbers(processor).items():
        rule: Rule = CONDITIONS.get(name, ALLOW)
        if name in ("clone3", "openat2"):
            rule = refuse(errno.ENOSYS)  # their arguments can't be seen; libraries then take the older call
        elif name in ATTRIBUTES:
            rule = refuse(errno.ENOTSUP)
        elif name in MARKS and not own_files:
            rule = refuse(0)
        rules[number] = rule
    return program(rules, processor=processor, otherwise=refuse(errno.EPERM), unknown=refuse(errno.ENOSYS))


def no_signals_but_to(pid: int, *, processor: str) -> bytes:
    """A second program for where nothing else keeps a session from signaling this user's processes: itself alone."""
    numbers = _syscalls.numbers(processor)
    own = (Only(0, (0, pid, -pid & 0xFFFFFFFF)),)
    rules: dict[int, Rule] = {numbers["kill"]: own, numbers["tgkill"]: own}
    rules |= {numbers[name]: refuse(errno.EPERM) for name in ("tkill", "pidfd_send_signal")}
    return program(rules, processor=processor, otherwise=ALLOW, unknown=ALLOW)


def install(instructions: bytes) -> None:
    """Bind this process, and all it starts, to a program for good.

    Raises:
        OSError: the kernel has no such filters, or new privileges were not given up before.
    """
    code = ctypes.create_string_buffer(instructions)
    held = struct.pack("H6xQ", len(instructions) // 8, ctypes.addressof(code))
    call("syscall", SECCOMP[platform.machine()], SET_MODE_FILTER, 0, held)
