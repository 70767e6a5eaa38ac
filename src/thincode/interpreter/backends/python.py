"""Isolated Python processes on this machine: each session is forked from a warm process, and replaced when it dies.

What a session can't do is decided by the layers this machine offers; `thincode.interpreter.doctor.probe()` lists them. What
no layer here prevents: code can lie about its own output, and can use the kernel's whole system-call surface.

The first session waits for the preload (3 to 5 s of CPU for the default); an empty `preload` starts at once, and its blocks
import for themselves. `sys.exit()` ends a block as `ok` when its argument is nothing or 0, as `error` otherwise.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import resource
import shutil
import socket
import subprocess
import tempfile
import threading
from typing import IO, Any, Self

from ...errors import InfrastructureError
from ...settings import settings
from .. import BlockResult, Limits, Status, _supervisor
from .._process import End, Ended, Process, Stop
from .._zygote import Orders

MAX_ASKED = 64
"""Session requests under way at once; a message holds three descriptors and the kernel bounds those in flight."""

ASK_S = 300.0
"""Seconds to wait for a session; the first one waits for the preload."""


@settings
class Settings:
    """How sessions are made."""

    preload: tuple[str, ...] = ("numpy", "scipy", "sympy", "mpmath")
    """Modules imported and exercised once, before any session. More makes a fork dearer: bare about 1 ms, all 20 ms."""
    pool: int = 2
    """Sessions forked ahead of need."""


def open(settings: Settings, *, limits: Limits) -> PythonInterpreter:
    """Start the supervisor; the preload goes on in the background.

    Raises:
        InfrastructureError: it can't be started.
    """
    return PythonInterpreter(settings, limits=limits)


class _Supervisor:
    """A running supervisor and its zygote, seen by the client; bound to no event loop until the first request."""

    def __init__(self, settings: Settings, limits: Limits) -> None:
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
            preload=tuple(settings.preload), pool=settings.pool, limits=bounds, output_chars=limits.output_chars,
            control=theirs.fileno(), scratch=self.scratch,
        )  # fmt: skip
        try:
            self.process = subprocess.Popen(
                _supervisor.command(orders), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=self.errors,
                env=_supervisor.environment(), pass_fds=[theirs.fileno()], start_new_session=True,
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


class PythonInterpreter:
    """A source of sessions; made in any thread, used on one event loop at a time."""

    def __init__(self, settings: Settings, *, limits: Limits) -> None:
        self.settings = settings
        self.limits = limits
        self._raise_descriptor_limit()
        self._lock = threading.Lock()
        self._supervisor: _Supervisor | None = _Supervisor(settings, limits)
        self._sessions: set[PythonSession] = set()
        self._gate = asyncio.Semaphore(MAX_ASKED)
        self._closed = False

    @staticmethod
    def _raise_descriptor_limit() -> None:
        """Three descriptors a session: let the soft limit be no obstacle."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = 16384 if hard == resource.RLIM_INFINITY else min(hard, 16384)
        if soft < wanted:
            with contextlib.suppress(ValueError, OSError):
                resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))

    async def session(self, *, seed: int = 0) -> PythonSession:
        """A fresh session; see the door.

        Raises:
            InfrastructureError: no session can be made.
        """
        session = PythonSession(self, seed=seed, process=await self.fork(seed))
        self._sessions.add(session)
        return session

    async def fork(self, seed: int) -> Process:
        """A fresh process for a session; a new supervisor where the old one has died."""
        if self._closed:
            raise InfrastructureError("the interpreter is closed; open another")
        async with self._gate:
            for _ in range(3):
                with self._lock:
                    if self._supervisor is None or self._supervisor.dead:
                        if self._supervisor is not None:
                            self._supervisor.close()
                        self._supervisor = _Supervisor(self.settings, self.limits)
                    supervisor = self._supervisor
                try:
                    process = Process(await asyncio.wait_for(supervisor.ask(), ASK_S))
                except InfrastructureError as error:
                    failure = error
                    continue
                except TimeoutError:
                    raise InfrastructureError(f"the interpreter made no session in {ASK_S:g} s") from None
                try:
                    if await process.begin(seed):
                        return process
                except BaseException:
                    process.close()
                    raise
                process.close()
                failure = InfrastructureError("a session's process died before it was ready")
        raise failure

    @property
    def isolation(self) -> dict[str, Any]:
        """What the zygote reported: its layers and what it preloaded; empty before the first session."""
        return self._supervisor.isolation if self._supervisor is not None else {}

    def forget(self, session: PythonSession) -> None:
        """Called by a session that was closed."""
        self._sessions.discard(session)

    async def close(self) -> None:
        """End all sessions and the supervisor; nothing of ours is left."""
        self._closed = True
        for session in list(self._sessions):
            await session.close()
        supervisor, self._supervisor = self._supervisor, None
        if supervisor is not None:
            await asyncio.get_running_loop().run_in_executor(None, supervisor.close)

    async def __aenter__(self) -> Self:
        """The interpreter itself."""
        return self

    async def __aexit__(self, *details: object) -> None:
        """Close."""
        await self.close()


class PythonSession:
    """One stateful interpreter; its process is replaced when it dies."""

    def __init__(self, interpreter: PythonInterpreter, *, seed: int, process: Process) -> None:
        self._interpreter = interpreter
        self._seed = seed
        self._process: Process | None = process
        self._busy = asyncio.Lock()
        self._closed = False

    @property
    def layers(self) -> dict[str, str]:
        """What isolation this session's process reported."""
        return self._process.layers if self._process is not None else {}

    async def run(self, code: str) -> BlockResult:
        """Run one block to its end or its limit; never raises for anything the code does."""
        async with self._busy:
            if self._closed:
                return BlockResult(Status.LOST, "", "the session is closed", state_kept=False)
            if self._process is None:
                try:
                    self._process = await self._interpreter.fork(self._seed)
                except InfrastructureError as error:
                    return BlockResult(Status.LOST, "", str(error), state_kept=False)
            try:
                ended = await self._process.run(code, self._interpreter.limits)
            except BaseException:
                self._drop()  # cancelled half-way: the block may still run, its answer would come to the next one
                raise
            if not ended.process_lives:
                self._drop()
            return result_of(ended, self._interpreter.limits)

    def _drop(self) -> None:
        if self._process is not None:
            self._process.close()
            self._process = None

    async def close(self) -> None:
        """End the session and everything it started."""
        self._closed = True
        self._drop()
        self._interpreter.forget(self)

    async def __aenter__(self) -> Self:
        """The session itself."""
        return self

    async def __aexit__(self, *details: object) -> None:
        """Close."""
        await self.close()


GONE = "Names defined earlier are gone."


def result_of(ended: Ended, limits: Limits) -> BlockResult:
    """The door's result for what the client saw; no measured time enters the text."""
    times: dict[str, Any] = {"wall_s": ended.wall_s, "cpu_s": ended.cpu_s}
    if ended.end is End.LOST:
        return BlockResult(Status.LOST, "", ended.detail, state_kept=False, **times)
    output, cut_chars = ended.output, ended.cut_chars
    if ended.stop is not None:
        if limits.deterministic:
            output, cut_chars = "", 0  # how far it came is a matter of timing
        took = f"{limits.cpu_s:g} s of CPU time" if ended.stop is Stop.CPU else f"{limits.wall_s:g} s"
        note, detail = f"Stopped: the block used up its {took}.", "time"
    elif ended.end is End.DIED:
        note, detail = f"The process died ({ended.detail}).", "died"
    elif ended.end is End.FORGED:
        note, detail = f"Stopped: the block tampered with its interpreter ({ended.detail}).", "tampered"
    else:
        status = Status.OK if ended.end is End.OK else Status.ERROR
        detail = ended.detail[:80] if ended.detail.isprintable() else "Exception"
        return BlockResult(status, output, "" if status is Status.OK else detail, cut_chars, **times)
    if not ended.process_lives:
        note += f" {GONE}"
    if output and not output.endswith("\n"):
        output += "\n"
    return BlockResult(Status.LIMIT, f"{output}{note}\n", detail, cut_chars, ended.process_lives, **times)
