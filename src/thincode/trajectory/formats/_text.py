r"""The text family: no code, one turn; code that stands in the text is never run.

Some models think between tags first. What ends with the closing tag is the thought and the rest the answer; a budget's
`thinking_tokens` closes a thought that has used them, and the model answers behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .. import Segment, SegmentKind
from . import Call, Insertion
from ._boxed import last_boxed_of
from ._fenced import Fenced

THINK, THINK_END = "<think>", "</think>"
TIME_IS_UP = "The tokens for thinking are spent; what follows from the above is the answer."
BOX = "Reason step by step, and put the final answer within \\boxed{}."


@dataclass(frozen=True)
class Text(Fenced):
    """Reasoning and answer in one text."""

    tags: tuple[str, ...] = ()
    thoughts: bool = True

    def teacher_turns(self, plan: str, thoughts: Sequence[str], blocks: Sequence[str], answer: str | None) -> list[str]:
        return super().teacher_turns(plan, thoughts or [plan], (), answer)


@dataclass(frozen=True)
class Thinking(Text):
    """A thought, and the answer behind it."""

    thought_opening: str = ""
    """What the model writes first; empty where it thinks from its first word on, because the chat template has opened the
    thought or because it may do without tags."""
    thought_end: str = THINK_END
    around_end: tuple[str, str] = ("\n", "\n\n")
    """Before and behind `thought_end`, where we write it."""
    strict: bool = True
    """Whether only what stands behind the thought can hold the answer; else a box anywhere does."""
    time_is_up: str = TIME_IS_UP

    def close_thought(self) -> Insertion:
        before, behind = self.around_end
        return Insertion("\n", self.time_is_up, f"{before}{self.thought_end}{behind}")

    def segments(self, turn: str, *, call: Call | None, first: bool, last: bool) -> list[Segment]:
        end = turn.rfind(self.thought_end) + len(self.thought_end) if self.thought_end in turn else 0
        if not end and first and self.strict and turn.lstrip().startswith(self.thought_opening.strip()):
            end = len(turn)  # a thought that never ended
        pieces = ((SegmentKind.THOUGHT, turn[:end]), (SegmentKind.ANSWER if last else SegmentKind.THOUGHT, turn[end:]))
        return [Segment(kind, text, text.strip()) for kind, text in pieces if text]

    def answer(self, segments: Sequence[Segment]) -> str | None:
        texts = behind(segments, self.thought_end) if self.strict else None
        if texts is None:
            kinds = (SegmentKind.ANSWER,) if self.strict else (SegmentKind.THOUGHT, SegmentKind.ANSWER)
            texts = [segment.text for segment in segments if segment.kind in kinds]
        return last_boxed_of(texts)

    def closing(self, leads: Sequence[str], answer: str) -> str:
        before, behind = self.around_end
        thought = self.thought_opening + "\n".join(leads) + f"{before}{self.thought_end}{behind}"
        return f"{thought}\\boxed{{{answer}}}"


def behind(segments: Sequence[Segment], end: str) -> list[str] | None:
    """What the model wrote behind the last `end` of a thought, its own or the driver's; None where no thought has ended."""
    ran = (SegmentKind.CODE, SegmentKind.OUTPUT)
    ends = [at for at, segment in enumerate(segments) if segment.kind not in ran and end in segment.text]
    if not ends:
        return None
    last = segments[ends[-1]]
    rest = [] if last.kind is SegmentKind.NOTICE else [last.text.rpartition(end)[2]]
    not_said = (*ran, SegmentKind.NOTICE)
    return rest + [segment.text for segment in segments[ends[-1] + 1 :] if segment.kind not in not_said]
