r"""The tag family: code and outputs between tags, everything in one turn of the assistant.

    Count the pairs with a loop.
    <python>
    print(6 * 7)
    </python> <result>
    42
    </result><answer>\boxed{42}</answer>

An opener counts at the start of a line or right behind a closing tag, with nothing but blanks between; so a tag named in prose
is prose. A closer counts at the start of a line, in a comment, or behind code in which no string is open; so one inside a string
of the program stays program. The block is complete with its closer: what the model writes behind it is never sampled. One with
only white space in it is prose, and an opener right after an opener starts the block anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from .. import Segment, SegmentKind
from . import Call, Insertion
from ._boxed import tagged_answer
from ._fenced import prose
from ._printed import harmless

NOTICE = "notice"
_PROSE = (SegmentKind.PLAN, SegmentKind.THOUGHT, SegmentKind.ANSWER)
_FENCE_OPENER = re.compile(r"\A\s*```(?:python|py)?[ \t]*\n")
_FENCE_CLOSER = re.compile(r"(?:\A|\n)[ \t]*```\s*\Z")
_LONGEST_TAG = 24
_QUOTE = re.compile(r"""\\.|'''|\"{3}|['"#]""", re.DOTALL)
"""What opens or closes a string, or opens a comment; a sign behind a backslash does neither."""
_NO_CODE = {fence + closer for fence in ("", "```", "```py", "```python") for closer in ("", "```")}
"""Without their blanks, fences with nothing inside."""


@dataclass(frozen=True)
class Block:
    """A call in the text."""

    open: int
    """First character of its opener."""
    end: int
    """One past its closer, or past the text where it is not closed."""
    tag: str
    code: str
    """What stands between its tags."""


class Tags:
    """Reads text as it comes and finds blocks. The one place that knows when a block is complete; linear."""

    def __init__(self, format: Tagged, at: int = 0) -> None:
        self._called = format.called
        self._code_tag = format.code_tag
        self._signs = format.signs
        self._empty = _NO_CODE if format.fenced else {""}
        self._window = ""
        self._at = at
        """Characters before the window."""
        self._clear = True
        """Outside of a block: nothing but blanks since the line's start or a closing tag. Inside: since the line's start."""
        self._line: list[str] = []
        """Inside of a block: code behind the last sign, not yet looked through for quotes."""
        self._quote = ""
        """Inside of a block: what the string that is open there opened with; `#` in a comment."""
        self._open: tuple[int, str] | None = None
        self._code: list[str] = []
        self._said = ""
        """The first characters of the code that are no blanks."""

    def take(self, text: str) -> Block | None:
        """The next piece; the first block that is complete with it, and nothing behind that block is read."""
        window, at = self._window + text, 0
        for sign in self._signs.finditer(window):
            self._pass(window[at : sign.start()])
            start, self._at, at = self._at, self._at + len(sign[0]), sign.end()
            if (block := self._sign(sign[0], sign["name"] or "", start)) is not None:
                return block
        held = window.rfind("<", max(at, len(window) - _LONGEST_TAG))  # what may begin a tag waits for its rest
        self._window = window[held:] if held >= 0 else ""
        self._pass(window[at : len(window) - len(self._window)])
        return None

    def open_block(self) -> Block | None:
        """The block that is still open after the last piece."""
        if self._open is None:
            return None
        opened, tag = self._open
        return Block(opened, self._at + len(self._window), tag, "".join([*self._code, self._window]))

    def _pass(self, text: str) -> None:
        """Text without a sign in it."""
        self._at += len(text)
        self._clear = self._clear and not text.strip()
        if self._open is not None:
            self._keep(text)
            self._line.append(text)

    def _sign(self, sign: str, name: str, start: int) -> Block | None:
        """A line break or a tag, which started at character `start`."""
        closes = sign.startswith("</")
        if self._open is None:
            if self._clear and name in self._called and not closes:
                self._begin(name, start)
            else:
                self._clear = sign == "\n" or closes
            return None
        opened, tag = self._open
        blank = self._said in self._empty
        self._quote, self._line = _open_quote("".join(self._line), self._quote), []  # whole here, however it came in
        in_string = tag == self._code_tag and self._quote not in ("", "#")
        if name == tag and closes and (self._clear or not in_string):
            self._open, self._clear = None, True
            return None if blank else Block(opened, self._at, tag, "".join(self._code))
        if name == tag and not closes and blank:
            self._begin(name, start)
            return None
        self._keep(sign)
        self._clear = sign == "\n"
        if self._clear and len(self._quote) == 1:
            self._quote = ""  # a string in triple quotes alone reaches over the end of a line
        return None

    def _keep(self, code: str) -> None:
        self._code.append(code)
        if len(self._said) < _LONGEST_TAG:
            self._said = (self._said + "".join(code.split()))[:_LONGEST_TAG]

    def _begin(self, name: str, start: int) -> None:
        self._open, self._code, self._said, self._clear = (start, name), [], "", True
        self._line, self._quote = [], ""


def _open_quote(code: str, quote: str) -> str:
    """What is open behind `code`, where `quote` was open before it; see `Tags._quote`."""
    for match in _QUOTE.finditer(code):
        sign = match[0]
        if quote == "#":
            break
        if not quote:
            quote = "" if sign[0] == "\\" else sign
        elif sign == quote or sign == 3 * quote:  # three where one is open: it closes, and an empty string follows
            quote = ""
    return quote


class Scanner:
    """Watches one turn."""

    def __init__(self, format: Tagged) -> None:
        self._format = format
        self._tags = Tags(format)
        self._call: Call | None = None

    def feed(self, text: str) -> Call | None:
        """See `formats.Scanner`; after a call was found it stays the same one."""
        if self._call is None and (block := self._tags.take(text)) is not None:
            self._call = Call(self._format.source(block), block.end, refused=self._format.refusals.get(block.tag, ""))
        return self._call

    def finish(self) -> Call | None:
        """See `formats.Scanner`; a closer needs nothing behind it."""
        return self._call


@dataclass(frozen=True)
class Tagged:
    """A wire format of the family; what differs between two of them is data."""

    name: str
    instruction: str
    """Follows the question in the prompt; empty for the bare question."""
    code_tag: str
    output_tag: str
    before_output: str
    """Between a block's closer and the opener of its output."""
    after_output: str
    """Behind an output's closer."""
    fenced: bool = False
    """Whether code is written in a fence of its own inside the tags."""
    refusals: Mapping[str, str] = field(default_factory=dict)
    """Tags of tools that are not here, and what is answered to a call of each."""
    thought_tag: str = ""
    """Around a teacher's thoughts."""
    closing: str = "\\boxed{{{}}}"
    """The last line of a teacher's trajectory, around its answer."""

    @property
    def called(self) -> tuple[str, ...]:
        """Tags that call something."""
        return (self.code_tag, *self.refusals)

    @property
    def signs(self) -> re.Pattern[str]:
        """Line breaks and every tag that means something."""
        names = {*self.called, self.output_tag, NOTICE, "think", "answer"}
        return re.compile(f"\n|</?(?P<name>{'|'.join(sorted(names))})>")

    @property
    def markers(self) -> tuple[str, ...]:
        code = (f"<{self.code_tag}>\n```python\n", f"```\n</{self.code_tag}>")
        plain = (f"<{self.code_tag}>\n", f"</{self.code_tag}>")
        output = self.output("")
        return (*(code if self.fenced else plain), output.before, output.after, "\\boxed{")

    def user_message(self, question: str) -> str:
        return f"{question}\n\n{self.instruction}" if self.instruction else question

    def scanner(self) -> Scanner:
        return Scanner(self)

    def source(self, block: Block) -> str:
        """What is run, or asked for, by a block."""
        code = block.code
        if block.tag == self.code_tag and self.fenced:
            code = _FENCE_CLOSER.sub("", _FENCE_OPENER.sub("", code))
        return code.replace("\r\n", "\n").strip("\n") if block.tag == self.code_tag else code.strip()

    def output(self, printed: str) -> Insertion:
        return self._insertion(self.output_tag, printed)

    def notice(self, words: str) -> Insertion:
        return self._insertion(NOTICE, words)

    def _insertion(self, tag: str, words: str) -> Insertion:
        body = self.signs.sub(lambda sign: sign[0].replace("<", "< "), harmless(words))
        return Insertion(f"{self.before_output}<{tag}>\n", body, f"\n</{tag}>{self.after_output}")

    def piece(self, kind: SegmentKind, content: str) -> str:
        if kind is SegmentKind.CODE:
            code = f"```python\n{content}\n```" if self.fenced else content
            return f"<{self.code_tag}>\n{code}\n</{self.code_tag}>"
        tag = {SegmentKind.OUTPUT: self.output_tag, SegmentKind.NOTICE: NOTICE}.get(kind)
        return content if tag is None else f"{self.before_output}<{tag}>\n{content}\n</{tag}>{self.after_output}"

    def segments(self, turn: str, *, call: Call | None, first: bool, last: bool) -> list[Segment]:
        text = turn if call is None else turn[: call.end]
        found: list[Segment] = []
        at = 0
        for block in self._blocks(text, 0):
            found += prose(SegmentKind.PLAN if first and not found else SegmentKind.THOUGHT, text[at : block.open])
            found.append(Segment(SegmentKind.CODE, text[block.open : block.end], self.source(block)))
            at = block.end
        if last:
            return found + prose(SegmentKind.ANSWER, text[at:])
        return found + prose(SegmentKind.PLAN if first and not found else SegmentKind.THOUGHT, text[at:])

    def insertion(self, segment: Segment) -> Insertion:
        start = segment.text.find(">") + 1
        start += segment.text.startswith("\n", start)
        end = start + len(segment.content) if segment.text.startswith(segment.content, start) else len(segment.text)
        return Insertion(segment.text[:start], segment.text[start:end], segment.text[end:])

    def answer(self, segments: Sequence[Segment]) -> str | None:
        return tagged_answer([segment.text for segment in segments if segment.kind in _PROSE])

    def parse(self, text: str) -> list[Segment]:
        """A whole trajectory's text; an output or notice is one only right behind a block, where the driver puts it."""
        found: list[Segment] = []
        at = 0
        while (block := next(self._blocks(text, at), None)) is not None:
            found += self.segments(text[at : block.end], call=None, first=not found, last=False)
            at = block.end
            answered = SegmentKind.NOTICE if block.tag in self.refusals else SegmentKind.OUTPUT
            for kind, tag in ((answered, self.output_tag), (SegmentKind.NOTICE, NOTICE)):
                if (segment := self._inserted(text, at, kind, tag)) is not None:
                    found.append(segment)
                    at += len(segment.text)
                    break
        return found + self.segments(text[at:], call=None, first=not found, last=True)

    def _inserted(self, text: str, at: int, kind: SegmentKind, tag: str) -> Segment | None:
        """The insertion that starts at character `at`; without a closer it reaches to the end."""
        opener = re.compile(rf"[ \t\r\n]*<{tag}>(?:[ \t\r]*\n)?").match(text, at)
        if opener is None:
            return None
        closer = re.compile(rf"\n?</{tag}>(?:{re.escape(self.after_output)})?").search(text, opener.end())
        end, stop = (len(text), len(text)) if closer is None else closer.span()
        return Segment(kind, text[at:stop], text[opener.end() : end])

    def _blocks(self, text: str, at: int) -> Iterator[Block]:
        """Every block from character `at` on, the last one maybe not closed."""
        while at < len(text):
            tags = Tags(self, at)
            block = tags.take(text[at:]) or tags.open_block()
            if block is None:
                return
            yield block
            at = block.end

    def teacher_turns(self, plan: str, thoughts: Sequence[str], blocks: Sequence[str], answer: str | None) -> list[str]:
        leads = [self._thought(lead) for lead in (thoughts or [plan])]
        turns = []
        for number, code in enumerate(blocks):
            lead = leads[number] if number < len(leads) else ""
            turns.append(lead + self.piece(SegmentKind.CODE, code.strip("\n")))
        if answer is not None:
            turns.append("".join([*leads[len(blocks) :], self.closing.format(answer)]))
        return turns

    def _thought(self, words: str) -> str:
        if not words.strip():
            return ""
        return (
            f"<{self.thought_tag}>{words.strip()}</{self.thought_tag}>\n" if self.thought_tag else f"{words.strip()}\n"
        )
