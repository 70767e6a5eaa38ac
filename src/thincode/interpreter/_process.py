"""The client's side of one worker: its blocks, its checkpoint, the copies that go on beside it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import sys
import time
from collections.abc import Callable
from typing import Any

from . import Limits, _output
from . import _root as root
from . import _worker as wire
from ._block import BlockRun, End, Ended

READY_S = 60.0
"""Seconds a new process has to say that it is ready."""
ORDER_S = 60.0
"""Seconds the session's first process, or a woken checkpoint, has to answer."""


class Process:
    """A worker and its root, seen through three descriptors: channel, output, reins."""

    def __init__(self, descriptors: list[int]) -> None:
        self.channel = socket.socket(fileno=descriptors[0])
        self.output = descriptors[1]
        self.reins = socket.socket(fileno=descriptors[2])
        self.channel.setblocking(False)
        self.reins.setblocking(False)
        self.pid = 0
        self.layers: dict[str, str] = {}
        self.checkpoint = 0
        """The session's number of the dormant process that `revive` goes on from; 0: there is none."""
        self.closed = False
        self.block: BlockRun | None = None
        self._watching: asyncio.AbstractEventLoop | None = None

    def watch(self) -> None:
        """Have the block under way hear both sockets. Kept up between blocks: asking the kernel anew costs as much as a block."""
        loop = asyncio.get_running_loop()
        if self._watching is not loop:
            self.unwatch()
            loop.add_reader(self.channel.fileno(), self._heard, BlockRun.read)
            loop.add_reader(self.reins.fileno(), self._heard, BlockRun.death)
            self._watching = loop

    def unwatch(self) -> None:
        """Leave the sockets to whoever reads them next."""
        if self._watching is not None and not self._watching.is_closed():
            self._watching.remove_reader(self.channel.fileno())
            self._watching.remove_reader(self.reins.fileno())
        self._watching = None

    def _heard(self, what: Callable[[BlockRun], None]) -> None:
        if self.block is not None:
            what(self.block)
        else:
            self.unwatch()  # nobody asked: it stands there for the next block

    def close(self) -> None:
        """Let go of the reins: the root kills every process of this worker. A block under way is lost."""
        if self.closed:
            return
        self.closed = True
        if self.block is not None:
            self.block.abandon()
        self.unwatch()
        self.channel.close()
        self.reins.close()
        os.close(self.output)

    async def begin(self, seed: int) -> bool:
        """Wait for the worker's first word, then seed it; False when it died before."""
        told = await self._first_word(READY_S)
        if told is None:
            return False
        self.layers = told["layers"]
        await asyncio.get_running_loop().sock_sendall(
            self.channel, wire.pack(bytes(16), 0, wire.BEGIN, str(seed).encode())
        )
        return True

    async def _first_word(self, within_s: float) -> dict[str, Any] | None:
        """What a worker says when it begins to listen; the kernel tells which process it is, in our own numbers."""
        if not await self._readable(self.channel, within_s):
            return None
        try:
            frame, ancillary, _, _ = self.channel.recvmsg(1 << 16, socket.CMSG_SPACE(12))
            told: dict[str, Any] = json.loads(frame[wire.HEAD.size :])
        except (OSError, ValueError):
            return None
        self.pid = told["pid"]
        for _level, _kind, data in ancillary:
            self.pid = int.from_bytes(data[:4], sys.byteorder)
        if ancillary:
            self.channel.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 0)
        self._keep(told["checkpoint"])
        return told

    async def _readable(self, end: socket.socket, within_s: float) -> bool:
        self.unwatch()
        loop = asyncio.get_running_loop()
        ready = asyncio.Event()
        loop.add_reader(end.fileno(), ready.set)
        try:
            await asyncio.wait_for(ready.wait(), within_s)
        except TimeoutError:
            return False
        finally:
            loop.remove_reader(end.fileno())
        return True

    def cpu(self) -> float:
        """CPU seconds the worker has used so far, from its own clock; 0 where there is none."""
        try:
            return time.clock_gettime((~self.pid << 3) | 2)
        except OSError:
            return 0.0

    async def run(self, number: int, code: str, limits: Limits) -> Ended:
        """Run one block to its end, its limit or its process's death.

        Args:
            number: which block of the session it is, from 1; tracebacks show it.
            code: its source.
            limits: what it may use.
        """
        os.ftruncate(self.output, 0)
        os.lseek(self.output, 0, os.SEEK_SET)
        self.block = BlockRun(self, limits)
        try:
            ended = await self.block.run(number, code)
        finally:
            self.block = None
        if ended.process_lives:
            self._keep(ended.checkpoint)
            if ended.left:
                await self._ask(root.SWEEP)
        return ended

    # --- the root --------------------------------------------------------------------------------------------------

    def _tell(self, what: bytes, pid: int = 0, *descriptors: int) -> None:
        """An order that needs no answer; the root may be gone, and then so is the session."""
        with contextlib.suppress(OSError):
            socket.send_fds(self.reins, [root.ORDER.pack(what, pid)], descriptors)

    async def _ask(self, what: bytes) -> bool:
        """An order, and whether the root did it."""
        self._tell(what)
        while await self._readable(self.reins, ORDER_S):
            try:
                answer = self.reins.recv(2)
            except OSError:
                return False
            if answer in (root.DONE, root.FAILED, b""):
                return answer == root.DONE
        return False

    def _keep(self, checkpoint: int) -> None:
        if checkpoint:
            self.checkpoint = checkpoint
            self._tell(root.KEEP, checkpoint)

    def halt(self) -> None:
        """End everything but the checkpoint, without waiting for it."""
        self._tell(root.CLEAR)

    async def revive(self) -> bool:
        """Go on from the checkpoint, whatever the worker is doing; False when there is none any more."""
        if not self.checkpoint or self.closed or not await self._ask(root.CLEAR):
            return False
        with contextlib.suppress(OSError):
            while self.channel.recv(1 << 16):  # what the dead worker still said
                pass
        if hasattr(socket, "SO_PASSCRED"):
            self.channel.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self.checkpoint = 0
        self._tell(root.WAKE)
        return await self._first_word(ORDER_S) is not None

    async def branch(self, number: int, count: int, limits: Limits) -> list[Process]:
        """Copies of the worker that go on beside it in the same session.

        Raises:
            OSError: what stands against it, in words.
        """
        ends: list[tuple[socket.socket, socket.socket]] = []  # whose closing the root sees
        made: list[Process] = []
        sent: list[list[int]] = []
        for _ in range(count):
            ours, theirs = socket.socketpair()
            reins, held = socket.socketpair()
            if hasattr(socket, "SO_PASSCRED"):
                ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
            output = _output.memory_file()
            made.append(Process([ours.detach(), output, reins.detach()]))
            ends.append((theirs, held))
            sent.append([theirs.fileno(), output])
        try:
            self.block = BlockRun(self, limits)
            try:
                ended = await self.block.run(number, str(count), copies=sent)
            finally:
                self.block = None
            pids = ended.detail.split()
            if ended.end is not End.OK or len(pids) != count:
                raise OSError(ended.detail if ended.end is End.ERROR else "the session's process did not answer")
            for process, pid, (_, held) in zip(made, pids, ends, strict=True):
                self._tell(root.BRANCH, int(pid), held.fileno())
                process.layers = self.layers
                if await process._first_word(ORDER_S) is None:
                    raise OSError("a copy died before it was ready")
        except BaseException:
            for process in made:
                process.close()
            raise
        finally:
            for pair in ends:
                for end in pair:
                    end.close()
        return made
