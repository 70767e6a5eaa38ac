"""Every interpreter that `interpreter.py` measures, behind the same four calls. Each is the way its users run it.

A side makes sessions; a session runs a block within a time limit and gives its output; both are closed. Each side is measured
in a process of its own, so that none finds sympy imported by another.
"""

from __future__ import annotations

import asyncio
import code
import contextlib
import io
import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

LIMIT_S = 1.0
"""Of a block in the figures on recovery; elsewhere nothing comes near a limit."""
DIED = "<died>"


class Side:
    """A source of sessions."""

    name = ""
    needs: tuple[str, ...] = ()
    """Packages; without them the side is absent."""

    async def open(self) -> None:
        """Get ready once; not counted."""

    async def session(self) -> Any:
        """A new one: `await run(code, limit_s)`, `await close()`."""
        raise NotImplementedError

    async def close(self) -> None:
        """End everything."""


# --- ours -----------------------------------------------------------------------------------------------------------


class Ours(Side):
    """Isolated, forked from a warm process, checkpoints on."""

    name = "thincode"
    words: Mapping[str, Any] = MappingProxyType({"pool": 0})

    async def open(self) -> None:
        from thincode.interpreter import Limits
        from thincode.interpreter.backends import python
        from thincode.settings import parse

        limits = Limits(cpu_s=LIMIT_S, wall_s=10, memory_mib=1024)
        self.interpreter = python.open(parse(python.Settings, {"first_at_once": False, **self.words}), limits=limits)
        async with await self.interpreter.session():
            pass  # the preload is done when the first session is there

    async def session(self) -> Any:
        return OurSession(await self.interpreter.session())

    async def close(self) -> None:
        await self.interpreter.close()


class OursPooled(Ours):
    """The same, sessions forked ahead of need."""

    name = "thincode, pool"
    words = MappingProxyType({"pool": 2})


class OursUnisolated(Ours):
    """Fork alone: no layer of isolation."""

    name = "thincode, no isolation"
    words = MappingProxyType({"pool": 0, "tier": "T0"})


class OurSession:
    def __init__(self, session: Any) -> None:
        self.session = session
        self.close = session.close

    async def run(self, code: str, limit_s: float = LIMIT_S) -> str:
        return str((await self.session.run(code)).output)


# --- ipykernel ------------------------------------------------------------------------------------------------------


class Ipykernel(Side):
    """A kernel for each session, as jupyter_client starts it."""

    name = "ipykernel"
    needs = ("ipykernel", "jupyter_client")

    async def session(self) -> Any:
        from jupyter_client.manager import AsyncKernelManager

        manager = AsyncKernelManager()
        await manager.start_kernel(stderr=subprocess.DEVNULL)
        client = manager.client()
        client.start_channels()
        await client.wait_for_ready(timeout=60)
        return KernelSession(manager, client)


class KernelSession:
    def __init__(self, manager: Any, client: Any) -> None:
        self.manager, self.client = manager, client

    async def run(self, code: str, limit_s: float = 60.0) -> str:
        listening = asyncio.ensure_future(self._listen(code))
        deadline = asyncio.get_running_loop().time() + limit_s
        while True:
            done, _ = await asyncio.wait([listening], timeout=0.1 if limit_s > LIMIT_S else 0.02)
            if done:
                return listening.result()
            if not await self.manager.is_alive():
                listening.cancel()
                await self.manager.restart_kernel(now=True, stderr=subprocess.DEVNULL)
                await self.client.wait_for_ready(timeout=60)
                return DIED
            if asyncio.get_running_loop().time() >= deadline:
                await self.manager.interrupt_kernel()
                deadline += 1.0

    async def _listen(self, code: str) -> str:
        request, text = self.client.execute(code), ""
        while True:
            message = await self.client.get_iopub_msg(timeout=None)
            if message["parent_header"].get("msg_id") == request:
                if message["msg_type"] == "stream":
                    text += message["content"]["text"]
                if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                    return text

    async def close(self) -> None:
        self.client.stop_channels()
        await self.manager.shutdown_kernel(now=True)


# --- a process with a pipe ------------------------------------------------------------------------------------------


class Piped(Side):
    """A process for each session, made by multiprocessing; blocks and outputs go through its pipe."""

    method = "fork"
    target: Callable[[Any], None]

    async def session(self) -> Any:
        return PipedSession(multiprocessing.get_context(self.method), type(self).target)


class PipedSession:
    def __init__(self, context: Any, target: Callable[[Any], None]) -> None:
        self.context, self.target = context, target
        self.start()

    def start(self) -> None:
        self.pipe, theirs = self.context.Pipe()
        self.process = self.context.Process(target=self.target, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()

    async def run(self, code: str, limit_s: float = 60.0) -> str:
        try:
            self.pipe.send(code)
            if not self.pipe.poll(limit_s):
                os.kill(self.process.pid, signal.SIGINT)
            return str(self.pipe.recv())
        except (EOFError, OSError):
            await self.close()
            self.start()
            return DIED

    async def close(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


def ipython_shell(pipe: Any) -> None:
    """What NeMo-Skills' sandbox runs in each of its processes."""
    from IPython.core.interactiveshell import InteractiveShell

    signal.signal(signal.SIGINT, signal.default_int_handler)  # not the event loop's, which came along
    shell = InteractiveShell()
    while True:
        block, out = pipe.recv(), io.StringIO()
        with contextlib.redirect_stdout(out):
            try:
                shell.run_cell(block)
            except KeyboardInterrupt:
                print("interrupted")
        pipe.send(out.getvalue())


def plain_interpreter(pipe: Any) -> None:
    """The standard library's own."""
    interpreter = code.InteractiveInterpreter()
    while True:
        block, out = pipe.recv(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            try:
                interpreter.runcode(compile(block, "<block>", "exec"))
            except KeyboardInterrupt:
                print("interrupted")
        pipe.send(out.getvalue())


class IpythonForked(Piped):
    """An IPython shell in a process forked by multiprocessing, as NeMo-Skills does."""

    name = "IPython, forked"
    needs = ("IPython",)
    target = staticmethod(ipython_shell)


class PlainSpawned(Piped):
    """An InteractiveInterpreter in a spawned process."""

    name = "code, spawned"
    method = "spawn"
    target = staticmethod(plain_interpreter)


# --- python -c, and in process --------------------------------------------------------------------------------------


class Replayed(Side):
    """`python -c` for each block, with all earlier blocks before it."""

    name = "python -c, replay"

    async def session(self) -> Any:
        return ReplayedSession()


QUIETLY = "import contextlib, io\nwith contextlib.redirect_stdout(io.StringIO()): exec({history!r})\nexec({block!r})"


class ReplayedSession:
    def __init__(self) -> None:
        self.history: list[str] = []

    async def run(self, code: str, limit_s: float = 60.0) -> str:
        program = QUIETLY.format(history="\n".join(self.history), block=code)
        try:
            ran = subprocess.run(
                [sys.executable, "-c", program], capture_output=True, text=True, timeout=limit_s, check=True
            )
        except (subprocess.TimeoutExpired, subprocess.CalledProcessError):
            return DIED
        self.history.append(code)
        return ran.stdout

    async def close(self) -> None:
        """Nothing lives between blocks."""


class Smolagents(Side):
    """LocalPythonExecutor: an evaluator of syntax trees in this very process."""

    name = "smolagents"
    needs = ("smolagents",)

    async def session(self) -> Any:
        return SmolSession()


class SmolSession:
    def __init__(self) -> None:
        from smolagents.local_python_executor import LocalPythonExecutor

        self.executor = LocalPythonExecutor(additional_authorized_imports=["sympy"], timeout_seconds=int(LIMIT_S))
        self.executor.send_tools({})

    async def run(self, code: str, limit_s: float = 60.0) -> str:
        try:
            return str(self.executor(code).logs)
        except Exception:
            return DIED

    async def close(self) -> None:
        """It is an object."""


SIDES: dict[str, type[Side]] = {
    "ours": Ours,
    "pool": OursPooled,
    "ipykernel": Ipykernel,
    "ipython": IpythonForked,
    "spawned": PlainSpawned,
    "replay": Replayed,
    "smolagents": Smolagents,
    "unisolated": OursUnisolated,
}
