"""The engine `openai`: which way a server can go, how it is asked, and how its answer is read."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..trajectory.turns import render, told
from . import Context, Sampling, Sink, conversation
from ._http import Client, Fault, Refused
from ._remote import Hearing, RemoteEngine, Request, Server
from ._thoughts import OPEN, Thoughts

if TYPE_CHECKING:
    from ..trajectory.tokenizer import Tokenizer

COMPLETIONS, CHAT = "completions", "chat/completions"
_GOES_ON = {"continue_final_message": True, "add_generation_prompt": False}
"""What vLLM and SGLang ask for; llama.cpp goes on by itself."""


class TextEngine(RemoteEngine):
    """See `thincode.engines.openai`."""

    def __init__(
        self,
        server: Server,
        client: Client,
        *,
        way: str,
        tokenizer: Tokenizer | None,
        counted: bool,
        thought_open: bool,
    ) -> None:
        """`tokenizer` renders the conversation for the way `completions`; the rest as in the settings."""
        super().__init__(server, client)
        self.way = way
        self._tokenizer = tokenizer
        self._counted = counted
        self._thought_open = thought_open
        self._tool_role = ""
        """Who says an output, as far as this server takes it: a tool or the user; empty: not known yet."""
        self._asking = asyncio.Lock()

    async def prepare(self) -> Mapping[str, str]:
        """See `Engine.prepare`."""
        facts = await super().prepare()
        if self.way == "auto":
            self.way = await self._find_way()
        return {**facts, "way": self.way}

    async def ready(self, context: Context) -> None:
        """See `RemoteEngine.ready`: whether the server takes messages of a tool."""
        if context.tools is None or self.way == "completions":
            return
        async with self._asking:
            if not self._tool_role:
                said = [("user", "Say yes."), ("assistant", "yes"), ("tool", "yes")]
                messages = [{"role": role, "content": content} for role, content in said]
                self._tool_role = "tool" if await self._ask({"messages": messages}, path=CHAT) else "user"

    def request(self, context: Context, *, sampling: Sampling, max_tokens: int, seed: int) -> Request:
        """See `RemoteEngine.request`."""
        stop = {"stop": [context.stop] if context.stop else None}
        if self.way == "completions":
            prompt = self._rendered(context)
            body = self.body({"prompt": prompt, **stop}, sampling=sampling, max_tokens=max_tokens, seed=seed)
            begins = context.tools is not None or not context.text
            opened = self._thought_open or (begins and prompt.rstrip().endswith(OPEN))
            return Request(COMPLETIONS, body, chars=len(prompt), thought_open=opened)
        messages = _turns(context) if self.way == "turns" else _messages(context)
        goes_on = _GOES_ON if self.way == "continue" and messages[-1]["role"] == "assistant" else {}
        if context.tools is not None:
            messages = told([self._taken(message) for message in messages], context.tools.tools_in_words)
        body = self.body({"messages": messages, **goes_on, **stop}, sampling=sampling, max_tokens=max_tokens, seed=seed)
        chars = sum(len(message["content"]) for message in messages)
        # A message that is continued has its thought behind it.
        continued = context.text if goes_on else ""
        return Request(CHAT, body, chars=chars, continued=continued, thought_open=self._thought_open and not goes_on)

    def _taken(self, message: Mapping[str, str]) -> Mapping[str, str]:
        """A message as the server takes it: what a tool says is the user's where it knows no tools."""
        if message["role"] != "tool" or self._tool_role == "tool":
            return message
        return {"role": "user", "content": f"<tool_response>\n{message['content']}\n</tool_response>"}

    def hearing(self, sink: Sink, request: Request) -> Hearing:
        """See `RemoteEngine.hearing`."""
        thoughts = Thoughts(opened=request.thought_open)
        return _TextHearing(sink, thoughts, counted=self._counted, continued=request.continued)

    def _rendered(self, context: Context) -> str:
        assert self._tokenizer is not None, "open() asks for a template"
        messages = _messages(context)
        if context.tools is not None:
            return render(messages, format=context.tools, tokenizer=self._tokenizer)
        return self._tokenizer.render_chat(messages, continue_final=bool(context.text))

    # --- which way ---

    async def _find_way(self) -> str:
        if self._tokenizer is not None and await self._ask({"prompt": "1 + 1 ="}, path=COMPLETIONS):
            return "completions"
        return "continue" if await self._continues() else "turns"

    async def _ask(self, fields: Mapping[str, Any], *, path: str) -> Mapping[str, Any]:
        """The answer to a question of ours about the server; empty where it refuses the question."""

        async def attempt() -> Mapping[str, Any]:
            try:
                return await self.ask(path, fields)
            except Refused as refused:
                if refused.status in (400, 404, 405, 422, 501):
                    return {}
                raise

        return await self.client.insist(attempt, starting=True)

    async def _continues(self) -> bool:
        """Whether a final message of the assistant is continued, judged by the tokens that its prompt has.

        A server that closes the message and opens a new one needs tokens for that, whatever the message says.
        """
        plain, once, thrice = [await self._prompt_tokens(words) for words in ("", "yes", "yes yes yes")]
        return bool(plain and once and thrice) and once - plain <= (thrice - once) / 2

    async def _prompt_tokens(self, said: str) -> int:
        """Of a prompt whose last message says `said`; 0 where the server refuses it, or does not tell."""
        messages = [{"role": "user", "content": "Say yes."}]
        if said:
            messages.append({"role": "assistant", "content": said})
        answer = await self._ask({"messages": messages, **(_GOES_ON if said else {})}, path=CHAT)
        return int((answer.get("usage") or {}).get("prompt_tokens") or 0)


class _TextHearing(Hearing):
    def __init__(self, sink: Sink, thoughts: Thoughts, *, counted: bool, continued: str) -> None:
        self._sink = sink
        self._thoughts = thoughts
        self._counted = counted
        self._continued = continued

    def hear(self, choice: Mapping[str, Any]) -> bool:
        """See `Hearing.hear`; chat and plain completions, whole and streamed, have their text in four places."""
        said = choice.get("delta") or choice.get("message") or choice
        if not isinstance(said, dict):
            raise Fault(f"the answer's choice is {str(said)[:80]!r}")
        hidden = said.get("reasoning_content") or said.get("reasoning") or ""
        piece = said.get("content") or said.get("text") or ""
        if not isinstance(piece, str) or not isinstance(hidden, str):
            raise Fault(f"the answer's text is {str(piece)[:80]!r}")
        if "message" in choice:
            piece = piece.removeprefix(self._continued)
        self.tokens += bool(piece or hidden)
        thought, spoken = self._thoughts.feed(piece)
        return self._push(hidden + thought, spoken)

    def finish(self) -> bool:
        return self._push(*self._thoughts.finish())

    def _push(self, thought: str, spoken: str) -> bool:
        stop = bool(thought) and self._sink.hidden(thought, counted=self._counted)
        return stop or (bool(spoken) and self._sink.text(spoken))


def _messages(context: Context) -> list[dict[str, str]]:
    return conversation(context.shots, context.exchange)


def _turns(context: Context) -> list[dict[str, str]]:
    """The conversation with each output as a message of the user's, where it is no turn of a tool."""
    if context.tools is not None:
        return _messages(context)
    messages: list[dict[str, str]] = []
    for exchange in (*context.shots, context.exchange):
        messages.append({"role": "user", "content": exchange.user})
        for number, text in enumerate(exchange.said):
            messages.append({"role": ("assistant", "user")[number % 2], "content": text})
    return messages
