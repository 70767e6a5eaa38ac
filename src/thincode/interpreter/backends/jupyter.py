"""Jupyter kernels: blocks run in an environment of your own, with its packages, and with everything your user may do.

No isolation: a block reads your files, environment and network. For code of models that you trust, or inside a container.
Magics (`%`, `!`) and top-level `await` work. A kernel takes seconds to start and tens of MiB; a block takes tens of ms.

Time is judged as everywhere: CPU and wall clock, interrupts, then a kill after `grace_s`; a killed or dead kernel is replaced and
its names are gone. `memory_mib` bounds the address space (Linux); `processes`, `files` and `disk_mib` do not apply. Both output
streams are one, so that they keep their order; direct writes to descriptors arrive late.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from ...errors import InfrastructureError, require
from ...settings import PositiveFloat, settings
from .. import BlockResult, Limits, Status, _notebook, _output, _prompt
from .._block import BACKSTOP, REPEAT_S, End, Ended, Stop, describe
from .._session import result_of

LOOK_S = 0.1
"""Longest pause between looks at a running block's clocks and its kernel's life."""
STARTING = 8
"""Kernels that start at the same time."""


@settings
class Settings:
    """Which kernel."""

    kernel: str = "python3"
    """Name of a kernelspec, as `jupyter kernelspec list` shows it; python3 is this Python where none is installed."""
    start_s: PositiveFloat = 60.0
    """Seconds that a kernel may take to start."""


def open(settings: Settings, *, limits: Limits) -> JupyterInterpreter:
    """Look for the kernel; none is started before the first session.

    Raises:
        MissingExtraError: jupyter_client or ipykernel is not installed.
        InfrastructureError: there is no kernel of this name.
    """
    for package in ("jupyter_client", "ipykernel"):
        require(package, extra="jupyter", needed_for="the interpreter backend `jupyter`")
    from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel

    try:
        KernelSpecManager().get_kernel_spec(settings.kernel)
    except NoSuchKernel:
        raise InfrastructureError(
            f"no Jupyter kernel is named {settings.kernel!r}; `jupyter kernelspec list` shows those there are, "
            f"`python -m ipykernel install --user --name {settings.kernel}` in your environment makes one"
        ) from None
    return JupyterInterpreter(settings, limits=limits)


class JupyterInterpreter:
    """A source of sessions, each a kernel."""

    def __init__(self, settings: Settings, *, limits: Limits) -> None:
        self.settings = settings
        self.limits = limits
        self._starting = asyncio.Semaphore(STARTING)
        self._sessions: set[JupyterSession] = set()
        self._closed = False

    async def session(self, *, seed: int = 0) -> JupyterSession:
        """A fresh kernel; see the door.

        Raises:
            InfrastructureError: it does not start.
        """
        session = JupyterSession(self, seed=seed, kernel=await self.start(seed))
        self._sessions.add(session)
        return session

    async def start(self, seed: int) -> Kernel:
        """A kernel that is ready for blocks."""
        if self._closed:
            raise InfrastructureError("the interpreter is closed; open another")
        async with self._starting:
            kernel = Kernel(self.settings)
            try:
                await kernel.start(seed, self.limits)
            except Exception as error:
                await kernel.close()
                raise InfrastructureError(
                    f"the Jupyter kernel {self.settings.kernel!r} did not start: {error}"
                ) from error
            except BaseException:
                await kernel.close()
                raise
        return kernel

    def forget(self, session: JupyterSession) -> None:
        """Called by a session that was closed."""
        self._sessions.discard(session)

    async def close(self) -> None:
        """End all kernels."""
        self._closed = True
        await asyncio.gather(*(session.close() for session in list(self._sessions)))

    async def __aenter__(self) -> Self:
        """The interpreter itself."""
        return self

    async def __aexit__(self, *details: object) -> None:
        """Close."""
        await self.close()


class JupyterSession:
    """One kernel, replaced when it dies."""

    def __init__(self, interpreter: JupyterInterpreter, *, seed: int, kernel: Kernel) -> None:
        self._interpreter = interpreter
        self._seed = seed
        self._kernel: Kernel | None = kernel
        self._busy = asyncio.Lock()
        self._closed = False

    async def run(self, code: str) -> BlockResult:
        """Run one block to its end or its limit; never raises for anything the code does."""
        async with self._busy:
            if self._closed:
                return BlockResult(Status.LOST, "", "the session is closed", state_kept=False)
            if self._kernel is None:
                try:
                    self._kernel = await self._interpreter.start(self._seed)
                except InfrastructureError as error:
                    return BlockResult(Status.LOST, "", str(error), state_kept=False)
            try:
                ended = await self._kernel.run(code, self._interpreter.limits)
            except BaseException:
                await asyncio.shield(self._drop())  # its answer must not come to the next block
                raise
            result = result_of(ended, self._interpreter.limits)
            if not ended.process_lives:
                await self._drop()
                gone = f"{result.output}Names defined earlier are gone.\n" if result.status is Status.LIMIT else ""
                return replace(result, output=gone, state_kept=False)
            return result

    async def fork(self, n: int) -> list[JupyterSession]:
        """Refused.

        Raises:
            InfrastructureError: always.
        """
        raise InfrastructureError("fork: a Jupyter kernel can't be copied; use the interpreter backend `python`")

    async def _drop(self) -> None:
        kernel, self._kernel = self._kernel, None
        if kernel is not None:
            await kernel.close()

    async def close(self) -> None:
        """End the kernel and everything it started."""
        self._closed = True
        self._interpreter.forget(self)
        await self._drop()

    async def __aenter__(self) -> Self:
        """The session itself."""
        return self

    async def __aexit__(self, *details: object) -> None:
        """Close."""
        await self.close()


class Kernel:
    """One kernel process and the messages it sends."""

    def __init__(self, settings: Settings) -> None:
        from jupyter_client.manager import AsyncKernelManager

        self.start_s = settings.start_s
        self.folder = tempfile.mkdtemp(prefix="thincode-")
        # Sockets in a folder of ours: nobody else on this machine can listen, and no two kernels fight for a port.
        place = f"{self.folder}/kernel.json"
        self.manager: Any = AsyncKernelManager(kernel_name=settings.kernel, transport="ipc", connection_file=place)
        self.client: Any = None
        self.closed = False

    async def start(self, seed: int, limits: Limits) -> None:
        """Start it and tell it the house rules."""
        await self.manager.start_kernel(env={**os.environ, "PYTHONHASHSEED": "0", "MPLBACKEND": "Agg"})
        self.client = self.manager.client()
        self.client.start_channels()
        await self.client.wait_for_ready(timeout=self.start_s)
        source = Path(_notebook.__file__).read_text(encoding="utf-8")
        prompt = Path(_prompt.__file__).read_text(encoding="utf-8")
        program = f"{source}\nprepare({prompt!r}, seed={seed}, memory_mib={limits.memory_mib})"
        told = Told(limits)
        # In names of its own: the blocks find none of ours.
        await asyncio.wait_for(self._listen(f"exec({program!r}, {{}})", told), self.start_s)
        if told.error is not None:
            raise RuntimeError("".join(told.head))

    @property
    def pid(self) -> int:
        """The kernel's process."""
        return int(self.manager.provisioner.pid)

    def cpu(self) -> float:
        """CPU seconds it has used so far."""
        try:
            return time.clock_gettime((~self.pid << 3) | 2)
        except (OSError, TypeError):
            return 0.0

    async def run(self, code: str, limits: Limits) -> Ended:
        """Run one block to its end, its limit or the kernel's death."""
        started, cpu = time.monotonic(), self.cpu()
        told = Told(limits)
        listening = asyncio.ensure_future(self._listen(code, told))
        try:
            stop, end, detail = await self._watch(listening, limits, cpu)
        finally:
            listening.cancel()
        if end is None:
            end, detail = told.end
            if stop is not None and end is not End.OK:
                end = End.INTERRUPTED
        output, cut_chars = told.text()
        return Ended(end, detail, stop, output, cut_chars, time.monotonic() - started, max(self.cpu() - cpu, 0.0))

    async def _watch(
        self, listening: asyncio.Future[None], limits: Limits, cpu: float
    ) -> tuple[Stop | None, End | None, str]:
        """Until the block has ended (no end of its own then) or its kernel has, by itself or killed for us."""
        clock = time.monotonic
        began, interrupted, stop = clock(), 0.0, None
        wall_limit = limits.wall_s * (BACKSTOP if limits.deterministic else 1)
        while True:
            wait = REPEAT_S if stop else min(LOOK_S, max(wall_limit - (clock() - began), 0.001))
            done, _ = await asyncio.wait([listening], timeout=wait)
            if done:
                listening.result()
                return stop, None, ""
            if self.closed:
                return None, End.LOST, "the session was closed"
            status = await self.manager.provisioner.poll()
            if status is not None:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(asyncio.shield(listening), LOOK_S)  # what it printed before
                return stop, End.DIED, describe(by_signal=status < 0, number=abs(status))
            if stop is None:
                late = clock() - began >= wall_limit
                stop = Stop.CPU if self.cpu() - cpu >= limits.cpu_s else Stop.WALL if late else None
                interrupted = clock()
            if stop is not None:
                if clock() - interrupted >= limits.grace_s:
                    return stop, End.DIED, "killed"  # by whoever drops this kernel
                os.kill(self.pid, signal.SIGINT)

    async def _listen(self, code: str, told: Told) -> None:
        """Send a block and gather what is said about it, until the kernel is idle again."""
        request = self.client.execute(code, store_history=False, allow_stdin=False, stop_on_error=False)
        while True:
            message = await self.client.get_iopub_msg(timeout=None)
            if message["parent_header"].get("msg_id") != request:
                continue
            if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                return
            told.hear(message["msg_type"], message["content"])

    async def close(self) -> None:
        """Kill it, and what it started in its process group."""
        if self.closed:
            return
        self.closed = True
        if self.client is not None:
            self.client.stop_channels()
        provisioner = self.manager.provisioner
        if provisioner is not None and provisioner.process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(provisioner.pid, signal.SIGKILL)
            await self.manager.shutdown_kernel(now=True)
        shutil.rmtree(self.folder, ignore_errors=True)


class Told:
    """What a kernel said of one block; a flood keeps its beginning and its end."""

    def __init__(self, limits: Limits) -> None:
        self.limit = limits.output_chars
        self.window = 8 * self.limit + 4096
        self.head: list[str] = []
        self.head_size = 0
        self.tail = ""
        self.dropped = 0
        self.error: str | None = None

    def hear(self, kind: str, content: dict[str, Any]) -> None:
        """One message."""
        if kind == "stream":
            self.add(content["text"])
        elif kind in ("execute_result", "display_data") and "text/plain" in content["data"]:
            self.add(content["data"]["text/plain"] + "\n")
        elif kind == "error":
            name, value = content["ename"], content["evalue"]
            if name == "SystemExit" and value in ("", "None", "0"):
                return
            self.error = name
            lines = content["traceback"] or ([] if value.lstrip("-").isdigit() else [value])
            if name != "KeyboardInterrupt":
                self.add("".join(f"{line}\n" for line in lines))

    def add(self, text: str) -> None:
        """Text of the block, in order."""
        if self.head_size < self.window:
            self.head.append(text)
            self.head_size += len(text)
            return
        self.tail += text
        if len(self.tail) > 2 * self.window:
            self.dropped += len(self.tail) - self.window
            self.tail = self.tail[-self.window :]

    @property
    def end(self) -> tuple[End, str]:
        """How the block ended, if it did, and the exception's name."""
        if self.error is None:
            return End.OK, ""
        return End.INTERRUPTED if self.error == "KeyboardInterrupt" else End.ERROR, self.error

    def text(self) -> tuple[str, int]:
        """The output, cleaned and cut, and how many characters are missing."""
        head = _output.clean("".join(self.head).encode("utf-8", "surrogateescape"))
        tail = _output.clean(self.tail.encode("utf-8", "surrogateescape")) if self.dropped else None
        head += "" if self.dropped else _output.clean(self.tail.encode("utf-8", "surrogateescape"))
        return _output.cut(head, tail, limit=self.limit, between=self.dropped)
