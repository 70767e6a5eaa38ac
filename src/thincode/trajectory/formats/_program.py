r"""The program-only family: the model writes one program, and its value is the answer; nothing is fed back.

    def solution():
        pairs = [(x, 10 - x) for x in range(1, 10) if x < 10 - x]
        return len(pairs)
    ```output
    4
    ```

The program stands bare, as few-shot prompts of completion models have it, and ends at blank lines or with the turn; a chat
model's ```python block is taken for it too, and what stands before that is a plan. So is a bare paragraph that is no Python, or
comments alone: reading goes on behind it. The interpreter's preset adds the line that prints the value, so the block counts as it
was written. The trajectory is over with the output, of which the last line is the answer; that the output stands in a fence is
our way to record it, for the model never sees it.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from .. import BlockStatus, Segment, SegmentKind
from ..python import may_become_python, tree_of
from . import Call
from ._fenced import FENCE, Block, Fenced, Lines, LineScanner, lines_of, prose
from ._printed import NOTHING


class Reader:
    """Reads line after line and finds the program."""

    def __init__(self, tags: Sequence[str], blank_lines: int) -> None:
        self._tags = tags
        self._blank_lines = blank_lines
        self._fence: Lines | None = None
        self.at = 0
        """Characters read."""
        self._start = 0
        self._code: list[str] = []
        self._blanks = 0
        """Blank lines that end the code so far."""
        self._begun = False
        """Whether the first paragraph of the code is in, and reads like the beginning of a program."""

    def take(self, line: str) -> Block | None:
        """One line, its break included; the program that is complete with it, or right before it."""
        start, self.at = self.at, self.at + len(line)
        mark = line.rstrip(" \t\r\n")
        if self._fence is None and mark in {FENCE + tag for tag in self._tags}:
            self._fence = Lines(self._tags, start)
        if self._fence is not None:
            return self._fence.take(line)
        if mark.startswith(FENCE):
            return self._program(start) if self._code else None
        blank = not line.strip()
        if not self._code:
            if blank:
                return None
            self._start = start
        self._code.append(line)
        self._blanks = self._blanks + 1 if blank else 0
        if self._blanks == self._blank_lines:
            return self._program(self.at)
        if blank and not self._begun:
            self._begun = may_become_python(self._source())
            if not self._begun:
                self._code = []
        return None

    def rest(self) -> Block | None:
        """The program that is there when the text is over: a bare one is complete then, a fenced one is not."""
        if self._fence is not None:
            return self._fence.open_block()
        return self._program(self.at) if self._code else None

    @property
    def bare(self) -> bool:
        """Whether no fence has opened."""
        return self._fence is None

    def _program(self, end: int) -> Block | None:
        """The code so far as a program; if it is none, it is left behind."""
        source = self._source()
        tree = tree_of(source)
        self._code, self._blanks, self._begun = [], 0, False
        return Block(self._start, end, source) if tree is not None and tree.body else None

    def _source(self) -> str:
        return "".join(self._code).replace("\r\n", "\n").rstrip()


class Scanner(LineScanner):
    """Ends at the first program of the one turn there is."""

    def __init__(self, tags: Sequence[str], blank_lines: int) -> None:
        super().__init__()
        self._reader = Reader(tags, blank_lines)

    def finish(self) -> Call | None:
        """See `formats.Scanner`; the end of a turn ends a bare program."""
        lacks_break = bool(self._tail)
        super().finish()
        if self._call is None and self._reader.bare and (block := self._reader.rest()) is not None:
            self._call = Call(block.code, block.end, missing="\n" * lacks_break)
        return self._call

    def _take(self, line: str) -> None:
        if self._call is None and (block := self._reader.take(line)) is not None:
            lacks_break = block.end == self._reader.at and not line.endswith("\n")
            self._call = Call(block.code, block.end, missing="\n" * lacks_break)


@dataclass(frozen=True)
class Program(Fenced):
    """A wire format of the family; what differs between two of them is data."""

    blank_lines: int = 1
    """So many in a row end a bare program."""
    opening: str = ""
    """A teacher's program: its first line, behind which all else is indented; empty: there is none."""
    result: str = ""
    """And what it writes in front of the expression that is its value."""

    @property
    def markers(self) -> tuple[str, ...]:
        return ()

    def scanner(self) -> Scanner:
        return Scanner(self.tags, self.blank_lines)

    def segments(self, turn: str, *, call: Call | None, first: bool, last: bool) -> list[Segment]:
        text = turn if call is None else turn[: call.end] + call.missing
        block = self._program(text, 0)
        if block is None:
            return prose(SegmentKind.ANSWER if last else SegmentKind.PLAN, text)
        code = Segment(SegmentKind.CODE, text[block.open : block.end], block.code)
        rest = prose(SegmentKind.ANSWER if last else SegmentKind.THOUGHT, text[block.end :])
        return [*prose(SegmentKind.PLAN, text[: block.open]), code, *rest]

    def piece(self, kind: SegmentKind, content: str) -> str:
        return content.rstrip("\n") + "\n" if kind is SegmentKind.CODE else super().piece(kind, content)

    def concluded(self, segments: Sequence[Segment]) -> bool:
        return segments[-1].kind is SegmentKind.OUTPUT

    def answer(self, segments: Sequence[Segment]) -> str | None:
        """The last line that the program printed, unless it failed or printed nothing."""
        outputs = [at for at, segment in enumerate(segments) if segment.kind is SegmentKind.OUTPUT]
        if not outputs or segments[outputs[-1]].content == NOTHING:
            return None
        block = segments[outputs[-1] - 1].block
        if block is not None and block.status is not BlockStatus.OK:
            return None
        return segments[outputs[-1]].content.rstrip().rpartition("\n")[2].strip()

    def parse(self, text: str) -> list[Segment]:
        """A whole trajectory's text; what stands behind the program's output, in a transcript of others, is an answer."""
        block = self._program(text, 0)
        inserted = None if block is None else self.inserted(text, block.end)
        if block is None or inserted is None:
            return self.segments(text, call=None, first=True, last=True)
        said = self.segments(text[: block.end], call=None, first=True, last=False)
        return [*said, inserted, *prose(SegmentKind.ANSWER, text[block.end + len(inserted.text) :])]

    def teacher_turns(self, plan: str, thoughts: Sequence[str], blocks: Sequence[str], answer: str | None) -> list[str]:
        if not blocks:
            return []
        source = "\n".join(block.strip("\n") for block in blocks)
        before, value = _value_of(source)
        lines = [*before, f"{self.result}{value}" if value else ""]
        indent = "    " if self.opening else ""
        return ["\n".join([self.opening, *(indent + line for line in lines if line.strip())]).strip("\n")]

    def _program(self, text: str, at: int) -> Block | None:
        reader = Reader(self.tags, self.blank_lines)
        for line in lines_of(text, at):
            if (block := reader.take(line)) is not None:
                return block
        return reader.rest()


def _value_of(source: str) -> tuple[list[str], str]:
    """The lines of a program without its last statement, and the expression that this prints or is."""
    lines = source.split("\n")
    last = ast.parse(source).body[-1]
    if not isinstance(last, ast.Expr):
        return lines, ""
    value = last.value
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "print" and value.args:
        value = value.args[0]
    return lines[: last.lineno - 1], ast.get_source_segment(source, value) or ""
