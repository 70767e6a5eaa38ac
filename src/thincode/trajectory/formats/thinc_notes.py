"""ThinC with notes: between an output and the next block the model may stop and write a short ```note. Ours.

    ```output
    (-3, 0)
    ```
    ```note
    A negative length: the sign of the square root was wrong.
    ```
    ```python

It answers the objection that code only leaves no place to notice that a result is odd, to change the strategy or to say what
a number means. A note is text that is never run, even where it holds a fence of code; up to 3 in a trajectory, each of up to
200 characters, one between an output and the next block. The scanner bounds nothing: `adheres` counts. A note that is not
closed reaches to the end of the turn.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ...settings import settings
from .. import Segment, SegmentKind
from . import Sheet
from ._fenced import FENCE, Fenced

NOTES = 3
"""In a trajectory, at most."""
NOTE_CHARS = 200
"""Characters of one note, at most."""

INSTRUCTION = (
    "Begin with a short plan: name the strategy, without deriving or calculating anything. Then think in code only: write "
    "```python blocks, each fence alone on its line. A block runs as soon as it is closed, and what it prints follows in an "
    "```output block; later blocks still know the names of earlier ones. Write nothing between an output and the next block, "
    f"except where an output surprises you or the plan must change: then one ```note of at most {NOTE_CHARS} characters, which is "
    f"not run; {NOTES} notes at most. Take the answer from the last output and give it as \\boxed{{answer}}."
)

SHEET = Sheet(system="ThinC with notes", unknown="it is ours: all but the notes is as in `thinc`")

_NOTE = re.compile(r"\s*```note[ \t]*\r?\n(.*?)\r?\n?```\s*", re.DOTALL)


@settings
class Settings:
    """What a recipe may set."""

    instruction: str = INSTRUCTION
    """Follows the question in the prompt; empty for the bare question."""


@dataclass(frozen=True)
class _Notes(Fenced):
    @property
    def markers(self) -> tuple[str, ...]:
        return (*super().markers, f"{FENCE}note\n")

    def teacher_turns(self, plan: str, thoughts: Sequence[str], blocks: Sequence[str], answer: str | None) -> list[str]:
        """One note, before the last block that has a thought: what the block before it showed, in the words of its thought."""
        turns = super().teacher_turns(plan, thoughts, blocks, answer)
        last = len(thoughts) - 1
        if 0 < last < len(blocks) and (said := thoughts[last - 1].strip().replace(FENCE, "")[:NOTE_CHARS]):
            turns[last] = f"{FENCE}note\n{said}\n{FENCE}\n{turns[last]}"
        return turns

    def adheres(self, segments: Sequence[Segment]) -> bool:
        """ThinC's shape, where the only words between two blocks are notes within their bounds."""
        kinds = [
            segment.kind for segment in segments if segment.text.strip() and segment.kind is not SegmentKind.NOTICE
        ]
        said = [segment.text for segment in segments if segment.kind is SegmentKind.THOUGHT and segment.text.strip()]
        notes = [found[1] for text in said if (found := _NOTE.fullmatch(text)) and FENCE not in found[1]]
        return (
            kinds[:2] == [SegmentKind.PLAN, SegmentKind.CODE]
            and kinds[-1] is SegmentKind.ANSWER
            and len(notes) == len(said) <= NOTES
            and all(len(note) <= NOTE_CHARS for note in notes)
        )


def build(settings: Settings) -> Fenced:
    """The format."""
    return _Notes(name="thinc_notes", instruction=settings.instruction, quiet=("note",))
