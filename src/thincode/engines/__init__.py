"""Who speaks: given what stands so far, continue it. Each public module here is a kind with `Settings` and `open`.

An engine knows nothing of code, fences or interpreters. It pushes what it generates into a sink, token by token or text
piece by text piece, and stops when the sink says so. The memory of an episode (a KV cache) lives in its voice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from ..settings import settings
from ..trajectory import Address
from ..trajectory.formats import Converses


@settings
class Sampling:
    """How the next token is drawn."""

    temperature: float = 1.0
    """0 is greedy."""
    top_p: float = 1.0


class Finish(StrEnum):
    """Why a generation ended."""

    STOPPED = "stopped"
    """The sink said stop; the token or piece that made it say so has been pushed."""
    ENDED = "ended"
    """The model ended its turn; the end-of-sequence token, where there is one, has been pushed."""
    LENGTH = "length"
    """`max_tokens` were generated."""


class Sink(Protocol):
    """Takes what is generated. Called in order, from one thread at a time; must be quick and must not block."""

    def token(self, token_id: int, logprob: float) -> bool:
        """One sampled token with its log-probability under the sampling distribution; True means stop."""

    def text(self, piece: str) -> bool:
        """The next piece of text, from an engine without ids; True means stop."""

    def hidden(self, piece: str, *, counted: bool) -> bool:
        """A piece of a hidden thought, which stays out of the trajectory; `counted` ones use up context. True means stop."""

    def again(self) -> None:
        """What this generation has pushed so far is void: its connection broke, and it begins anew."""


@dataclass(frozen=True)
class Exchange:
    """A question and what was said to it, for engines that render a conversation themselves."""

    user: str
    said: tuple[str, ...] = ()
    """The model's text and what was put in behind it (outputs, notices), by turns; the model's is first."""
    turns: tuple[Mapping[str, str], ...] = ()
    """The same as messages of the assistant and of a tool, where outputs are a tool's turns; else empty."""


def conversation(shots: Sequence[Exchange], asked: Exchange) -> list[dict[str, str]]:
    """The messages of a chat, each exchange one question and one answer; a last answer is there to be continued.

    Where outputs are turns of a tool, an answer is several messages.
    """
    messages: list[dict[str, str]] = []
    for exchange in (*shots, asked):
        messages.append({"role": "user", "content": exchange.user})
        if exchange.turns:
            messages += [dict(message) for message in exchange.turns]
        elif exchange.said:
            messages.append({"role": "assistant", "content": "".join(exchange.said)})
    return messages


@dataclass(frozen=True)
class Context:
    """What stands so far."""

    question_id: str
    exchange: Exchange
    """The question as the user puts it, and the turns so far, whose texts join to `text`."""
    prompt: str
    """The rendered prompt; without a tokenizer, only the user's message."""
    text: str
    """Everything after the prompt."""
    ids: Sequence[int] | None
    """Prompt and everything after it, for engines that speak ids. Only ever appended to, but for a dropped last token."""
    outputs: tuple[str, ...] = ()
    """What the blocks so far printed, as the model saw it."""
    shots: tuple[Exchange, ...] = ()
    """Worked examples that stand before the question; in `prompt` too, where that is rendered."""
    stop: str = ""
    """Where text of ours would begin: a server may stop there, the model has nothing to say behind it."""
    tools: Converses | None = None
    """The format, where its outputs are turns of a tool: it says what tools there are."""


class Voice(Protocol):
    """One episode's side of an engine."""

    @property
    def usage(self) -> Mapping[str, int]:
        """What the episode has cost so far, where it costs: `prompt_tokens`, `generated_tokens`, `requests`, …"""

    async def generate(self, context: Context, *, sink: Sink, sampling: Sampling, max_tokens: int, seed: int) -> Finish:
        """Continue `context` until the sink stops it, the model ends, or `max_tokens` are generated.

        Raises:
            InfrastructureError: the engine failed; nothing is said about the model.
        """

    async def close(self) -> None:
        """Free the episode's memory; also cancels a generation in flight."""


class Engine(Protocol):
    """A source of voices."""

    @property
    def name(self) -> str:
        """What speaks: a folder, a served model's name, `scripted`."""

    @property
    def speaks_ids(self) -> bool:
        """Whether sinks get token ids and log-probabilities. RL needs it."""

    @property
    def most_at_once(self) -> int | None:
        """Episodes it wants to serve at once; None: as many as there are."""

    async def prepare(self) -> Mapping[str, str]:
        """Find out whether and how it can speak; what the records shall say of it (`model`, `way`). Voices come after it.

        Raises:
            UserError: it can't, and the user can mend that.
        """

    async def voice(self, address: Address) -> Voice:
        """A voice for one episode."""

    def drive(self, until: Future[Any]) -> None:
        """Work in the calling thread until `until` is done; engines that need no thread of ours just wait.

        One thread owns torch: the one that calls this. `until` is done by the event-loop thread.
        """

    async def close(self) -> None:
        """Stop all work and free everything."""
