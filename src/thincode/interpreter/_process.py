"""The client's side of one worker process: send a block, watch its time, read its output, learn of its death."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
import time
from dataclasses import dataclass
from enum import Enum

from . import Limits, _output
from . import _worker as wire

REPEAT_S = 0.05
"""Seconds between interrupts while a block does not yield."""
READY_S = 60.0
"""Seconds a new process has to say that it is ready."""
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


@dataclass(frozen=True)
class Ended:
    """One block, as the client saw it end; times in seconds."""

    end: End
    detail: str
    stop: Stop | None
    output: str
    cut_chars: int
    wall_s: float
    cpu_s: float

    @property
    def process_lives(self) -> bool:
        """Whether the worker can take another block."""
        return self.end in (End.OK, End.ERROR, End.INTERRUPTED)


class Process:
    """One session's root and worker, seen through three descriptors."""

    def __init__(self, descriptors: list[int]) -> None:
        self.channel = socket.socket(fileno=descriptors[0])
        self.output = descriptors[1]
        self.reins = socket.socket(fileno=descriptors[2])
        self.channel.setblocking(False)
        self.reins.setblocking(False)
        self.sequence = 0
        self.pid = 0
        self.layers: dict[str, str] = {}
        self.closed = False
        self.block: _Block | None = None

    def close(self) -> None:
        """Let go of the reins: the root kills every process of the session. A block under way is lost."""
        if self.closed:
            return
        self.closed = True
        if self.block is not None:
            self.block.abandon()
        self.channel.close()
        self.reins.close()
        os.close(self.output)

    async def begin(self, seed: int) -> bool:
        """Wait for the worker's first word, then seed it; False when it died before."""
        loop = asyncio.get_running_loop()
        ready = asyncio.Event()
        loop.add_reader(self.channel.fileno(), ready.set)
        try:
            await asyncio.wait_for(ready.wait(), READY_S)
        except TimeoutError:
            return False
        finally:
            loop.remove_reader(self.channel.fileno())
        try:
            frame, ancillary, _, _ = self.channel.recvmsg(1 << 16, socket.CMSG_SPACE(12))
        except OSError:
            return False
        if len(frame) < wire.HEAD.size:
            return False
        told = json.loads(frame[wire.HEAD.size :])
        self.layers, self.pid = told["layers"], told["pid"]
        for _level, _kind, data in ancillary:
            self.pid = int.from_bytes(data[:4], sys.byteorder)
        if ancillary:
            self.channel.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 0)
        await loop.sock_sendall(self.channel, wire.pack(bytes(16), 0, wire.BEGIN, str(seed).encode()))
        return True

    def cpu(self) -> float:
        """CPU seconds the worker has used so far, from its own clock; 0 where there is none."""
        try:
            return time.clock_gettime((~self.pid << 3) | 2)
        except OSError:
            return 0.0

    async def run(self, code: str, limits: Limits) -> Ended:
        """Run one block to its end, its limit or its process's death."""
        self.sequence += 1
        os.ftruncate(self.output, 0)
        os.lseek(self.output, 0, os.SEEK_SET)
        self.block = _Block(self, limits)
        try:
            return await self.block.run(code)
        finally:
            self.block = None


class _Block:
    """One block on its way."""

    def __init__(self, process: Process, limits: Limits) -> None:
        self.process = process
        self.limits = limits
        self.loop = asyncio.get_running_loop()
        self.done: asyncio.Future[tuple[End, str, int]] = self.loop.create_future()
        self.nonce = os.urandom(16)
        self.answer = bytearray()
        self.stop: Stop | None = None
        self.timer: asyncio.TimerHandle | None = None

    async def run(self, code: str) -> Ended:
        process, loop = self.process, self.loop
        started, cpu = time.monotonic(), process.cpu()
        self.started, self.cpu_started = started, cpu
        channel, reins = process.channel.fileno(), process.reins.fileno()
        loop.add_reader(channel, self._read)
        loop.add_reader(reins, self._death)
        self._watch()
        frame = wire.pack(self.nonce, process.sequence, wire.BLOCK, code.encode("utf-8", "surrogatepass"))
        try:
            await self._send(frame)
            end, detail, dropped = await self.done
        finally:
            self._let_go()
        if process.closed:
            return Ended(End.LOST, "the session was closed", None, "", 0, time.monotonic() - started, 0.0)
        used = max(process.cpu() - cpu, 0.0) if end not in (End.DIED, End.LOST) else self._last_cpu
        output, cut_chars = _output.read(process.output, limit=self.limits.output_chars, dropped=dropped)
        return Ended(end, detail, self.stop, output, cut_chars, time.monotonic() - started, used)

    def abandon(self) -> None:
        """The session is being closed: nobody will answer."""
        self._let_go()
        self._finish(End.LOST, "the session was closed", 0)

    def _let_go(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
        for end in (self.process.channel, self.process.reins):
            if end.fileno() >= 0:
                self.loop.remove_reader(end.fileno())

    async def _send(self, frame: bytes) -> None:
        """At once where the socket takes it, as it nearly always does."""
        channel = self.process.channel
        with contextlib.suppress(OSError):  # the worker is gone; the reins will say
            with contextlib.suppress(BlockingIOError):
                frame = frame[channel.send(frame) :]
            if frame:
                await self.loop.sock_sendall(channel, frame)

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
        if waited >= self.limits.grace_s:
            self._last_cpu = self.process.cpu() - self.cpu_started
            self._finish(End.DIED, "killed", 0)  # letting go of the reins kills it
            return
        with contextlib.suppress(OSError):
            os.kill(self.process.pid, signal.SIGINT)  # its root does not reap it before we let go
        self.timer = self.loop.call_later(REPEAT_S, self._interrupt, why, waited + REPEAT_S)

    # --- answers ---------------------------------------------------------------------------------------------------

    def _read(self) -> None:
        try:
            part = self.process.channel.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            part = b""
        if not part:
            self.loop.remove_reader(self.process.channel.fileno())
            # The worker closed its channel. If it has died its root says so at once; else it can't answer any more.
            self.loop.call_later(0.2, self._finish, End.FORGED, "it closed its channel", 0)
            return
        self.answer += part
        head = wire.HEAD
        if len(self.answer) < head.size:
            return
        length, nonce, sequence, kind = head.unpack_from(self.answer)
        whole = length + wire.PREFIX
        genuine = nonce == self.nonce and sequence == self.process.sequence and head.size <= whole <= MAX_FRAME
        if not genuine or len(self.answer) > whole or kind not in (wire.OK, wire.ERROR, wire.INTERRUPTED):
            self._finish(End.FORGED, "an answer that is not the worker's", 0)
        elif len(self.answer) == whole:
            dropped, _, detail = self.answer[head.size :].decode("utf-8", "replace").partition(" ")
            count = int(dropped) if dropped.isdecimal() and len(dropped) < 16 else 0
            self._finish(End(kind), detail, count)

    def _death(self) -> None:
        try:
            status = self.process.reins.recv(2)
        except BlockingIOError:
            return
        except OSError:
            status = b""
        if len(status) < 2:
            # The root went without a word: killed from outside, or with the whole zygote.
            self._finish(End.LOST, "the session's processes are gone", 0)
        else:
            self._finish(End.DIED, describe(by_signal=bool(status[0]), number=status[1]), 0)

    def _finish(self, end: End, detail: str, dropped: int) -> None:
        if not self.done.done():
            self.done.set_result((end, detail, dropped))


def describe(*, by_signal: bool, number: int) -> str:
    """A death in words: the signal's name, or the exit status."""
    if not by_signal:
        return f"exit status {number}"
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
