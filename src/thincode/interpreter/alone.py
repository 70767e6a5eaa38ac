"""The interpreter for those who want nothing else of thincode: `from thincode import Interpreter`.

with Interpreter() as interpreter, interpreter.session(seed=1) as session:  # blocking
    print(session.run("6 * 7").output)

async with Interpreter(cpu_s=2) as interpreter, await interpreter.session() as session:  # asyncio
    result = await session.run("1 / 0")
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, Self, TypeVar

from ..settings import kind, parse
from . import BlockResult, Limits, Session, open_interpreter
from . import Interpreter as Door

T = TypeVar("T")


class Interpreter(Door):
    """A source of sessions, ready to use: `async with` gives the door's asyncio, `with` gives plain calls."""

    def __init__(
        self, backend: str = "python", *, preset: str | None = None, settings: dict[str, Any] | None = None, **limits: Any
    ) -> None:  # fmt: skip
        """Open it; what it preloads goes on in the background.

        Args:
            backend: a kind of `thincode.interpreter.backends`.
            preset: behave as that system's interpreter; see `thincode.interpreter.presets`.
            settings: of the backend, for example `{"preload": ["numpy"], "pool": 4}`.
            limits: fields of `Limits`, for example `cpu_s=2`.

        Raises:
            RecipeError: an unknown name, or a value that is not possible.
            InfrastructureError: it can't be started.
        """
        chosen = kind("thincode.interpreter.backends", backend, **(settings or {}))
        self._inner = open_interpreter(chosen, limits=parse(Limits, limits, place="limits"), preset=preset)
        self._thread: _LoopThread | None = None

    async def session(self, *, seed: int = 0) -> Session:
        """A fresh session; see the door."""
        return await self._inner.session(seed=seed)

    async def close(self) -> None:
        """End all sessions; two seconds later no process, mount or file of ours is left."""
        await self._inner.close()

    async def __aenter__(self) -> Self:
        """The interpreter itself."""
        return self

    async def __aexit__(self, *details: object) -> None:
        """Close."""
        await self.close()

    def __enter__(self) -> BlockingInterpreter:
        """The same with plain calls; not for a thread that runs an event loop's callbacks."""
        self._thread = _LoopThread()
        return BlockingInterpreter(self._inner, self._thread)

    def __exit__(self, *details: object) -> None:
        """Close."""
        if self._thread is not None:
            self._thread.call(self._inner.close())
            self._thread.close()


class BlockingInterpreter:
    """A source of sessions whose calls return when they are done; from any thread."""

    def __init__(self, inner: Door, thread: _LoopThread) -> None:
        self._inner, self._thread = inner, thread

    def session(self, *, seed: int = 0) -> BlockingSession:
        """A fresh session; see the door."""
        return BlockingSession(self._thread.call(self._inner.session(seed=seed)), self._thread)


class BlockingSession:
    """One stateful interpreter; see the door's `Session`."""

    def __init__(self, inner: Session, thread: _LoopThread) -> None:
        self._inner, self._thread = inner, thread

    def run(self, code: str) -> BlockResult:
        """Run one block to its end or its limit; never raises for anything the code does."""
        return self._thread.call(self._inner.run(code))

    def fork(self, n: int) -> list[BlockingSession]:
        """Sessions that share what was executed so far; see the door."""
        return [BlockingSession(session, self._thread) for session in self._thread.call(self._inner.fork(n))]

    def close(self) -> None:
        """End the session and everything it started."""
        self._thread.call(self._inner.close())

    def __enter__(self) -> Self:
        """The session itself."""
        return self

    def __exit__(self, *details: object) -> None:
        """Close."""
        self.close()


class _LoopThread:
    """An event loop in a thread of its own: plain calls work beside a loop of the caller's, as in a notebook."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, name="interpreter", daemon=True)
        self.thread.start()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()

    def close(self) -> None:
        self.call(self.loop.shutdown_default_executor())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()
