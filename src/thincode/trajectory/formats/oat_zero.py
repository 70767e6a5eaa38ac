r"""OAT-ZERO (Liu et al. 2025, arXiv 2503.20783): text alone, in the words of one of two templates.

`qwen_math`: reasoning, then `\boxed{…}`. `r1`: a thought in `<think>`, then `<answer>…</answer>`, whose content is the answer,
or the box in it. The authors compare both, and none at all, on base models; the published 7B model was trained with the first.
Which roles stand around the question is the chat template's affair.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ...settings import settings
from .. import Segment, SegmentKind
from . import Sheet
from ._boxed import tagged_answer
from ._text import BOX, THINK, Text, Thinking

TAGS = "First reason between <think> and </think>, then give the answer between <answer> and </answer>."

SHEET = Sheet(
    system="OAT-ZERO",
    paper="arXiv 2503.20783",
    repository="github.com/sail-sg/understand-r1-zero",
    calls=0,
    context_tokens=4_096,
)


@settings
class Settings:
    """What a recipe may set."""

    instruction: str | None = None
    """Follows the question in the prompt; null for the template's, empty for the bare question."""
    template: Literal["qwen_math", "r1"] = "qwen_math"


@dataclass(frozen=True)
class _Tagged(Thinking):
    def answer(self, segments: Sequence[Segment]) -> str | None:
        return tagged_answer([segment.text for segment in segments if segment.kind is SegmentKind.ANSWER])

    def closing(self, leads: Sequence[str], answer: str) -> str:
        head, _, _ = super().closing(leads, answer).rpartition("\\boxed{")
        return f"{head}<answer>{answer}</answer>"


def build(settings: Settings) -> Text:
    """The format."""
    own = BOX if settings.template == "qwen_math" else TAGS
    instruction = own if settings.instruction is None else settings.instruction
    if settings.template == "r1":
        return _Tagged(name="oat_zero", instruction=instruction, thought_opening=f"{THINK}\n")
    return Text(name="oat_zero", instruction=instruction)
