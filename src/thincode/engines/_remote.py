"""What engines behind a server share: one client, voices that ask it and count what they cost."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import aclosing
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from ..errors import RecipeError, require
from ..settings import settings
from ..trajectory import Address
from . import Context, Finish, Sampling, Sink
from ._http import Client, Fault, Limits, Refused, TooLong, read_key

CHARS_PER_TOKEN = 4
FINISHES = {"stop": Finish.ENDED, "length": Finish.LENGTH, "content_filter": Finish.ENDED, "eos": Finish.ENDED}


@settings
class Server:
    """Where a server is, and how it is asked: what the settings of every served engine hold."""

    base_url: str = "http://127.0.0.1:8000/v1"
    model: str | None = None
    """The served model's name; none: the only one there is."""
    key_file: Path | None = None
    """Holds the key and nothing else. Keys stand in no recipe, so that no run folder keeps one."""
    key_variable: str | None = None
    """Environment variable that holds the key, for example OPENAI_API_KEY."""
    stream: bool = True
    """False asks for whole answers: then only the server's own stop ends a block early."""
    extra: dict[str, Any] = field(default_factory=dict)
    """Fields added to each request, for example {top_k: 20}."""
    omit: tuple[str, ...] = ()
    """Fields left out of each request because the server refuses them, for example [seed]."""
    limits: Limits = field(default_factory=Limits)

    def client(self, place: str) -> Client:
        """A client for it that has asked nothing yet.

        Raises:
            MissingExtraError: aiohttp is not installed.
            RecipeError: the address or the key can't be used.
        """
        require("aiohttp", extra="remote", needed_for=f"the {place}")
        key = read_key(self.key_file, self.key_variable, place=place)
        return Client(self.base_url, key=key, limits=self.limits, place=place)


@dataclass(frozen=True)
class Request:
    """One generation as a server is asked for it."""

    path: str
    body: Mapping[str, Any]
    chars: int
    """Of the prompt: what is charged is estimated from it where the server was cut short and never told."""
    continued: str = ""
    """The message that is to be continued; llama.cpp repeats it at the beginning of a whole answer."""
    thought_open: bool = False
    """The prompt ends inside a hidden thought."""


class Hearing(ABC):
    """Takes the choices of one answer, whole or streamed, and pushes them into the sink."""

    tokens = 0
    """Heard so far, as far as events tell: servers send about one token an event."""

    @abstractmethod
    def hear(self, choice: Mapping[str, Any]) -> bool:
        """One choice of one event; True means stop."""

    def finish(self) -> bool:
        """The answer is over; True if what was held back says stop."""
        return False


class RemoteEngine(ABC):
    """See `Engine`."""

    speaks_ids = False

    def __init__(self, server: Server, client: Client) -> None:
        """Ask `client` as `server` says."""
        self.client = client
        self.model = server.model
        self.stream = server.stream
        self._extra = server.extra
        self._omit = server.omit
        self._answers_as: str | None = None
        self._voices: set[RemoteVoice] = set()

    @property
    def name(self) -> str:
        """The served model's name."""
        return self.model or "remote"

    @property
    def most_at_once(self) -> int | None:
        """As many as the server is asked for at once: further episodes would only wait, and their time run."""
        return self.client.limits.concurrency

    async def prepare(self) -> Mapping[str, str]:
        """See `Engine.prepare`."""
        await self._find_model()
        return {"model": self.name}

    async def ready(self, context: Context) -> None:  # noqa: B027 - most need to find out nothing
        """Find out about the server what a request for `context` must know."""

    @abstractmethod
    def request(self, context: Context, *, sampling: Sampling, max_tokens: int, seed: int) -> Request:
        """How the server is asked."""

    @abstractmethod
    def hearing(self, sink: Sink, request: Request) -> Hearing:
        """Who listens to the answer."""

    async def voice(self, address: Address) -> RemoteVoice:
        """See `Engine.voice`."""
        voice = RemoteVoice(self)
        self._voices.add(voice)
        return voice

    def drive(self, until: Future[Any]) -> None:
        """Nothing to do in the calling thread but wait."""
        until.exception()

    async def close(self) -> None:
        """See `Engine.close`."""
        for voice in list(self._voices):
            await voice.close()
        await self.client.close()

    def body(self, fields: Mapping[str, Any], *, sampling: Sampling, max_tokens: int, seed: int) -> dict[str, Any]:
        """What all requests hold, with `fields`, the recipe's own, and without those it leaves out."""
        whole = {
            "model": self.model,
            "max_tokens": max_tokens,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "seed": seed % 2**31,  # not every server takes 63 bits
            **({"stream": True, "stream_options": {"include_usage": True}} if self.stream else {}),
            **fields,
            **self._extra,
        }
        return {name: value for name, value in whole.items() if name not in self._omit and value is not None}

    def check_speaker(self, event: Mapping[str, Any]) -> None:
        """Refuse an answer of another model than the first one came from: a record must be able to say who spoke."""
        speaker = event.get("model") or self._answers_as
        self._answers_as = self._answers_as or speaker
        if speaker != self._answers_as:
            raise Fault(f"it answered as {self._answers_as!r}, and now as {speaker!r}")

    def forget(self, voice: RemoteVoice) -> None:
        """A voice was closed."""
        self._voices.discard(voice)

    async def ask(self, path: str, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """One token for a question of ours about the server, unstreamed.

        Raises:
            Refused, Fault: see `Client`.
        """
        sampling = Sampling(temperature=0.0)
        body = self.body(fields, sampling=sampling, max_tokens=1, seed=0)
        body = {key: value for key, value in body.items() if key not in ("stream", "stream_options")}
        async with aclosing(self.client.post(path, body)) as events:
            answer: dict[str, Any] = await anext(events)
        if not answer.get("choices"):
            raise Fault("the answer holds no choice")
        return answer

    async def _find_model(self) -> None:
        place = self.client.place
        served = await self._served()
        if self.model is None and len(served) != 1:
            known = f"it serves {', '.join(served)}" if served else "it does not say what it serves"
            raise RecipeError(f"{place}.model: missing; {self.client.base_url}: {known}; name one")
        self.model = self.model or served[0]
        if served and self.model not in served:
            near = get_close_matches(self.model, served, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"it serves {', '.join(served[:10])}"
            raise RecipeError(f"{place}.model: {self.model!r} is not served at {self.client.base_url}; {hint}")

    async def _served(self) -> list[str]:
        """Names of the models served; empty where the server does not tell."""

        async def attempt() -> list[str]:
            try:
                found = await self.client.get("models")
            except Refused as refused:
                if refused.status in (404, 405):
                    return []
                raise
            return [str(entry.get("id")) for entry in found.get("data") or () if isinstance(entry, dict)]

        return await self.client.insist(attempt, starting=True)


class RemoteVoice:
    """One episode's side of a server; what it has said so far goes along with each request."""

    def __init__(self, engine: RemoteEngine) -> None:
        """Open no connection yet."""
        self.usage: Counter[str] = Counter()
        self._engine = engine
        self._speaking: asyncio.Task[Finish] | None = None

    async def generate(self, context: Context, *, sink: Sink, sampling: Sampling, max_tokens: int, seed: int) -> Finish:
        """See `Voice.generate`.

        Raises:
            GenerationLostError: the server fails for this request alone.
            RecipeError: it refuses the key or the request.
        """
        if max_tokens < 1:
            return Finish.LENGTH
        await self._engine.ready(context)
        request = self._engine.request(context, sampling=sampling, max_tokens=max_tokens, seed=seed)
        speaking = self._engine.client.insist(lambda: self._attempt(request, sink), again=sink.again)
        self._speaking = asyncio.ensure_future(speaking)
        try:
            return await self._speaking
        except TooLong:
            return Finish.LENGTH
        finally:
            self._speaking = None

    async def _attempt(self, request: Request, sink: Sink) -> Finish:
        """One try: hear the answer to its end, or until the sink has enough."""
        hearing = self._engine.hearing(sink, request)
        finish: Finish | None = None
        charged: Mapping[str, Any] = {}
        try:
            async with aclosing(self._engine.client.post(request.path, request.body)) as events:
                async for event in events:
                    self._engine.check_speaker(event)
                    charged = event.get("usage") or charged
                    choice = next(iter(event.get("choices") or ()), None)
                    if not isinstance(choice, dict):
                        continue  # the last event of a stream holds the usage alone
                    if hearing.hear(choice):
                        return Finish.STOPPED
                    if reason := choice.get("finish_reason"):
                        finish = FINISHES.get(reason, Finish.ENDED)
            if finish is None:
                raise Fault("the answer broke off: it has no choice that says how it ended")
            return Finish.STOPPED if hearing.finish() else finish
        finally:
            self._charge(charged, request, hearing)

    def _charge(self, charged: Mapping[str, Any], request: Request, hearing: Hearing) -> None:
        self.usage["requests"] += 1
        if not charged:
            self.usage["estimated_requests"] += 1
        self.usage["prompt_tokens"] += int(charged.get("prompt_tokens") or request.chars // CHARS_PER_TOKEN)
        self.usage["generated_tokens"] += int(charged.get("completion_tokens") or hearing.tokens)

    async def close(self) -> None:
        """See `Voice.close`."""
        self._engine.forget(self)
        if self._speaking is not None:
            self._speaking.cancel()
