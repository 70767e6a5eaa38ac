"""An engine that says what a script tells it: programmatic teachers, replays, tests.

It ships because it is useful by itself: the drills' teacher speaks through it, and so does a replay of gold answers. It
speaks text; given a tokenizer, it speaks ids with log-probability 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from ..settings import settings
from ..trajectory import Address
from . import Context, Engine, Finish, Sampling, Sink, Voice

if TYPE_CHECKING:
    from ..trajectory.tokenizer import Tokenizer

Script = Callable[[Context], str]
"""What the model says next, given what stands so far. It may say more than one turn: the sink stops it."""


@settings
class Settings:
    """Settings of the scripted engine."""

    script: Literal["teacher", "gold"] = "teacher"
    """Which script a recipe's loop gives it: the problem source's worked solutions, or a block that prints the gold answer."""


class _ScriptedVoice:
    usage: Mapping[str, int] = MappingProxyType({})

    def __init__(self, script: Script, tokenizer: Tokenizer | None) -> None:
        self._script = script
        self._tokenizer = tokenizer

    async def generate(self, context: Context, *, sink: Sink, sampling: Sampling, max_tokens: int, seed: int) -> Finish:
        text = self._script(context)
        if self._tokenizer is None:
            return Finish.STOPPED if any(sink.text(line) for line in text.splitlines(keepends=True)) else Finish.ENDED
        ids = self._tokenizer.encode(text, special=False, added=True)
        for token_id in ids[:max_tokens]:
            if sink.token(token_id, 0.0):
                return Finish.STOPPED
        if len(ids) >= max_tokens:
            return Finish.LENGTH
        for end in self._tokenizer.eos_ids[:1]:
            sink.token(end, 0.0)
        return Finish.ENDED

    async def close(self) -> None:
        pass


class ScriptedEngine:
    """See the module."""

    name = "scripted"
    most_at_once = None

    def __init__(self, script: Script, tokenizer: Tokenizer | None = None) -> None:
        """Speak text, or ids where a tokenizer is given."""
        self._script = script
        self._tokenizer = tokenizer
        self.speaks_ids = tokenizer is not None

    async def prepare(self) -> Mapping[str, str]:
        """Nothing to find out."""
        return {}

    async def voice(self, address: Address) -> Voice:
        """A voice; it has no memory of its own."""
        return _ScriptedVoice(self._script, self._tokenizer)

    def drive(self, until: Future[Any]) -> None:
        """Nothing to do in the calling thread but wait."""
        until.exception()

    async def close(self) -> None:
        """Nothing to free."""


def open(settings: Settings, *, script: Script, tokenizer: Tokenizer | None = None) -> Engine:
    """The engine a recipe names, with the script its loop chose."""
    return ScriptedEngine(script, tokenizer)
