"""An event loop in its own thread beside the test's, which drives: what a run does, in a few lines."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Coroutine, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from thincode.engines import Context, Exchange
from thincode.trajectory import Address


@dataclass
class Listener:
    """A sink that keeps what it hears and says stop at the `stop_after`th token or piece."""

    stop_after: int = 10**9
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    started: threading.Event = field(default_factory=threading.Event)

    def token(self, token_id: int, logprob: float) -> bool:
        self.ids.append(token_id)
        self.logprobs.append(logprob)
        self.started.set()
        return len(self.ids) >= self.stop_after

    def text(self, piece: str) -> bool:
        self.pieces.append(piece)
        self.started.set()
        return len(self.pieces) >= self.stop_after

    def hidden(self, piece: str, *, counted: bool) -> bool:
        self.thoughts.append(piece)
        return False

    def again(self) -> None:
        for heard in (self.ids, self.logprobs, self.pieces, self.thoughts):
            heard.clear()

    @property
    def heard(self) -> list[int] | list[str]:
        """Ids from an engine that speaks ids, else pieces of text."""
        return self.ids or self.pieces


def context(ids: Sequence[int]) -> Context:
    return Context(question_id="q", exchange=Exchange("q"), prompt="q", text="", ids=ids)


def address(sample: int) -> Address:
    return Address(run=0, stage="test", step=0, problem="p", sample=sample)


@functools.cache
def _loop() -> asyncio.AbstractEventLoop:
    """The one long-lived loop, as in a run: what an engine keeps between two drives belongs to it."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    return loop


def drive(engine: Any, work: Coroutine[Any, Any, Any], *, within_s: float = 60.0) -> Any:
    """Run `work` on a loop in another thread while this one drives the engine (if it is one to be driven)."""
    future: Future[Any] = asyncio.run_coroutine_threadsafe(asyncio.wait_for(work, within_s), _loop())
    if hasattr(engine, "drive"):
        engine.drive(future)
    return future.result()
