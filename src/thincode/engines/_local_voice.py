"""The event-loop side of the engine `local`: voices ask, and wait for what the torch thread sends back."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from ..errors import InfrastructureError, ModelError
from ..trajectory import Address
from . import Context, Finish, Sampling, Sink


@dataclass(eq=False)
class Request:
    """One `generate` in flight. Made on the event-loop thread, then worked on by the torch thread."""

    voice: LocalVoice
    ids: list[int]
    sink: Sink
    sampling: Sampling
    max_tokens: int
    seed: int
    answer: asyncio.Future[Finish]
    made: int = 0
    """Tokens generated so far."""
    live: bool = True
    """False once nobody waits for it any more; set on either side."""

    def send(self, result: Finish | Exception) -> None:
        """Hand the result to the event loop, from the torch thread."""
        self.live = False
        with contextlib.suppress(RuntimeError):  # The loop is closed: nobody waits.
            self.answer.get_loop().call_soon_threadsafe(self._settle, result)

    def _settle(self, result: Finish | Exception) -> None:
        if self.answer.done():
            return
        if isinstance(result, Exception):
            self.answer.set_exception(result)
        else:
            self.answer.set_result(result)


@dataclass(frozen=True, eq=False)
class Opened:
    """A voice was opened."""

    voice: LocalVoice


@dataclass(frozen=True, eq=False)
class Closed:
    """A voice was closed."""

    voice: LocalVoice


class Wake:
    """Look again: something that is no message changed."""


Message = Opened | Closed | Wake | Request


@dataclass(eq=False)
class Row:
    """What the torch thread knows of a voice: the ids that stand, and how many of them are in the cache."""

    ids: list[int] = field(default_factory=list)
    prompt: tuple[int, ...] = ()
    """The ids of its first request; rows with the same prompt compute it once."""
    fed: int = 0
    """The first `fed` ids are in the cache; at least one is left to feed while a request waits."""
    place: int | None = None
    """Row of the cache."""
    request: Request | None = None

    @property
    def has_fed_prompt(self) -> bool:
        """Whether another row may copy the prompt's keys and values from this one."""
        needed = len(self.prompt) - 1
        return 0 < needed <= self.fed and tuple(self.ids[:needed]) == self.prompt[:needed]

    def take(self, request: Request) -> None:
        """Continue from the request's ids, keeping the longest common prefix of the cache.

        The last id is always fed again: its output is what the next token is drawn from.
        """
        common = self.ids[: self.fed]
        if request.ids[: self.fed] != common:
            pairs = enumerate(zip(common, request.ids, strict=False))
            self.fed = next((i for i, (old, new) in pairs if old != new), min(len(common), len(request.ids)))
        self.fed = min(self.fed, len(request.ids) - 1)
        self.prompt = self.prompt or tuple(request.ids)
        self.ids = request.ids
        self.request = request


class LocalVoice:
    """One episode's side of the engine."""

    usage: Mapping[str, int] = MappingProxyType({})

    def __init__(self, address: Address, *, post: Callable[[Message], None], context_tokens: int | None) -> None:
        self.address = address
        self.row = Row()
        """The torch thread's."""
        self._post = post
        self._context_tokens = context_tokens
        self._request: Request | None = None
        self._closed = False

    async def generate(self, context: Context, *, sink: Sink, sampling: Sampling, max_tokens: int, seed: int) -> Finish:
        """See `Voice.generate`. The sink is called in the torch thread.

        Raises:
            ModelError: the context with `max_tokens` is longer than the model can see.
            InfrastructureError: a step failed or the engine is closed.
            asyncio.CancelledError: the voice was closed meanwhile.
        """
        if self._closed:
            raise InfrastructureError("engine local: the voice is closed")
        if self._request is not None:
            raise ValueError("a voice generates one continuation at a time")
        if not context.ids:
            raise ValueError("engine local speaks ids: Context.ids must hold the prompt")
        if max_tokens < 1:
            return Finish.LENGTH
        if self._context_tokens is not None and len(context.ids) + max_tokens > self._context_tokens:
            raise ModelError(
                f"engine local: {len(context.ids)} tokens of context and {max_tokens} to generate are more than the "
                f"{self._context_tokens} positions of the model; lower budget.context_tokens to {self._context_tokens} or less"
            )
        answer: asyncio.Future[Finish] = asyncio.get_running_loop().create_future()
        ids = [int(token) for token in context.ids]
        request = self._request = Request(self, ids, sink, sampling, max_tokens, seed, answer)
        self._post(request)
        try:
            return await answer
        finally:
            self._request = None
            if request.live:  # Cancelled from outside.
                request.live = False
                self._post(Wake())

    async def close(self) -> None:
        """See `Voice.close`."""
        if self._closed:
            return
        self._closed = True
        if self._request is not None:
            self._request.live = False
            self._request.answer.cancel()
        self._post(Closed(self))
