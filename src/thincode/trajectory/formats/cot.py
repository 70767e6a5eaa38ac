r"""Chain of thought: text only, the answer in `\boxed{…}`. Code that stands in it is never run.

For any model: where one thinks inside `<think>` tags, what ends with the closing tag is the thought and the rest the answer,
and a box in either counts. The formats of single families of models are stricter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...settings import settings
from . import Sheet
from ._text import Text, Thinking

INSTRUCTION = "Reason step by step, without code. Give the answer as \\boxed{answer}."

SHEET = Sheet(system="Plain CoT", calls=0)


@settings
class Settings:
    """What a recipe may set."""

    instruction: str = INSTRUCTION
    """Follows the question in the prompt; empty for the bare question."""


@dataclass(frozen=True)
class _Cot(Thinking):
    def closing(self, leads: Sequence[str], answer: str) -> str:
        return Text.closing(self, leads, answer)


def build(settings: Settings) -> Thinking:
    """The format."""
    return _Cot(name="cot", instruction=settings.instruction, strict=False)
