r"""Qwen3 in its thinking mode (Qwen team 2025, arXiv 2505.09388): `<think>` text `</think>` text with `\boxed{…}`.

Its thinking budget: when a thought has used `thinking_tokens`, a sentence of the driver and `</think>` are put in, and the
model answers behind them. The sentence is ours; `time_is_up` takes another, for example the one of the report. The hybrid
models write `<think>` themselves; the chat template of the 2507 thinking models has written it, and then `writes_opening` is
false. With the same template, `cot` reads the non-thinking mode. The 10,000 tokens are those of CIR's comparison; the models
take up to 32,768 and more.
"""

from __future__ import annotations

from ...settings import settings
from . import Sheet
from ._text import BOX, THINK, TIME_IS_UP, Thinking

SHEET = Sheet(
    system="Qwen3, thinking",
    paper="arXiv 2505.09388",
    repository="github.com/QwenLM/Qwen3",
    calls=0,
    context_tokens=32_768,
    thinking_tokens=10_000,
)


@settings
class Settings:
    """What a recipe may set."""

    instruction: str = BOX
    """Follows the question in the prompt; empty for the bare question."""
    writes_opening: bool = True
    """Whether the model writes `<think>`; false where its chat template does."""
    time_is_up: str = TIME_IS_UP
    """Stands at the end of a thought whose tokens are spent."""


def build(settings: Settings) -> Thinking:
    """The format."""
    return Thinking(
        name="qwen3_thinking",
        instruction=settings.instruction,
        thought_opening=f"{THINK}\n" if settings.writes_opening else "",
        time_is_up=settings.time_is_up,
    )
