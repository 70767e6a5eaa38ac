r"""SimpleTIR (Xue et al. 2025, arXiv 2509.02479; github.com/ltzheng/SimpleTIR): RL from a base model, multi-turn, masks void turns.

    ```python
    print(6 * 7)
    ```
    Code execution result: 42

    So it is \boxed{42}.

A fence may be tagged `python`, `py` or not at all, and a turn ends at its first block. What was printed stands behind "Code
execution result: ", without a fence. A box in the text or one that the code printed is the answer, and a printed one ends the
trajectory; `final_answer(x)`, which the preset defines, prints one. A turn with neither block nor box is void: the trajectory
ends, and the authors leave it out of the update (here: `rl.masks`, metric `void`).

An output ends at a blank line, which the authors have behind a printed text by its own line break; blank lines inside are
written with a space. They have none behind an error's line, so in their transcripts text up to the next blank line or fence
counts as part of it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ...settings import settings
from .. import Segment, SegmentKind
from . import Insertion, Sheet
from ._boxed import last_boxed
from ._fenced import Fenced
from ._printed import harmless

INSTRUCTION = (
    'Solve the problem step by step, with ```python programs where they help. What a program prints follows behind "Code execution '
    'result: ". Give the answer as \\boxed{answer}, or let a program print it by final_answer(answer).'
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
_END = "\n\n"
_ENDS = re.compile(r"\n(?:\n|(?=```))")
_INNER_BLANK = re.compile(r"\n(?=\n)")


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

    def concluded(self, segments: Sequence[Segment]) -> bool:
        return segments[-1].kind is SegmentKind.OUTPUT and last_boxed(segments[-1].content) is not None

    def answer(self, segments: Sequence[Segment]) -> str | None:
        if segments and self.concluded(segments):
            return last_boxed(segments[-1].content)
        return super().answer(segments)


def build(settings: Settings) -> Fenced:
    """The format."""
    tags = ("python", "py", "")
    return _SimpleTir(name="simpletir", instruction=settings.instruction, tags=tags, thoughts=True)
