"""The first process of a session: it starts the worker, ends what must end, and wakes a checkpoint when the worker has died.

It runs no code of a block. The client speaks to it over the reins, one pair for each worker: the session's first one, and
every copy that goes on beside it. All of them share the scratch folder, the count of processes and each other's sight.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import select
import shutil
import signal
import socket
import struct
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from . import _isolation as isolation

if TYPE_CHECKING:
    from ._zygote import Zygote

ORDER = struct.Struct("!cI")
"""What the client says: a letter, a process number of the session."""
KEEP, CLEAR, WAKE, SWEEP, BRANCH = b"K", b"C", b"W", b"S", b"B"
"""Keep this checkpoint, and end the one before; end everything but it; wake it; end what a block left running; hold
another worker by the reins that come along."""
DONE, FAILED = b"\x02\x01", b"\x02\x00"
"""What the client hears, besides two bytes when a worker dies: whether by a signal (0 or 1), and which or the exit status."""
ROUNDS = 400


@dataclass
class Held:
    """A worker, its checkpoint (0: none), and the reins it is held by."""

    pid: int
    reins: socket.socket
    checkpoint: int = 0
    told: bool = field(default=False)
    """Whether the client has heard of its death."""


@dataclass(frozen=True)
class Kin:
    """A process below this one, by its number in the session, and where it stands in /proc."""

    pid: int
    host: str
    zombie: bool


class Root:
    """Holds the session's workers until the client lets go of all of them."""

    def __init__(self, zygote: Zygote, channel: int, output: int, reins: int) -> None:
        self.zygote, self.channel, self.output, self.reins = zygote, channel, output, reins
        self.workers: list[Held] = []
        self.folder = ""
        """Of the machine, to be removed with the session; empty where its scratch goes by itself."""

    def start(self) -> None:
        """Isolate the session, start its worker, hold it; never returns."""
        zygote, ground, proc = self.zygote, self.zygote.ground, self.zygote.procfs
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        isolation.close_all_but(
            [self.channel, self.output, self.reins, *([proc.descriptor] if proc.descriptor >= 0 else [])]
        )
        limits = zygote.orders.limits
        scratch, user = ground.scratch, ground.user(zygote.count)
        if not ground.own_files:
            scratch = self.folder = f"{ground.scratch}/{zygote.count}"
            Path(scratch).mkdir(mode=0o700)
        report = isolation.enter_session(ground, scratch, limits["disk_mib"], user)
        os.chdir(scratch)
        tempfile.tempdir = os.environ["HOME"] = scratch
        pid = os.fork()
        if pid == 0:
            try:
                self.become_worker(report, user)
            finally:
                os._exit(70)  # without a word: what this process writes now would be taken for the block's output
        os.close(self.channel)
        os.close(self.output)
        self.workers.append(Held(pid, socket.socket(fileno=self.reins)))
        self.hold()

    def become_worker(self, report: isolation.Report, user: int | None) -> None:
        """Isolate, move our descriptors out of the way of code that closes the low ones, serve; never returns."""
        orders = self.zygote.orders
        top = self.zygote.top
        channel, output = os.dup2(self.channel, top, False), os.dup2(self.output, top + 1, False)
        null = os.open("/dev/null", os.O_RDONLY)
        os.dup2(null, 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        isolation.close_all_but([channel, output])
        ground, space = self.zygote.ground, self.zygote.address_space
        isolation.enter_worker(ground, report, orders.limits, user=user, address_space=space)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        gc.enable()
        self.zygote.worker.serve(json.dumps(report))

    # --- the client's orders ---------------------------------------------------------------------------------------

    def hold(self) -> None:
        """Say when a worker has died, do what the client asks; when it lets go of the last worker, end everything."""
        parent = os.getppid()
        for number in (signal.SIGCHLD, signal.SIGTERM):  # a child has ended; the zygote has
            signal.signal(number, lambda *_: None)
        wake_read, wake_write = os.pipe()
        os.set_blocking(wake_write, False)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        while self.workers:
            for worker in self.workers:
                ended = None if worker.told else how_it_ended(worker.pid)
                if ended is not None:
                    worker.told = True
                    self.say(worker, ended)
            reins = {worker.reins.fileno(): worker for worker in self.workers}
            readable, _, _ = select.select([wake_read, *reins], [], [])
            if os.getppid() != parent:
                for worker in self.workers.copy():
                    self.let_go(worker)
                break
            for descriptor in readable:
                if descriptor == wake_read:
                    os.read(wake_read, 4096)
                else:
                    self.obey(reins[descriptor])
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)
        os._exit(0)

    def say(self, worker: Held, what: bytes) -> None:
        """Two bytes to the client; it may be gone already."""
        with contextlib.suppress(OSError):
            worker.reins.send(what)

    def obey(self, worker: Held) -> None:
        """One order."""
        try:
            order, descriptors, _, _ = socket.recv_fds(worker.reins, ORDER.size, 1)
        except OSError:
            order, descriptors = b"", []
        if len(order) < ORDER.size:
            self.let_go(worker)
            return
        what, pid = ORDER.unpack(order)
        if what == KEEP and self.ours(pid):
            self.end(worker.checkpoint)
            worker.checkpoint = pid
        elif what == SWEEP:
            self.sweep(worker, whole=False)
            self.say(worker, DONE)
        elif what == CLEAR:
            clear = worker.told = self.sweep(worker, whole=True)
            alive = worker.checkpoint and how_it_ended(worker.checkpoint) is None
            self.say(worker, DONE if clear and alive else FAILED)
        elif what == WAKE and worker.checkpoint:
            worker.pid, worker.checkpoint, worker.told = worker.checkpoint, 0, False
            for number in (signal.SIGCONT, signal.SIGUSR1):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(worker.pid, number)
        elif what == BRANCH and descriptors and self.ours(pid):
            self.workers.append(Held(pid, socket.socket(fileno=descriptors.pop())))
        for descriptor in descriptors:
            os.close(descriptor)

    def ours(self, pid: int) -> bool:
        """Whether this is a living child of ours that we hold for nobody yet: a worker can tell the client any number."""
        if any(pid in (worker.pid, worker.checkpoint) for worker in self.workers):
            return False
        try:
            return how_it_ended(pid) is None
        except ChildProcessError:
            return False

    def let_go(self, worker: Held) -> None:
        """End one worker with all it started."""
        self.workers.remove(worker)
        worker.reins.close()
        if self.workers:
            self.end(worker.checkpoint)
            self.sweep(worker, whole=True)
        else:
            self.kill_all(worker)

    # --- ends ------------------------------------------------------------------------------------------------------

    def end(self, pid: int) -> None:
        """Kill and reap one child of ours."""
        if pid:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)

    def sweep(self, worker: Held, *, whole: bool) -> bool:
        """End what a worker started, and where `whole` the worker too, and what it left to us when it died.

        Processes are stopped before any is killed: a stopped one keeps its place in the count of processes, so code that
        forks without end runs out of room. Other workers and all checkpoints stay.

        Returns:
            Whether nothing is left.
        """
        others = {held.pid for held in self.workers if held is not worker}
        passed_over = others | {held.checkpoint for held in [*self.workers, worker] if held.checkpoint}
        stopped: set[int] = set()
        for _ in range(ROUNDS):
            found = {kin.pid for kin in self.kin(passed_over, worker.pid, whole=whole) if not kin.zombie}
            new = found - stopped
            for pid in new or found:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP if new else signal.SIGKILL)
            stopped |= new
            if not found:
                if whole:
                    self.reap(passed_over)
                return True
            if not new:
                time.sleep(0.0005)
        return False

    def reap(self, passed_over: set[int]) -> None:
        """Collect what has ended among our children; the others' workers are left: their numbers may still be signaled."""
        for kin in self.children("self"):
            if kin.zombie and kin.pid not in passed_over:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(kin.pid, os.WNOHANG)

    def kill_all(self, last: Held) -> None:
        """Kill every process of the session; the first one of a namespace could leave that to the kernel."""
        for _ in range(ROUNDS):
            if self.zygote.own_pids >= 0:
                targets = [-1]
            else:
                targets = [kin.pid for kin in self.kin(set(), last.pid, whole=True)] or [last.pid]
            for pid in targets:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            try:
                os.waitpid(-1, 0)
            except ChildProcessError:
                return

    # --- who is there ----------------------------------------------------------------------------------------------

    def kin(self, passed_over: set[int], worker: int, *, whole: bool) -> list[Kin]:
        """The processes that a sweep ends: below the worker, or all below us but those passed over."""
        found = [kin for kin in self.children("self") if kin.pid not in passed_over and (whole or kin.pid == worker)]
        for kin in found:
            found += self.children(kin.host)
        return [kin for kin in found if whole or kin.pid != worker]

    def children(self, host: str) -> list[Kin]:
        """The direct children of a process; none where there is no /proc."""
        proc = self.zygote.procfs
        found = []
        with contextlib.suppress(OSError):
            # Each thread has children of its own.
            numbers = [
                number
                for thread in proc.entries(f"{host}/task")
                for number in proc.read(f"{host}/task/{thread}/children").split()
            ]
            for number in numbers:
                with contextlib.suppress(OSError):
                    status = dict(line.partition(":\t")[::2] for line in proc.read(f"{number}/status").splitlines())
                    own = status.get("NSpid", number).split()[-1]
                    found.append(Kin(int(own), number, status["State"][0] in "ZX"))
        return found


def how_it_ended(pid: int) -> bytes | None:
    """Two bytes: whether a signal ended a child, and the signal or the exit status; None while it lives.

    The child is not reaped: while the client may still signal it, its number must not pass to another process.

    Raises:
        ChildProcessError: no child of ours.
    """
    if not hasattr(os, "waitid"):  # macOS before Python 3.13
        ended, status = os.waitpid(pid, os.WNOHANG)
        code = os.waitstatus_to_exitcode(status)
        return bytes([code < 0, abs(code) & 0xFF]) if ended else None
    found = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if found is None:
        return None
    return bytes([found.si_code in (os.CLD_KILLED, os.CLD_DUMPED), found.si_status & 0xFF])
