"""Copies of a running worker, made by the worker itself between two blocks; standard library only.

A copy is a child of the worker's own parent (CLONE_PARENT): what a block waits for with `os.wait()` is never one of ours,
and a copy outlives the worker. A dormant copy is a checkpoint: the session's first process wakes it when the worker has
died, and it goes on as the worker from where it was made. Threads do not survive a copy, so none is made while a block's
threads live. Open files share their offsets, and the scratch folder is not copied.
"""

from __future__ import annotations

import _thread
import builtins
import ctypes
import os
import platform
import random
import resource
import signal
import struct
import sys
import time

# Functions look their builtins up here, as in `_worker`: a block may patch the module `builtins`.
globals()["__builtins__"] = dict(vars(builtins))

WORK_PER_COST = 16
"""A checkpoint is due when the work since the last one took this many times what the last one cost: making it, and the
copy of each page that the worker has written to since. The latter is most of it: 3 µs a page on a virtual machine."""
FIRST_COST_S = 0.008
"""What a checkpoint is thought to cost (CPU seconds) before one was measured."""
PROBE = 8
"""Pages written to after a copy, to see what one costs here."""
LONG_S = 2.0
"""A block that took longer by the clock is never repeated, whatever CPU it took: a checkpoint follows it."""

CLONE = {"x86_64": 56, "aarch64": 220, "riscv64": 220}
CLONE_PARENT, CHILD_CLEARTID, CHILD_SETTID = 0x8000, 0x00200000, 0x01000000
PDEATHSIG, GET_TID_ADDRESS = 1, 40
COST = struct.Struct("d")
PAGE = 4096


class Copier:
    """Forks the calling process into a sibling. Made before the code of blocks runs, with its own references."""

    def __init__(self) -> None:
        self.number = CLONE.get(platform.machine(), 0) if sys.platform == "linux" else 0
        python = ctypes.PyDLL(None, use_errno=True)
        self._syscall, self._prctl = python.syscall, python.prctl
        self._syscall.restype = ctypes.c_long
        hooks = (python.PyOS_BeforeFork, python.PyOS_AfterFork_Parent, python.PyOS_AfterFork_Child)
        for hook in hooks:
            hook.restype = None
        self._before, self._in_parent, self._in_child = hooks
        self._errno, self._long = ctypes.get_errno, ctypes.c_ulong
        self._getstate, self._setstate = random.getstate, random.setstate
        self._mask, self._all = signal.pthread_sigmask, signal.valid_signals()
        self._threads, self._setsid = _thread._count, os.setsid
        # Where the C library keeps the main thread's number; the kernel writes the copy's own there, as for fork().
        address = ctypes.c_void_p()
        found = self.number and self._prctl(GET_TID_ADDRESS, ctypes.byref(address), 0, 0, 0) == 0
        self._tid = (address.value or 0) if found else 0

    def copy(self) -> int:
        """0 in the copy, where all signals stay blocked; its process number in the original.

        Raises:
            OSError: not on this system, no room for a process, or threads live that a copy would lack.
        """
        if not self.number or self._threads():
            raise OSError("a session with live threads can't be copied" if self.number else "no copies on this system")
        state = self._getstate()  # `random` seeds itself anew in every fork
        flags = CLONE_PARENT | signal.SIGCHLD | (CHILD_CLEARTID | CHILD_SETTID if self._tid else 0)
        tid, none = self._long(self._tid), self._long(0)
        last = (tid, none) if self.number == CLONE["x86_64"] else (none, tid)
        mask = self._mask(signal.SIG_BLOCK, self._all)
        self._before()
        pid = int(self._syscall(self._long(self.number), self._long(flags), none, none, *last))
        if pid == 0:
            self._in_child()
            self._setstate(state)
            return 0
        self._in_parent()
        self._mask(signal.SIG_SETMASK, mask)
        if pid < 0:
            raise OSError(self._errno(), "clone")
        return pid

    def leave_group(self) -> None:
        """What a block does to its process group must not reach the copy; that it dies with its parent is not inherited."""
        self._setsid()
        self._prctl(PDEATHSIG, signal.SIGKILL, 0, 0, 0)

    def settle(self) -> None:
        """In a copy that goes on by itself: a group of its own, and signals heard again."""
        self.leave_group()
        self.unblock()

    def unblock(self) -> None:
        """Hear signals again."""
        self._mask(signal.SIG_SETMASK, ())


class Checkpoint:
    """When to make a dormant copy, and the last one made."""

    def __init__(self) -> None:
        self.copier = Copier()
        self.pid = 0
        """The copy made after the last block; 0 when none was."""
        self.work_s = 0.0
        self.total_s = 0.0
        self.cost_s = FIRST_COST_S
        self.fault_s = 0.0
        self._faults_at_copy = 0
        self._probe = bytearray(PROBE * PAGE)
        self._usage, self._self = resource.getrusage, resource.RUSAGE_SELF
        self._pipe, self._read, self._write, self._close = os.pipe, os.read, os.write, os.close
        self._exit, self._cpu = os._exit, time.process_time
        self._wait = getattr(signal, "sigwaitinfo", None)  # macOS has none, and no copies
        self.root = 0

    def after(self, *, cpu_s: float, wall_s: float, stopped: bool) -> bool:
        """Count a block, and make a copy where one is due: True only in a copy that was woken.

        A block that was stopped can't be repeated, so a copy always follows it.
        """
        self.pid = 0
        self.work_s += cpu_s
        self.total_s += cpu_s
        return (stopped or wall_s > LONG_S or self._due()) and self.make()

    def _due(self) -> bool:
        """Whether the work since the last copy has earned another; the pages are counted only where it can have."""
        if self.work_s < WORK_PER_COST * self.cost_s:
            return False
        written_s = self.fault_s * (self._faults() - self._faults_at_copy)
        return self.work_s >= WORK_PER_COST * (self.cost_s + written_s)

    def _faults(self) -> int:
        """Pages that this process had to be given or to copy so far."""
        return self._usage(self._self).ru_minflt

    def branched(self) -> bool:
        """In a copy that goes on beside the original, whose checkpoint is not its own; as `after`."""
        self.copier.settle()
        self.pid = 0
        self.work_s = self.total_s
        self._faults_at_copy = 0  # the kernel counts a copy's anew
        return self._due() and self.make()

    def make(self) -> bool:
        """Make a dormant copy; True in it once it is woken, False in the original."""
        self.pid = 0
        began = self._cpu()
        try:
            reading, writing = self._pipe()
        except OSError:
            return False
        try:
            pid = self.copier.copy()
        except (OSError, RuntimeError):
            pid = -1
        if pid == 0:
            self._sleep(writing)
            self._close(reading)
            self.work_s, self._faults_at_copy = 0.0, 0
            return True
        self._close(writing)
        told = self._read(reading, COST.size) if pid > 0 else b""
        self._close(reading)
        if len(told) == COST.size:
            self.pid = pid
            self.work_s = 0.0
            self.cost_s = self._cpu() - began + COST.unpack(told)[0]
            began = self._cpu()
            for at in range(0, PROBE * PAGE, PAGE):
                self._probe[at] = 1
            self.fault_s = (self._cpu() - began) / PROBE
            self._faults_at_copy = self._faults()
        return False

    def _sleep(self, writing: int) -> None:
        """Leave the worker's process group, say so, and wait for the session's first process alone."""
        try:
            self.copier.leave_group()
            self._write(writing, COST.pack(self._cpu()))
            self._close(writing)
        except OSError:
            self._exit(0)
        while self._wait is not None:
            told = self._wait((signal.SIGUSR1,))
            # The kernel fills in who sent a kill(); nobody can pass for another.
            if told.si_pid == self.root and told.si_code == 0:
                break
        self.copier.unblock()
