"""An event loop in its own thread beside the test's, which drives: what a run does, in a few lines."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from thincode.engines import Context
from thincode.trajectory import Address


@dataclass
class Listener:
    """A sink that keeps what it hears and says stop at the `stop_after`th token or piece."""

    stop_after: int = 10**9
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)
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

    @property
    def heard(self) -> list[int] | list[str]:
        """Ids from an engine that speaks ids, else pieces of text."""
        return self.ids or self.pieces


def context(ids: Sequence[int]) -> Context:
    return Context(question_id="q", user_message="q", prompt="q", text="", ids=ids)


def address(sample: int) -> Address:
    return Address(run=0, stage="test", step=0, problem="p", sample=sample)


def drive(engine: Any, work: Coroutine[Any, Any, Any], *, within_s: float = 60.0) -> Any:
    """Run `work` on a loop in another thread while this one drives the engine (if it is one to be driven)."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        future: Future[Any] = asyncio.run_coroutine_threadsafe(asyncio.wait_for(work, within_s), loop)
        if hasattr(engine, "drive"):
            engine.drive(future)
        return future.result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
