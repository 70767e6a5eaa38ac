"""Turns of a tool, in the words of a chat template, read off the template once and never by rendering a turn again.

What stands between two turns of the assistant is what the template writes between them in a conversation of ours: from there it
goes into the ids as text of ours, and what was said before stays as it is, thoughts included. So a conversation's ids only ever
grow, also where the template would write its past another way.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import ModelError
from .formats import Converses, Format, ToolTurn
from .tokenizer import Tokenizer

_SAID = ("Say one.", "Say two.")
_HEARD = ('tool\nsaid "one"', 'tool\nsaid "two"')
"""With a line break and quotes: a template that writes an output as JSON shows it."""
_NEXT = "use a format with its outputs in the assistant's own turn (thinc, tir), or mend chat_template.jinja"


def spoken(format: Format, tokenizer: Tokenizer | None) -> Format:
    """The format in the words of a model's chat template; without a tokenizer, and where outputs are no turns, as it is.

    Raises:
        ModelError: the template's words for a tool's turn can't be told; says why, and what to do.
    """
    if tokenizer is None or not isinstance(format, Converses):
        return format
    return format.spoken_in(tool_turn(tokenizer))


@functools.lru_cache(maxsize=16)
def tool_turn(tokenizer: Tokenizer) -> ToolTurn:
    """What a tokenizer's chat template writes between two turns of the assistant around an output.

    Raises:
        ModelError: it refuses turns of a tool, drops or changes what they say, writes them one way here and another way there, or
            ends the assistant's turn with what ends no generation.
    """
    once, twice = (_between(tokenizer, rounds) for rounds in (1, 2))
    if once != twice:
        raise ModelError(
            f"chat template: it writes {once!r} around the first output and {twice!r} around the second, so what stands there "
            f"can't grow by appending; {_NEXT}"
        )
    between, after = once
    end = next((text for text in map(_text(tokenizer), tokenizer.eos_ids) if between.startswith(text)), None)
    if end is None:
        raise ModelError(
            f"chat template: it ends the assistant's turn with {between[:20]!r}, but a generation ends with one of "
            f"{[*map(_text(tokenizer), tokenizer.eos_ids)]}; add that token's id to eos_token_id in generation_config.json, or "
            f"{_NEXT}"
        )
    return ToolTurn(end=end, before=between[len(end) :], after=after)


def _between(tokenizer: Tokenizer, rounds: int) -> tuple[str, str]:
    """What stands between the last words of the assistant and the tool's, and behind those."""
    messages = [{"role": "user", "content": "Count."}]
    for said, heard in list(zip(_SAID, _HEARD, strict=True))[:rounds]:
        messages += [{"role": "assistant", "content": said}, {"role": "tool", "content": heard}]
    try:
        text = tokenizer.render_chat(messages)
    except ModelError as error:
        raise ModelError(f"turns of a tool: {error}; {_NEXT}") from None
    said, heard = _SAID[rounds - 1], _HEARD[rounds - 1]
    spoke, listened = text.rfind(said), text.rfind(heard)
    if not 0 <= spoke < listened:
        what = "the assistant's turns" if spoke < 0 else "what a tool says"
        raise ModelError(f"chat template: it drops or changes {what} in a conversation with a tool; {_NEXT}")
    return text[spoke + len(said) : listened], text[listened + len(heard) :]


def _text(tokenizer: Tokenizer) -> Any:
    return lambda token: tokenizer.decode([token])


def render(messages: Sequence[Mapping[str, str]], *, format: Format | Converses, tokenizer: Tokenizer) -> str:
    """A conversation up to where the model begins, its tools told in the template's words or, where it has none, in ours.

    Raises:
        ModelError: there is no chat template, or it refuses these messages.
    """
    if not isinstance(format, Converses):
        return tokenizer.render_chat(messages)
    if writes_tools(tokenizer):
        return tokenizer.render_chat(messages, options={"tools": [*format.tools]})
    return tokenizer.render_chat(told(messages, format.tools_in_words))


def told(messages: Sequence[Mapping[str, str]], words: str) -> list[dict[str, str]]:
    """The messages with `words` behind the first one of the user's: not every template knows a system's."""
    found = [dict(message) for message in messages]
    first = next((message for message in found if message["role"] == "user"), None)
    if first is not None and words:
        first["content"] += f"\n\n{words}"
    return found


@functools.lru_cache(maxsize=16)
def writes_tools(tokenizer: Tokenizer) -> bool:
    """Whether the chat template says what tools there are."""
    messages = [{"role": "user", "content": "Count."}]
    tool = {"name": "count", "description": "Counts.", "parameters": {"type": "object", "properties": {}}}
    try:
        return "Counts." in tokenizer.render_chat(messages, options={"tools": [{"type": "function", "function": tool}]})
    except ModelError:
        return False
