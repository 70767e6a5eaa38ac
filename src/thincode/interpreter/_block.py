"""One block on its way, as the client sees it: send it, watch its time, read its answer, learn of its process's death."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import time
from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

from . import Limits, _output
from . import _worker as wire

if TYPE_CHECKING:
    from ._process import Process

CLOSED_S = 2.0
"""Seconds that a busy machine may take to say that a worker which closed its channel has died."""
REPEAT_S = 0.05
"""Seconds between interrupts while a block does not yield."""
RESTORE_S = 0.2
"""Seconds of the grace that are kept for restoring what a killed process held."""
BACKSTOP = 10
"""In deterministic limits wall time judges nothing up to this many times `wall_s`."""
MAX_FRAME = 1 << 20


class End(Enum):
    """What the client saw of a block."""

    OK = wire.OK
    ERROR = wire.ERROR
    INTERRUPTED = wire.INTERRUPTED
    DIED = "died"
    FORGED = "forged"
    LOST = "lost"


class Stop(Enum):
    """Why the client stopped a block."""

    CPU = "cpu"
    WALL = "wall"


class Ended(NamedTuple):
    """One block, as the client saw it end; times in seconds."""

    end: End
    detail: str
    stop: Stop | None
    output: str
    cut_chars: int
    wall_s: float
    cpu_s: float
    checkpoint: int = 0
    """The session's number of a process that holds the state after this block; 0: there is none."""
    left: bool = False
    """Whether processes that the block started still run."""

    @property
    def process_lives(self) -> bool:
        """Whether the worker can take another block."""
        return self.end in (End.OK, End.ERROR, End.INTERRUPTED)


class BlockRun:
    """One block on its way."""

    def __init__(self, process: Process, limits: Limits) -> None:
        self.process = process
        self.limits = limits
        self.loop = asyncio.get_running_loop()
        self.done: asyncio.Future[tuple[End, str, int]] = self.loop.create_future()
        self.checkpoint, self.left = 0, False
        self.nonce = os.urandom(16)
        self.answer = bytearray()
        self.stop: Stop | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.sending: asyncio.Future[None] | None = None

    async def run(self, number: int, body: str, *, copies: Sequence[Sequence[int]] = ()) -> Ended:
        """See `Process.run`; with `copies` (a channel and an output for each) ask for so many copies of the worker."""
        process = self.process
        started, cpu = time.monotonic(), process.cpu()
        self.number, self.started, self.cpu_started = number, started, cpu
        process.watch()
        self._watch()
        kind = wire.BRANCH if copies else wire.BLOCK
        try:
            await self._send(wire.pack(self.nonce, number, kind, body.encode("utf-8", "surrogatepass")))
            for descriptors in copies:
                with contextlib.suppress(OSError):  # the worker is gone; the reins will say
                    socket.send_fds(process.channel, [b"+"], descriptors)
            end, detail, dropped = await self.done
        finally:
            self._let_go()
        if process.closed:
            return Ended(End.LOST, "the session was closed", None, "", 0, time.monotonic() - started, 0.0)
        used = max(process.cpu() - cpu, 0.0) if end not in (End.DIED, End.LOST) else self._last_cpu
        output, cut_chars = _output.read(process.output, limit=self.limits.output_chars, dropped=dropped)
        wall_s = time.monotonic() - started
        return Ended(end, detail, self.stop, output, cut_chars, wall_s, used, self.checkpoint, self.left)

    def abandon(self) -> None:
        """The session is being closed: nobody will answer."""
        self._let_go()
        self._finish(End.LOST, "the session was closed", 0)

    def _let_go(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
        if self.sending is not None:
            self.sending.cancel()

    async def _send(self, frame: bytes) -> None:
        """At once where the socket takes it, as it nearly always does; else until it is sent, or the block has ended.

        A worker that died need not close the channel: its checkpoint holds it too.
        """
        channel = self.process.channel
        try:
            frame = frame[channel.send(frame) :]
        except BlockingIOError:
            pass
        except OSError:  # the worker is gone; the reins will say
            return
        if frame:
            self.sending = asyncio.ensure_future(self.loop.sock_sendall(channel, frame))
            first: list[asyncio.Future[Any]] = [self.sending, self.done]
            await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
            if self.sending.done() and not self.sending.cancelled():
                self.sending.exception()  # here too the reins will say

    # --- time ------------------------------------------------------------------------------------------------------

    _last_cpu = 0.0

    def _watch(self) -> None:
        """Look at both clocks; stop the block, or look again when the nearer limit can have been reached."""
        limits = self.limits
        self._last_cpu = self.process.cpu() - self.cpu_started if self._last_cpu or self.timer else 0.0
        wall = time.monotonic() - self.started
        wall_limit = limits.wall_s * (BACKSTOP if limits.deterministic else 1)
        if self._last_cpu >= limits.cpu_s:
            self._interrupt(Stop.CPU, 0.0)
        elif wall >= wall_limit:
            self._interrupt(Stop.WALL, 0.0)
        else:
            # CPU time runs no faster than wall time in a single thread; several threads are seen a little late.
            pause = min(limits.cpu_s - self._last_cpu, wall_limit - wall)
            self.timer = self.loop.call_later(max(pause, 0.002), self._watch)

    def _interrupt(self, why: Stop, waited: float) -> None:
        if self.done.done():
            return
        self.stop = why
        if waited >= patience_s(self.limits.grace_s):
            self._last_cpu = self.process.cpu() - self.cpu_started
            self._finish(End.DIED, "killed", 0)  # the caller sees to it
            return
        with contextlib.suppress(OSError):
            os.kill(self.process.pid, signal.SIGINT)  # its root does not reap it before we let go
        self.timer = self.loop.call_later(REPEAT_S, self._interrupt, why, waited + REPEAT_S)

    # --- answers ---------------------------------------------------------------------------------------------------

    def read(self) -> None:
        """The channel has something."""
        try:
            part = self.process.channel.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            part = b""
        if not part:
            self.loop.remove_reader(self.process.channel.fileno())
            # The worker closed its channel. If it has died its root says so at once; else it can't answer any more.
            self.loop.call_later(CLOSED_S, self._finish, End.FORGED, "it closed its channel", 0)
            return
        self.answer += part
        head = wire.HEAD
        if len(self.answer) < head.size:
            return
        length, nonce, number, kind = head.unpack_from(self.answer)
        whole = length + wire.PREFIX
        genuine = nonce == self.nonce and number == self.number and head.size <= whole <= MAX_FRAME
        if not genuine or len(self.answer) > whole or kind not in (wire.OK, wire.ERROR, wire.INTERRUPTED):
            self._finish(End.FORGED, "an answer that is not the worker's", 0)
        elif len(self.answer) == whole:
            fields = self.answer[head.size :].decode("utf-8", "replace").split(" ", 3)
            dropped, self.checkpoint, left = (_count(field) for field in [*fields, "", "", ""][:3])
            self.left = bool(left)
            self._finish(End(kind), fields[3] if len(fields) > 3 else "", dropped)

    def death(self) -> None:
        """The reins have something: the root told of the worker's end, or is gone itself."""
        try:
            status = self.process.reins.recv(2)
        except BlockingIOError:
            return
        except OSError:
            status = b""
        if len(status) == 2 and status[0] > 1:
            return  # the answer to an order that nobody waits for any more
        if len(status) < 2:
            # The root went without a word: killed from outside, or with the whole zygote.
            self._finish(End.LOST, "the session's processes are gone", 0)
        else:
            self._finish(End.DIED, describe(by_signal=bool(status[0]), number=status[1]), 0)

    def _finish(self, end: End, detail: str, dropped: int) -> None:
        if not self.done.done():
            self.done.set_result((end, detail, dropped))


def _count(text: str) -> int:
    """A number that the worker wrote; 0 for what is none."""
    return int(text) if text.isdecimal() and len(text) < 10 else 0


def patience_s(grace_s: float) -> float:
    """How long to interrupt: the rest of `grace_s` is kept to bring the names back, so that the reply is in time."""
    return max(grace_s - RESTORE_S, grace_s / 2)


def describe(*, by_signal: bool, number: int) -> str:
    """A death in words: the signal's name, or the exit status."""
    if not by_signal:
        return f"exit status {number}"
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
