r"""CoRT (Li et al. 2025, arXiv 2506.09820; github.com/ChengpengLi1003/CoRT): ```python blocks inside the thought of a reasoner.

The base models are R1-Distill, so the text begins inside `<think>` (their chat template has opened it), outputs follow in
```output fences within the thought, and the answer is the last `\boxed{…}` behind `</think>`; one inside the thought counts for
nothing, also where the thought never ends. The authors stop at a backtick with a line break behind it and then look for
"```python" in the new text; of their 15 rounds the last has no stop, so 14 programs run. In "jupyter" mode programs so far run
again without their print lines; failed ones are dropped, and so are those in which a print is left, an indented one for example.
In the output of the last run a `[SYSTEM]` remark says that no more will run; here that is a notice, when another is asked for.

Not repeated here: of a program that fails the authors show the traceback alone, and not what it printed before; they take a
program for failed where its output has "error" in it; and their fences may be indented, with the program in them, which counts
when their transcripts are read, but not while a model speaks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...settings import settings
from .. import Segment, SegmentKind
from . import Call, Insertion, Sheet
from ._boxed import last_boxed_of
from ._fenced import Fenced, prose
from ._text import THINK_END, TIME_IS_UP, behind

INSTRUCTION = (
    "Reason step by step, and let Python do the calculations: write ```python blocks while thinking, each fence alone on its "
    "line, and read what they print in the ```output block behind. After thinking, give the answer as \\boxed{answer}."
)

SHEET = Sheet(
    system="CoRT",
    paper="arXiv 2506.09820",
    repository="github.com/ChengpengLi1003/CoRT",
    preset="cort",
    calls=14,
    context_tokens=32_768,
    unknown="the words of its hints, and of the prompt around the question",
)

_TOLD = re.compile(r"^```output[ \t\r]*$", re.MULTILINE)


@settings
class Settings:
    """What a recipe may set."""

    instruction: str = INSTRUCTION
    """Follows the question in the prompt; empty for the bare question."""


@dataclass(frozen=True)
class _Cort(Fenced):
    thought_end: str = THINK_END

    def close_thought(self) -> Insertion:
        return Insertion("\n", TIME_IS_UP, f"\n{THINK_END}\n\n")

    def segments(self, turn: str, *, call: Call | None, first: bool, last: bool) -> list[Segment]:
        found = super().segments(turn, call=call, first=first, last=last)
        if not last or not found or found[-1].kind is not SegmentKind.ANSWER:
            return found
        text = found.pop().text
        end = text.rfind(THINK_END) + len(THINK_END) if THINK_END in text else 0
        return found + prose(SegmentKind.THOUGHT, text[:end]) + prose(SegmentKind.ANSWER, text[end:])

    def read_published(self, text: str) -> list[Segment]:
        """See `Reads`; by the authors' rule for fences where ours leaves an output unread."""
        found = self.parse(text)
        if sum(segment.kind is SegmentKind.OUTPUT for segment in found) >= len(_TOLD.findall(text)):
            return found
        return replace(self, indented=True).parse(text)

    def answer(self, segments: Sequence[Segment]) -> str | None:
        return last_boxed_of(behind(segments, THINK_END) or ())

    def closing(self, leads: Sequence[str], answer: str) -> str:
        return "\n".join([*leads, f"{THINK_END}\n\n\\boxed{{{answer}}}"])


def build(settings: Settings) -> Fenced:
    """The format."""
    return _Cort(name="cort", instruction=settings.instruction, thoughts=True)
