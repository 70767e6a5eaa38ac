r"""The fenced family: everything in one turn of the assistant, code and outputs in fences.

    Count the pairs with a loop.
    ```python
    print(6 * 7)
    ```
    ```output
    42
    ```
    \boxed{42}

Opener and closer stand alone on their lines: from the line's first character, with nothing behind them but blanks (a
carriage return too). So an indented fence inside a string of the program stays program, a fence named in prose is prose,
and "```python3" opens nothing. A bare fence at the start of a line closes the block even inside a string: the rule needs no
Python parser and reads the same while text streams in. A block with only white space in it is prose, and an opener right
after an opener starts the block anew. Where a bare fence opens a block too, one with another word behind it opens a text
block, so that its closer opens nothing.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .. import Segment, SegmentKind
from . import Call, Insertion
from . import Scanner as AnyScanner
from ._boxed import last_boxed_of
from ._printed import harmless

FENCE = "```"
_TEXT_OPENER = re.compile("```[^`]+")


@dataclass(frozen=True)
class Block:
    open: int
    """First character of the opener's line."""
    end: int
    """One past the last character of the closer's line, or of the text if the block is not closed."""
    code: str


class Lines:
    """Reads line after line and finds blocks. The one place that knows when a block is complete."""

    def __init__(self, tags: Sequence[str], at: int = 0, *, quiet: Sequence[str] = (), indented: bool = False) -> None:
        self._indented = indented
        self._openers = {FENCE + tag for tag in tags}
        self._quiet = {FENCE + tag for tag in quiet}
        self._in_quiet = False
        self._tells_apart = "" in tags
        self._in_text = False
        """Inside a text block; known only where its closer looks like an opener."""
        self._at = at
        self._open: int | None = None
        self._code: list[str] = []
        self._blank = True

    def take(self, line: str) -> Block | None:
        """One line, its break included; the block that it closes."""
        start, self._at = self._at, self._at + len(line)
        mark = line.strip(" \t\r\n") if self._indented else line.rstrip(" \t\r\n")
        if self._tells_apart and self._open is None and self._passes(mark):
            return None
        if self._open is None and (self._in_quiet or mark in self._quiet):
            self._in_quiet = not self._in_quiet or mark != FENCE
            return None
        if mark in self._openers and self._blank and not (mark == FENCE and self._open is not None):
            self._open, self._code = start, []
        elif self._open is not None and mark == FENCE:
            block = Block(self._open, self._at, self._source())
            was_blank, self._open, self._blank = self._blank, None, True
            return None if was_blank else block
        elif self._open is not None:
            self._code.append(line)
            self._blank = self._blank and not line.strip()
        return None

    def _passes(self, mark: str) -> bool:
        """Whether a line belongs to a text block, as its opener or its closer at least."""
        closes = self._in_text and mark == FENCE
        opens = _TEXT_OPENER.fullmatch(mark) is not None
        self._in_text = not closes and mark not in self._openers and (self._in_text or opens)
        return closes or self._in_text

    def open_block(self) -> Block | None:
        """The block that is still open after the last line."""
        return None if self._open is None else Block(self._open, self._at, self._source())

    def _source(self) -> str:
        code = "".join(self._code).replace("\r\n", "\n").removesuffix("\n")
        return textwrap.dedent(code) if self._indented else code


class LineScanner:
    """Watches one turn by whole lines; linear in its text."""

    def __init__(self) -> None:
        self._tail: list[str] = []  # pieces of a line that has not ended
        self._call: Call | None = None

    def feed(self, text: str) -> Call | None:
        """See `formats.Scanner`; after a call was found it stays the same one."""
        *lines, rest = text.split("\n")
        for line in lines:
            self._take("".join([*self._tail, line, "\n"]))
            self._tail = []
        if rest:
            self._tail.append(rest)
        return self._call

    def finish(self) -> Call | None:
        """See `formats.Scanner`."""
        if self._tail:
            self._take("".join(self._tail))
            self._tail = []
        return self._call

    def _take(self, line: str) -> None:
        """Note the call that `line` completes; only the turn's last line lacks its line break."""
        raise NotImplementedError


class Scanner(LineScanner):
    """Ends at the first closed block."""

    def __init__(self, tags: Sequence[str], *, quiet: Sequence[str] = ()) -> None:
        super().__init__()
        self._lines = Lines(tags, quiet=quiet)

    def _take(self, line: str) -> None:
        if self._call is None and (block := self._lines.take(line)) is not None:
            self._call = Call(code=block.code, end=block.end, missing="\n" * (not line.endswith("\n")))


@dataclass(frozen=True)
class Fenced:
    """A wire format of the family; what differs between two of them is data."""

    name: str
    instruction: str
    """Follows the question in the prompt; empty for the bare question."""
    tags: tuple[str, ...] = ("python",)
    """Tags that open a block; the first one is written. None: a format without code."""
    thoughts: bool = False
    """Whether a teacher writes a thought before every block, instead of one plan before the first."""
    output_tag: str = "output"
    notice_tag: str = "notice"
    quiet: tuple[str, ...] = ()
    """Tags of fences in which nothing opens a block: what stands there is never run."""
    indented: bool = False
    """Whether fences may stand indented in a whole text; never in what a model is saying."""
    language: str = "python"
    """What blocks are written in, as interpreter backends name it."""

    @property
    def markers(self) -> tuple[str, ...]:
        code = (f"{FENCE}{self.tags[0]}\n", f"{FENCE}{self.output_tag}\n", f"{FENCE}\n") if self.tags else ()
        return (*code, "\\boxed{")

    def user_message(self, question: str) -> str:
        return f"{question}\n\n{self.instruction}" if self.instruction else question

    def scanner(self) -> AnyScanner:
        return Scanner(self.tags, quiet=self.quiet)

    def output(self, printed: str) -> Insertion:
        return Insertion(f"{FENCE}{self.output_tag}\n", harmless(printed), f"\n{FENCE}\n")

    def notice(self, words: str) -> Insertion:
        return Insertion(f"{FENCE}{self.notice_tag}\n", harmless(words), f"\n{FENCE}\n")

    def piece(self, kind: SegmentKind, content: str) -> str:
        tags = {SegmentKind.OUTPUT: self.output_tag, SegmentKind.NOTICE: self.notice_tag}
        if self.tags:
            tags[SegmentKind.CODE] = self.tags[0]
        tag = tags.get(kind)
        return content if tag is None else f"{FENCE}{tag}\n{content}\n{FENCE}\n"

    def segments(self, turn: str, *, call: Call | None, first: bool, last: bool) -> list[Segment]:
        text = turn if call is None else turn[: call.end] + call.missing
        found: list[Segment] = []
        at = 0
        while (block := self._next_block(text, at)) is not None:
            found += prose(SegmentKind.PLAN if first and not found else SegmentKind.THOUGHT, text[at : block.open])
            found.append(Segment(SegmentKind.CODE, text[block.open : block.end], block.code))
            at = block.end
        if last:
            return found + prose(SegmentKind.ANSWER, text[at:])
        return found + prose(SegmentKind.PLAN if first and not found else SegmentKind.THOUGHT, text[at:])

    def insertion(self, segment: Segment) -> Insertion:
        first_line, line_break, rest = segment.text.partition("\n")
        start = len(first_line + line_break)
        end = start + len(segment.content) if rest.startswith(segment.content) else len(segment.text)
        return Insertion(segment.text[:start], segment.text[start:end], segment.text[end:])

    def answer(self, segments: Sequence[Segment]) -> str | None:
        prose = (SegmentKind.PLAN, SegmentKind.THOUGHT, SegmentKind.ANSWER)
        return last_boxed_of(segment.text for segment in segments if segment.kind in prose)

    def parse(self, text: str) -> list[Segment]:
        """A whole trajectory's text; an output or notice is one only right behind a block, where the driver puts it."""
        found: list[Segment] = []
        at = 0
        while (block := self._next_block(text, at)) is not None:
            found += self.segments(text[at : block.end], call=None, first=not found, last=False)
            at = block.end
            if (inserted := self.inserted(text, at)) is not None:
                found.append(inserted)
                at += len(inserted.text)
        return found + self.segments(text[at:], call=None, first=not found, last=True)

    def inserted(self, text: str, at: int) -> Segment | None:
        """The output or the notice that stands at character `at`, right behind a block."""
        kinds = ((SegmentKind.OUTPUT, self.output_tag), (SegmentKind.NOTICE, self.notice_tag))
        found = (_inserted(text, at, kind, tag) for kind, tag in kinds)
        return next((segment for segment in found if segment is not None), None)

    def teacher_turns(self, plan: str, thoughts: Sequence[str], blocks: Sequence[str], answer: str | None) -> list[str]:
        leads = list(thoughts) if self.thoughts and thoughts else [plan]
        turns = []
        for number, code in enumerate(blocks):
            lead = leads[number].strip() if number < len(leads) else ""
            code = code.strip("\n")
            turns.append(f"{lead}\n" * bool(lead) + f"{FENCE}{self.tags[0]}\n{code}\n{FENCE}\n")
        if answer is not None:
            turns.append(self.closing([lead.strip() for lead in leads[len(blocks) :] if lead.strip()], answer))
        return turns

    def closing(self, leads: Sequence[str], answer: str) -> str:
        """A teacher's last turn: what it thinks behind the last block, and the answer."""
        return "\n".join([*leads, f"\\boxed{{{answer}}}"])

    def _next_block(self, text: str, at: int) -> Block | None:
        lines = Lines(self.tags, at, quiet=self.quiet, indented=self.indented)
        for line in lines_of(text, at):
            if (block := lines.take(line)) is not None:
                return block
        return lines.open_block()


def lines_of(text: str, at: int) -> Iterator[str]:
    """Lines from character `at` on, split at line feeds only."""
    while at < len(text):
        end = text.find("\n", at) + 1 or len(text)
        yield text[at:end]
        at = end


def prose(kind: SegmentKind, text: str) -> list[Segment]:
    """Text as a segment; none where there is no text."""
    return [Segment(kind, text, text.strip())] if text else []


def _inserted(text: str, at: int, kind: SegmentKind, tag: str) -> Segment | None:
    """The insertion that starts at character `at`; without a closer it reaches to the end."""
    lines = lines_of(text, at)
    opener = next(lines, "")
    if opener.rstrip(" \t\r\n") != FENCE + tag or (at > 0 and text[at - 1] != "\n"):
        return None
    body: list[str] = []
    for line in lines:
        if line.rstrip(" \t\r\n") == FENCE:
            inside = "".join(body)
            return Segment(kind, opener + inside + line, inside.removesuffix("\n"))
        body.append(line)
    inside = "".join(body)
    return Segment(kind, opener + inside, inside.removesuffix("\n"))
