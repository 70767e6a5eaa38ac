r"""DAPO's text (Yu et al. 2025, arXiv 2503.14476): reasoning without code; the last line says `Answer: …`.

The form in which DAPO-Math-17k asks its questions, and that many recipes inherit with the data. As its grader has it, the answer
is the rest of the line behind the last "Answer:" within the last 300 characters, wherever that stands and however it is
capitalized ("So the answer : 42"), without dollar signs around it; a box inside it is opened. A box elsewhere counts for nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ...settings import settings
from .. import Segment, SegmentKind
from . import Sheet
from ._boxed import last_boxed
from ._text import Text

INSTRUCTION = 'Solve the problem step by step. The last line of the response is "Answer: " and the answer, with nothing around it.'
TAIL_CHARS = 300

SHEET = Sheet(
    system="DAPO",
    paper="arXiv 2503.14476",
    repository="github.com/BytedTsinghua-SIA/DAPO",
    calls=0,
    context_tokens=22_528,
)

_LINE = re.compile(r"Answer\s*:\s*([^\n]+)", re.IGNORECASE)


@settings
class Settings:
    """What a recipe may set."""

    instruction: str = INSTRUCTION
    """Follows the question in the prompt; empty for the bare question."""


@dataclass(frozen=True)
class _Dapo(Text):
    def answer(self, segments: Sequence[Segment]) -> str | None:
        said = "".join(segment.text for segment in segments if segment.kind is SegmentKind.ANSWER)
        lines = _LINE.findall(said[-TAIL_CHARS:])
        answer = lines[-1].strip("$ \t\r") if lines else ""
        return last_boxed(answer) or answer or None

    def closing(self, leads: Sequence[str], answer: str) -> str:
        return "\n".join([*leads, f"Answer: {answer}"])


def build(settings: Settings) -> Text:
    """The format."""
    return _Dapo(name="dapo", instruction=settings.instruction)
