"""A real HTTP server that speaks the OpenAI format (models, completions, chat; streamed or whole) and vLLM's token ids.

What it says is a function of what stands in the prompt; how it fails is a function of the request's number.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import json
import math
import re
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Self

from aiohttp import web

FAULTS = ("drop", "429", "500", "hang", "half", "json", "empty", "name", "ids")
_QUESTION = re.compile(r"What is (\d+) \* (\d+) \+ (\d+)\?")
_MADE_UP = "```output\n999\n```\n\\boxed{999}\n"


def question(number: int) -> tuple[str, str]:
    """A question that `teacher` can solve, and its answer."""
    a, b, c = 12 + number, 7 + number % 89, 100 + number * number
    return f"What is {a} * {b} + {c}?", str(a * b + c)


def teacher(asked: str) -> str:
    """Solves `question` in three blocks and a box; behind each block it makes up an output."""
    found = list(_QUESTION.finditer(asked))
    if not found:
        return "I know no such question."
    a, b, c = found[-1].groups()
    outputs = re.findall(r"```output\n(.*?)\n```", asked[found[-1].end() :], re.DOTALL)
    blocks = (
        f"Multiply, then add, then check.\n```python\np = {a} * {b}\nprint(p)\n```\n",
        f"```python\ns = p + {c}\nprint(s)\n```\n",
        f"```python\nassert s - {c} == {a} * {b}\nprint(s)\n```\n",
    )
    if len(outputs) < len(blocks):
        return blocks[len(outputs)] + _MADE_UP
    return f"\\boxed{{{outputs[-1]}}}"


def rambler(asked: str) -> str:
    """Talks on."""
    return " ".join(f"word{number}" for number in range(500))


def ids_of(prompt: Sequence[int], *, seed: int, most: int, vocabulary: int) -> list[int]:
    """Ids that depend on everything before them, and on the seed."""
    ids = list(prompt)
    for _ in range(most):
        digest = hashlib.blake2b(repr((ids, seed)).encode(), digest_size=4).digest()
        ids.append(int.from_bytes(digest, "big") % vocabulary)
    return ids[len(prompt) :]


Faults = Callable[[int], str | None]


def never(number: int) -> str | None:
    return None


def drawn(share: float, *, seed: int, kinds: Sequence[str] = FAULTS) -> Faults:
    """Faults of all kinds in so many of the requests."""

    def fault(number: int) -> str | None:
        random = Random(f"{seed}/{number}")
        return random.choice(kinds) if random.random() < share else None

    return fault


@dataclass
class OpenAIServer:
    """Runs in a thread of its own between `with` and its end."""

    speak: Callable[[str], str] = teacher
    can: frozenset[str] = frozenset({"completions", "continue", "ids", "processed"})
    """What it can do beside plain chat."""
    key: str | None = None
    model: str = "teacher-1"
    vocabulary: int = 97
    """Token ids it says are below."""
    faults: Faults = never
    thought: str = ""
    """Stands before each answer, as a thinking model's text does."""
    context_tokens: int = 100_000
    echoes: bool = False
    """Repeats the message that is to be continued in a whole answer, as llama.cpp does."""
    tick_s: float = 0.0
    """Between two events of a stream."""
    piece_chars: int = 12
    asked: list[dict[str, Any]] = field(default_factory=list)
    """Bodies of the generation requests, in order."""
    orders: list[str] = field(default_factory=list)
    """What it was told to do (read its weights again, forget its cache)."""
    abandoned: int = 0
    """Streams that the client hung up on."""

    def __enter__(self) -> Self:
        self._numbers = itertools.count()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.url = asyncio.run_coroutine_threadsafe(self._start(), self._loop).result()
        return self

    def __exit__(self, *details: object) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _stop(self) -> None:
        await self._runner.cleanup()
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)

    async def _start(self) -> str:
        app = web.Application(middlewares=[self._guard])
        app.router.add_get("/v1/models", self._models)
        app.router.add_post("/v1/chat/completions", self._chat)
        if "completions" in self.can:
            app.router.add_post("/v1/completions", self._complete)
        if "orders" in self.can:
            app.router.add_post("/collective_rpc", self._order)
            app.router.add_post("/reset_prefix_cache", self._order)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"

    # --- endpoints ---

    @web.middleware
    async def _guard(self, request: web.Request, handler: Any) -> web.StreamResponse:
        if self.key is not None and request.headers.get("Authorization") != f"Bearer {self.key}":
            given = request.headers.get("Authorization")
            return _error(401, f"Incorrect API key provided: {given}" if given else "no key")
        return await handler(request)

    async def _models(self, request: web.Request) -> web.StreamResponse:
        return web.json_response({"object": "list", "data": [{"id": self.model, "object": "model"}]})

    async def _order(self, request: web.Request) -> web.StreamResponse:
        self.orders.append((await request.json()).get("method", request.path))
        return web.Response()

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        goes_on = body.get("continue_final_message", False)
        if goes_on and "continue" not in self.can:
            return _error(400, "Unrecognized request argument supplied: continue_final_message")
        if "tools" not in self.can and any(message["role"] == "tool" for message in body["messages"]):
            return _error(400, "messages with role 'tool' must be a response to a preceding message with 'tool_calls'")
        prompt = "".join(f"<{message['role']}>{message['content']}<end>" for message in body["messages"])
        prompt = prompt.removesuffix("<end>") if goes_on else prompt + "<assistant>"
        return await self._answer(request, body, prompt, chat=True)

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        return await self._answer(request, body, body["prompt"], chat=False)

    async def _answer(self, request: web.Request, body: Any, prompt: Any, *, chat: bool) -> web.StreamResponse:
        self.asked.append(body)
        number = next(self._numbers)
        fault = self.faults(number)
        if fault == "drop":
            request.transport.abort()  # type: ignore[union-attr]
            return web.Response()
        if fault == "hang":
            await asyncio.sleep(3600)
        if fault in ("429", "500"):
            return _error(int(fault), "come back later", retry_after="0.05" if fault == "429" else None)
        if fault == "teapot":
            return _error(418, "never again")
        if fault == "json":
            return web.Response(text='{"id": "x", "choi', content_type="application/json")
        if fault == "empty":
            return web.json_response({"id": "x", "model": self.model, "choices": []})
        tokens = len(prompt) if isinstance(prompt, list) else len(re.findall(r"\w+|[^\w\s]", prompt))
        if tokens > self.context_tokens:
            return _error(400, f"This model's maximum context length is {self.context_tokens} tokens")
        frame = {
            "id": "cmpl-same" if fault == "ids" else f"cmpl-{number}",
            "object": "chat.completion.chunk" if chat else "text_completion",
            "model": "another-model" if fault == "name" else self.model,
        }
        pieces, finish = self._pieces(body, prompt)
        usage = {"prompt_tokens": tokens, "completion_tokens": len(pieces)}
        if not body.get("stream"):
            said = body["messages"][-1]["content"] if self.echoes and body.get("continue_final_message") else ""
            choice = {"index": 0, **_joined([{"text": said}] * bool(said) + pieces, chat=chat), "finish_reason": finish}
            return web.json_response({**frame, "choices": [choice], "usage": usage})
        return await self._stream(request, frame, pieces, finish, usage, chat=chat, half=fault == "half")

    def _pieces(self, body: Any, prompt: Any) -> tuple[list[dict[str, Any]], str]:
        """One per token: its text and, where ids are asked for, its id and log-probability."""
        most = body["max_tokens"]
        if isinstance(prompt, list) and "ids" in self.can:
            seed = body["seed"] if body["temperature"] > 0.01 else -1
            ids = ids_of(prompt, seed=seed, most=most, vocabulary=self.vocabulary)
            worth = 1e4 if "processed" in self.can else 1.0
            return [
                {"text": f"{one} ", "token_ids": [one], "logprobs": {"token_logprobs": [-math.log1p(one) / worth]}}
                for one in ids
            ], "length"
        text = self.thought + self.speak(str(prompt))
        ends = [at for stop in body.get("stop") or () if (at := text.find(stop)) >= 0]
        text = text[: min(ends, default=len(text))]
        size = self.piece_chars
        pieces = [{"text": text[at : at + size]} for at in range(0, len(text), size)]
        return (pieces[:most], "length") if len(pieces) > most else (pieces, "stop")

    async def _stream(
        self,
        request: web.Request,
        frame: dict[str, Any],
        pieces: list[dict[str, Any]],
        finish: str,
        usage: dict[str, int],
        *,
        chat: bool,
        half: bool,
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        try:
            for number, piece in enumerate(pieces):
                if half and number >= len(pieces) // 2:
                    request.transport.abort()  # type: ignore[union-attr]
                    return response
                said = {"delta": {"content": piece["text"]}} if chat else piece
                await _send(response, {**frame, "choices": [{"index": 0, **said, "finish_reason": None}]})
                await asyncio.sleep(self.tick_s)
            last = {"delta": {}} if chat else {"text": ""}
            await _send(response, {**frame, "choices": [{"index": 0, **last, "finish_reason": finish}]})
            await _send(response, {**frame, "choices": [], "usage": usage})
            await response.write(b"data: [DONE]\n\n")
        except (ConnectionResetError, asyncio.CancelledError):
            self.abandoned += 1
        return response


def _joined(pieces: list[dict[str, Any]], *, chat: bool) -> dict[str, Any]:
    text = "".join(piece["text"] for piece in pieces)
    if chat:
        return {"message": {"role": "assistant", "content": text}}
    if pieces and "token_ids" in pieces[0]:
        logprobs = [piece["logprobs"]["token_logprobs"][0] for piece in pieces]
        ids = [piece["token_ids"][0] for piece in pieces]
        return {"text": text, "token_ids": ids, "logprobs": {"token_logprobs": logprobs}}
    return {"text": text}


async def _send(response: web.StreamResponse, event: dict[str, Any]) -> None:
    await response.write(b"data: " + json.dumps(event).encode() + b"\n\n")


def _error(status: int, message: str, retry_after: str | None = None) -> web.Response:
    headers = {} if retry_after is None else {"Retry-After": retry_after}
    return web.json_response({"error": {"message": message}}, status=status, headers=headers)


def problems(count: int) -> Iterator[str]:
    """Lines of a problem file that `teacher` can solve."""
    for number in range(count):
        asked, answer = question(number)
        yield json.dumps({"id": f"p{number}", "problem": asked, "answer": answer}) + "\n"


def main() -> None:
    """Serve `teacher` until stdin closes; the first argument is how many characters an event has."""
    with OpenAIServer(piece_chars=int(sys.argv[1])) as server:
        print(server.url, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
