r"""Chain of thought: text only, the answer in `\boxed{…}`. Code that stands in it is never run.

Where the model thinks inside `<think>` tags, what ends with the closing tag is the thought and the rest the answer. A budget's
`thinking_tokens` closes a thought that has used them, and the model answers behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...settings import settings
from .. import Segment, SegmentKind
from . import Call, Insertion, Sheet
from ._fenced import Fenced

INSTRUCTION = "Reason step by step, without code. Give the answer as \\boxed{answer}."

_THINK_END = "</think>"
TIME_IS_UP = "The tokens for thinking are spent; what follows from the above is the answer."

SHEET = Sheet(system="Plain CoT", calls=0)


@settings
class Settings:
    """What a recipe may set."""

    instruction: str = INSTRUCTION
    """Follows the question in the prompt; empty for the bare question."""


@dataclass(frozen=True)
class _Cot(Fenced):
    thought_end: str = _THINK_END

    def close_thought(self) -> Insertion:
        return Insertion("\n", TIME_IS_UP, f"\n{_THINK_END}\n\n")

    def segments(self, turn: str, *, call: Call | None, first: bool, last: bool) -> list[Segment]:
        end = turn.rfind(_THINK_END) + len(_THINK_END) if _THINK_END in turn else 0
        pieces = ((SegmentKind.THOUGHT, turn[:end]), (SegmentKind.ANSWER if last else SegmentKind.THOUGHT, turn[end:]))
        return [Segment(kind, text, text.strip()) for kind, text in pieces if text]

    def teacher_turns(self, plan: str, thoughts: Sequence[str], blocks: Sequence[str], answer: str | None) -> list[str]:
        return super().teacher_turns(plan, thoughts or [plan], (), answer)


def build(settings: Settings) -> Fenced:
    """The format."""
    return _Cot(name="cot", instruction=settings.instruction, tags=(), thoughts=True)
