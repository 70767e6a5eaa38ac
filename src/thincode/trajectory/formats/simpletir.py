r"""SimpleTIR (Xue et al. 2025, arXiv 2509.02479; github.com/ltzheng/SimpleTIR): RL from a base model, multi-turn, masks void turns.

    ```python
    print(6 * 7)
    ```
    Code execution result: 42

    So it is \boxed{42}.

A fence may be tagged `python`, `py` or not at all, and a turn ends at its first block. What was printed stands behind "Code
execution result: ", without a fence. A box in the text or one that the code printed is the answer. A printed one ends the
trajectory (`final_answer(x)`, which the preset defines, prints one), and so does `\boxed{` anywhere in a turn, its program
included: the block still runs, but the model is not asked again. A turn with neither block nor box is void: the trajectory ends,
and the authors leave it out of the update (here: `rl.masks`, metric `void`).

An output ends at a blank line, which the authors have behind a printed text by its own line break; blank lines inside are
written with a space. They have none behind an error's line, so in their transcripts text up to the next blank line or fence
counts as part of it.

While a model speaks, fences stand alone on their lines. The authors take any, and strip the text before it, so that in their
transcripts an opener stands at the end of a line of prose; those are read by their rule.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from ...settings import settings
from .. import Segment, SegmentKind
from . import Insertion, Sheet
from ._boxed import last_boxed
from ._fenced import FENCE, Fenced, prose
from ._printed import harmless

INSTRUCTION = (
    "Solve the problem step by step, with ```python programs where they help. A program knows no names of earlier "
    'ones, and what it prints follows behind "Code execution result: ". Give the answer as \\boxed{answer}, or let a '
    "program print it by final_answer(answer)."
)

SHEET = Sheet(
    system="SimpleTIR",
    paper="arXiv 2509.02479",
    repository="github.com/ltzheng/SimpleTIR",
    preset="simpletir",
    calls=10,
    turn_tokens=8_000,
    context_tokens=16_000,
)

_HEAD = {SegmentKind.OUTPUT: "Code execution result: ", SegmentKind.NOTICE: "Notice: "}
_BOX = "\\boxed{"
_END = "\n\n"
_ENDS = re.compile(r"\n(?:\n|(?=```))")
_INNER_BLANK = re.compile(r"\n(?=\n)")

# As the authors' transcripts have them.
_TOLD = re.compile(rf"^{_HEAD[SegmentKind.OUTPUT]}", re.MULTILINE)
_OPENER = re.compile(rf"{FENCE}(?:python|py)?\n")
_CLOSER = f"\n{FENCE}"
_FAILED = re.compile(
    rf"{_HEAD[SegmentKind.OUTPUT]}((?:\w+\.)*\w*(?:Error|Exception|Interrupt|Exit)(?::[^\n]*)?)\n(?!\n)"
)
"""An error's line, which no blank line follows."""


@settings
class Settings:
    """What a recipe may set."""

    instruction: str = INSTRUCTION
    """Follows the question in the prompt; empty for the bare question."""


@dataclass(frozen=True)
class _SimpleTir(Fenced):
    def _insertion(self, kind: SegmentKind, words: str) -> Insertion:
        return Insertion(_HEAD[kind], _INNER_BLANK.sub("\n ", harmless(words)), _END)

    def output(self, printed: str) -> Insertion:
        return self._insertion(SegmentKind.OUTPUT, printed)

    def notice(self, words: str) -> Insertion:
        return self._insertion(SegmentKind.NOTICE, words)

    def piece(self, kind: SegmentKind, content: str) -> str:
        head = _HEAD.get(kind)
        return super().piece(kind, content) if head is None else f"{head}{content}{_END}"

    def insertion(self, segment: Segment) -> Insertion:
        start = len(_HEAD[segment.kind])
        end = start + len(segment.content)
        return Insertion(segment.text[:start], segment.text[start:end], segment.text[end:])

    def inserted(self, text: str, at: int) -> Segment | None:
        for kind, head in _HEAD.items():
            if text.startswith(head, at):
                end = _ENDS.search(text, at + len(head))
                stop, behind = (len(text), len(text)) if end is None else end.span()
                return Segment(kind, text[at:behind], text[at + len(head) : stop])
        return None

    def read_published(self, text: str) -> list[Segment]:
        """See `Reads`; by the authors' rule where ours leaves an output unread."""
        found = self.parse(text)
        if sum(segment.kind is SegmentKind.OUTPUT for segment in found) >= len(_TOLD.findall(text)):
            return found
        made: list[Segment] = []
        at = start = 0
        while (opener := _OPENER.search(text, start)) is not None:
            close = text.find(_CLOSER, opener.end())
            if close < 0:
                break
            start = close + len(_CLOSER)
            start += text.startswith("\n", start)
            code = text[opener.end() : close]
            if not code.strip():
                continue
            made += prose(SegmentKind.THOUGHT if made else SegmentKind.PLAN, text[at : opener.start()])
            made.append(Segment(SegmentKind.CODE, text[opener.start() : start], code))
            if (told := self._told(text, start)) is not None:
                made.append(told)
                start += len(told.text)
            at = start
        return made + self.segments(text[at:], call=None, first=not made, last=True)

    def _told(self, text: str, at: int) -> Segment | None:
        failed = _FAILED.match(text, at)
        return self.inserted(text, at) if failed is None else Segment(SegmentKind.OUTPUT, failed[0], failed[1])

    def concluded(self, segments: Sequence[Segment]) -> bool:
        if segments[-1].kind is not SegmentKind.OUTPUT:
            return False
        turn = itertools.takewhile(lambda segment: segment.kind not in _HEAD, reversed(segments[:-1]))
        return last_boxed(segments[-1].content) is not None or any(_BOX in segment.text for segment in turn)

    def answer(self, segments: Sequence[Segment]) -> str | None:
        """The box that was printed last of all; else the model's last one in words."""
        printed = segments[-1].content if segments and segments[-1].kind is SegmentKind.OUTPUT else ""
        return last_boxed(printed) or super().answer(segments)


def build(settings: Settings) -> Fenced:
    """The format."""
    tags = ("python", "py", "")
    return _SimpleTir(name="simpletir", instruction=settings.instruction, tags=tags, thoughts=True)
