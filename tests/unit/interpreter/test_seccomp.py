"""The filter's program, run instruction by instruction as the kernel would, on both processors."""

from __future__ import annotations

import errno
import os
import struct

import pytest

from thincode.interpreter import _seccomp as seccomp
from thincode.interpreter import _syscalls

EPERM, ENOSYS, ENOTSUP, NOTHING = (seccomp.refuse(number) for number in (errno.EPERM, errno.ENOSYS, errno.ENOTSUP, 0))
PROCESSORS = pytest.mark.parametrize("processor", _syscalls.PROCESSORS)


def verdict(program: bytes, number: int, *arguments: int, architecture: int) -> int:
    """What the program answers to one call."""
    words = [*arguments, *[0] * (6 - len(arguments))]
    seen = struct.pack("<IIQ6Q", number & 0xFFFFFFFF, architecture, 0, *(word & 0xFFFFFFFFFFFFFFFF for word in words))
    at, loaded = 0, 0
    while True:
        code, if_true, if_false, operand = struct.unpack_from("HBBI", program, 8 * at)
        at += 1
        if code == seccomp.LOAD:
            (loaded,) = struct.unpack_from("<I", seen, operand)
        elif code == seccomp.AND:
            loaded &= operand
        elif code in (seccomp.IF_EQUAL, seccomp.IF_GREATER):
            holds = loaded == operand if code == seccomp.IF_EQUAL else loaded > operand
            at += if_true if holds else if_false
        else:
            assert code == seccomp.RETURN
            return int(operand)


def asked(processor: str, name: str, *arguments: int, own_files: bool = True) -> int:
    program = seccomp.for_sessions(processor=processor, own_files=own_files)
    return verdict(
        program, _syscalls.numbers(processor)[name], *arguments, architecture=seccomp.ARCHITECTURES[processor]
    )


TRUNCATE = os.O_TRUNC
CALLS: list[tuple[str, tuple[int, ...], int]] = [
    ("read", (), seccomp.ALLOW),
    ("mmap", (), seccomp.ALLOW),
    ("openat", (0, 0, os.O_RDONLY), seccomp.ALLOW),
    ("openat", (0, 0, os.O_WRONLY | os.O_CREAT | TRUNCATE), seccomp.ALLOW),
    ("openat", (0, 0, os.O_RDONLY | TRUNCATE), EPERM),
    ("openat2", (), ENOSYS),
    ("clone", (17,), seccomp.ALLOW),  # fork
    ("clone", (0x8000 | 17,), seccomp.ALLOW),  # a checkpoint
    ("clone", (0x003D0F00,), seccomp.ALLOW),  # a thread
    *[("clone", (flag | 17,), EPERM) for flag in (1 << 17, 1 << 25, 1 << 26, 1 << 27, 1 << 28, 1 << 29, 1 << 30)],
    ("clone3", (), ENOSYS),
    ("fcntl", (0, 2), seccomp.ALLOW),
    ("fcntl", (0, 8, 1), EPERM),  # whom to signal
    ("ioctl", (0, 0x5401), seccomp.ALLOW),
    ("ioctl", (0, 0x5412), EPERM),  # a character for a terminal
    ("prctl", (1, 9), seccomp.ALLOW),
    ("prctl", (4, 1), EPERM),  # dumpable again
    ("prlimit64", (0,), seccomp.ALLOW),
    ("prlimit64", (1,), EPERM),
    ("socketpair", (1, 1 | 0o2000000), seccomp.ALLOW),
    ("socketpair", (1, 5), seccomp.ALLOW),
    ("socketpair", (1, 2), EPERM),
    ("socketpair", (2, 1), EPERM),
    ("getxattr", (), ENOTSUP),
]


@PROCESSORS
@pytest.mark.parametrize(("name", "arguments", "answer"), CALLS)
def test_each_call_is_answered(processor: str, name: str, arguments: tuple[int, ...], answer: int) -> None:
    assert asked(processor, name, *arguments) == answer


@PROCESSORS
def test_the_upper_half_of_an_argument_that_the_kernel_ignores_changes_nothing(processor: str) -> None:
    assert asked(processor, "clone", 1 << 28 | 1 << 40) == EPERM
    assert asked(processor, "prctl", 4 | 1 << 32) == EPERM


@PROCESSORS
def test_files_that_could_be_anyones_are_not_marked(processor: str) -> None:
    assert asked(processor, "fchmodat", own_files=False) == NOTHING
    assert asked(processor, "utimensat", own_files=False) == NOTHING
    assert asked(processor, "fchmodat", own_files=True) == seccomp.ALLOW


@PROCESSORS
def test_what_is_in_no_table_is_refused_and_what_is_newer_does_not_exist(processor: str) -> None:
    program = seccomp.for_sessions(processor=processor, own_files=True)
    own = seccomp.ARCHITECTURES[processor]
    known = set(_syscalls.numbers(processor).values())
    for number in set(range(_syscalls.NEWEST + 1)) - known:
        assert verdict(program, number, architecture=own) == EPERM
    for number in (_syscalls.NEWEST + 1, 9999, 0x40000000):  # the last is the first of x86's third way of calling
        assert verdict(program, number, architecture=own) == ENOSYS
    assert verdict(program, 1, architecture=0x40000003) == seccomp.KILL


@PROCESSORS
def test_the_kernel_takes_a_program_of_this_size(processor: str) -> None:
    assert len(seccomp.for_sessions(processor=processor, own_files=False)) // 8 < 4096


@PROCESSORS
def test_signals_reach_the_process_itself_alone(processor: str) -> None:
    numbers, own = _syscalls.numbers(processor), seccomp.ARCHITECTURES[processor]
    program = seccomp.no_signals_but_to(77, processor=processor)

    def answer(name: str, *arguments: int) -> int:
        return verdict(program, numbers[name], *arguments, architecture=own)

    assert [answer("kill", pid) for pid in (77, 0, -77)] == [seccomp.ALLOW] * 3
    assert [answer("kill", pid) for pid in (1, 76, -1, -76)] == [EPERM] * 4
    assert (answer("tgkill", 77), answer("tgkill", 1), answer("tkill", 77)) == (seccomp.ALLOW, EPERM, EPERM)
    assert (answer("pidfd_send_signal"), answer("read")) == (EPERM, seccomp.ALLOW)


def test_a_processor_without_a_table_is_named() -> None:
    with pytest.raises(ValueError, match="riscv64"):
        seccomp.for_sessions(processor="riscv64", own_files=True)


def test_the_tables_are_whole_and_name_no_number_twice() -> None:
    tables = [_syscalls.numbers(processor) for processor in _syscalls.PROCESSORS]
    for table in tables:
        assert len(set(table.values())) == len(table)
        assert max(table.values()) <= _syscalls.NEWEST
    assert set(tables[1]) <= set(tables[0])  # x86 has the older calls besides
    assert set(seccomp.CONDITIONS) | set(seccomp.MARKS) | set(seccomp.ATTRIBUTES) <= set(tables[0])
