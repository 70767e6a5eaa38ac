"""Any OpenAI-compatible server, by text: vLLM, SGLang, llama.cpp, hosted services. It can teach and be evaluated, not learn.

A teacher thinks with the interpreter in the loop, inside one turn, as the student will. Which of three ways a server can go
is found out when the run starts, and every record says which one it was:

    completions   the conversation is rendered by the teacher's own chat template (`template`) and continued as plain text
    continue      the chat endpoint continues a final message of the assistant
    turns         it can't: each block ends the assistant's message, and its output comes back as the user's

Where a format's outputs are turns of a tool, each is a message of the role tool, in the way completions as the template writes
it; a server that refuses the role gets it as the user's, between `<tool_response>` tags. What tools there are is told by the
template in the way completions, and else in the question.

Seeds are passed on; whether they repeat anything is the server's matter. An answer under another model's name than the
first is refused, and the ids that servers give their answers are ignored: a record is known by its address.
"""

from __future__ import annotations

from dataclasses import field
from pathlib import Path
from typing import Literal

from ..errors import RecipeError
from ..settings import NonNegativeFloat, settings
from ..trajectory.tokenizer import Tokenizer
from . import Engine
from ._remote import Server

PLACE = "engine openai"


@settings
class Prices:
    """Money for a million tokens, in whatever currency."""

    prompt: NonNegativeFloat = 0.0
    generated: NonNegativeFloat = 0.0


@settings
class Settings(Server):
    """Which way it goes, and what it costs."""

    way: Literal["auto", "completions", "continue", "turns"] = "auto"
    template: Path | None = None
    """Folder of the teacher's model with its tokenizer and chat template; the way `completions` needs it."""
    thoughts: Literal["drop", "count"] = "drop"
    """A hidden thought (`<think>…</think>`, or a field of its own) never enters a record; `count` charges it to the context."""
    thought_open: bool = False
    """The server's template opens `<think>` itself, so that answers begin inside the thought."""
    prices: Prices = field(default_factory=Prices)


def open(settings: Settings) -> Engine:
    """An engine that has asked nothing yet; `prepare` does.

    Raises:
        MissingExtraError: aiohttp is not installed.
        RecipeError: the address or the key can't be used, or a template is missing.
        ModelError: the template's folder can't be read.
    """
    from ._text_engine import TextEngine

    client = settings.client(PLACE)
    if settings.way == "completions" and settings.template is None:
        raise RecipeError(
            f"{PLACE}.template: missing; the way completions renders the conversation itself: name the folder of the "
            "teacher's model (tokenizer.json, chat template), or choose way: auto"
        )
    return TextEngine(
        settings,
        client,
        way=settings.way,
        tokenizer=None if settings.template is None else Tokenizer.load(settings.template),
        counted=settings.thoughts == "count",
        thought_open=settings.thought_open,
    )
