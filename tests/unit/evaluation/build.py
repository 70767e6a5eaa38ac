"""Graded trajectories written in one line: `row("p", "plan | 1+1 -> 2 | 1/0 !> ZeroDivisionError | answer 2", answer="2")`."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from thincode.grading import Grade, Graded, GradeReason
from thincode.problems import Problem
from thincode.trajectory import Address, Author, Block, BlockStatus, EndReason, Segment, SegmentKind, Tokens, Trajectory

_ARROWS = {
    " -> ": BlockStatus.OK,
    " !> ": BlockStatus.ERROR,
    " #> ": BlockStatus.LIMIT,
    " ?> ": BlockStatus.LOST,
}
_AUTHORS = {SegmentKind.OUTPUT: Author.INTERPRETER, SegmentKind.NOTICE: Author.DRIVER}


def trajectory(
    problem: str,
    script: str,
    *,
    sample: int = 0,
    answer: str | None = None,
    end: EndReason = EndReason.FINISHED,
    question: str = "?",
    tokens: bool = False,
) -> Trajectory:
    """Pieces between ` | `; one with an arrow is a block and its output; with `tokens`, one token a character."""
    segments: list[Segment] = []
    pieces = script.split(" | ")
    blocks = [i for i, piece in enumerate(pieces) if any(arrow in piece for arrow in _ARROWS)]
    for index, piece in enumerate(pieces):
        arrow = next((arrow for arrow in _ARROWS if arrow in piece), None)
        if arrow is not None:
            code, output = piece.split(arrow)
            code, output = code.replace(";;", "\n"), output.replace(";;", "\n")
            block = Block(_ARROWS[arrow], detail=output.splitlines()[-1].partition(":")[0] if arrow == " !> " else "")
            segments.append(Segment(SegmentKind.CODE, f"`{code}`", code, block=block))
            segments.append(Segment(SegmentKind.OUTPUT, f"<{output}>", output))
        elif piece:
            first = not blocks or index < blocks[0]
            kind = SegmentKind.PLAN if first else SegmentKind.THOUGHT if index < blocks[-1] else SegmentKind.ANSWER
            segments.append(Segment(kind, piece, piece.strip()))
    ids = None
    if tokens:
        authors, placed = [Author.PROMPT] * 3, []
        for segment in segments:
            start = len(authors)
            authors += [_AUTHORS.get(segment.kind, Author.MODEL)] * len(segment.text)
            placed.append(Segment(segment.kind, segment.text, segment.content, start, len(authors), segment.block))
        segments = placed
        length = len(authors)
        ids = Tokens(np.zeros(length, np.int32), np.array(authors, np.uint8), np.full(length, np.nan, np.float32))
    address = Address(0, "evaluate", 0, problem, sample)
    return Trajectory(address, question, "thinc", "", tuple(segments), end, answer, ids)


def row(
    problem: str,
    script: str = "",
    *,
    correct: bool = False,
    gold: str = "1",
    sample: int = 0,
    answer: str | None = None,
    tags: Mapping[str, str] | None = None,
    end: EndReason = EndReason.FINISHED,
    question: str = "?",
    tokens: bool = False,
) -> Graded:
    """One graded trajectory; `correct` is taken as given, so that a table can say what it counts."""
    reason = GradeReason.EQUAL_VALUE if correct else GradeReason.DIFFERENT if answer else GradeReason.NO_ANSWER
    said = trajectory(problem, script, sample=sample, answer=answer, end=end, question=question, tokens=tokens)
    return Graded(Problem(problem, question, gold, dict(tags or {})), said, Grade(correct, reason))
