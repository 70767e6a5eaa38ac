"""The client's side of a supervisor: started by exec, asked for sessions, hung up on."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import socket
import subprocess
import tempfile
from typing import IO, Any

from ..errors import InfrastructureError
from . import Limits
from ._orders import Orders, command, environment


class Link:
    """A running supervisor and its zygote, seen by the client; bound to no event loop until the first request."""

    def __init__(
        self, *, preload: tuple[str, ...], pool: int, limits: Limits, first_at_once: bool = False,
        off: tuple[str, ...] = (), library: str = "",
    ) -> None:  # fmt: skip
        kind = (
            getattr(socket, "SOCK_SEQPACKET", socket.SOCK_DGRAM) if os.uname().sysname == "Linux" else socket.SOCK_DGRAM
        )
        self.control, theirs = socket.socketpair(socket.AF_UNIX, kind)
        self.errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the supervisor
        # Made here, so that it can be removed even when the supervisor was killed.
        self.scratch = tempfile.mkdtemp(prefix="thincode-")
        self.isolation: dict[str, Any] = {}
        self.dead = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: list[asyncio.Future[list[int]]] = []
        bounds = {name: getattr(limits, name) for name in ("memory_mib", "processes", "disk_mib", "files")}
        orders = Orders(
            preload=preload, pool=pool, limits=bounds, output_chars=limits.output_chars,
            control=theirs.fileno(), scratch=self.scratch, first_at_once=first_at_once, off=off,
            library=library,
        )  # fmt: skip
        try:
            self.process = subprocess.Popen(
                command(orders), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=self.errors,
                env=environment(), pass_fds=[theirs.fileno()], start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            self.control.close()
            self.errors.close()
            shutil.rmtree(self.scratch, ignore_errors=True)
            raise InfrastructureError(f"the interpreter's supervisor can't be started: {error}") from error
        finally:
            theirs.close()
        self.control.setblocking(False)

    async def ask(self) -> list[int]:
        """The descriptors of a fresh session."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            if self._loop is not None and not self._loop.is_closed():
                self._loop.remove_reader(self.control.fileno())
            self._loop, self._waiting = loop, []
            loop.add_reader(self.control.fileno(), self._read)
        future: asyncio.Future[list[int]] = loop.create_future()
        self._waiting.append(future)
        try:
            self.control.send(b"session")
        except OSError as error:
            self._waiting.remove(future)
            raise self._gone() from error
        return await future

    def _read(self) -> None:
        try:
            message, descriptors, _, _ = socket.recv_fds(self.control, 1 << 16, 3)
        except BlockingIOError:
            return
        except OSError:
            message, descriptors = b"", []
        if not message:
            self._lose()
            return
        told = {} if descriptors else json.loads(message)
        if "layers" in told:
            self.isolation = told
        elif self._waiting:
            future = self._waiting.pop(0)
            if not future.done():
                if told:
                    future.set_exception(InfrastructureError(f"no process for a session: {told['failed']}"))
                else:
                    future.set_result(list(descriptors))
                return
            for descriptor in descriptors:  # nobody waits for this one any more
                os.close(descriptor)

    def _lose(self) -> None:
        self.dead = True
        if self._loop is not None:
            self._loop.remove_reader(self.control.fileno())
        for future in self._waiting:
            if not future.done():
                future.set_exception(self._gone())
        self._waiting = []

    def _gone(self) -> InfrastructureError:
        self.dead = True
        self.errors.seek(0)
        said = self.errors.read().decode("utf-8", "replace").strip().splitlines()
        why = f": {said[-1]}" if said else ""
        return InfrastructureError(f"the interpreter's supervisor has ended{why}; the next session starts a new one")

    def close(self) -> None:
        """Hang up, and wait until the supervisor has killed and cleaned."""
        if self._loop is not None and not self._loop.is_closed():
            with contextlib.suppress(ValueError, RuntimeError):
                self._loop.remove_reader(self.control.fileno())
        self.control.close()
        if self.process.stdin is not None:
            self.process.stdin.close()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.errors.close()
        shutil.rmtree(self.scratch, ignore_errors=True)
        self.dead = True
