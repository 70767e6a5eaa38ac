"""MathCoder (Wang et al. 2024, arXiv 2310.03731; github.com/mathllm/MathCoder): text, code and execution between its own tokens.

    <|text|>Add them.<|endofblock|><|code|>print(1 + 2)<|endofblock|><|execution|>3<|endofblock|><|text|>It is 3.<|endofblock|>

One message of the assistant. Code runs in a notebook, so names last, the last expression is shown, and a failed cell shows
IPython's traceback with its colors. The authors' models close with a block that holds the answer alone: that block is the
answer, unless it has a box. `<|notice|>`, for words of the driver, is ours. Published line ends are often CRLF; they stay in the
text, and the source that counts as run has plain ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...settings import settings
from .. import Segment, SegmentKind
from . import Call, Insertion, Sheet
from ._boxed import last_boxed
from ._printed import harmless

TEXT, CODE, EXECUTION, NOTICE, END = "<|text|>", "<|code|>", "<|execution|>", "<|notice|>", "<|endofblock|>"

_OPENER = {SegmentKind.CODE: CODE, SegmentKind.OUTPUT: EXECUTION, SegmentKind.NOTICE: NOTICE}
_PROSE = (SegmentKind.PLAN, SegmentKind.THOUGHT, SegmentKind.ANSWER)

INSTRUCTION = (
    "Solve the problem step by step. Write each piece of text as <|text|>…<|endofblock|> and each piece of Python as "
    "<|code|>…<|endofblock|>; what it gives follows as <|execution|>…<|endofblock|>. Close with a text block that holds the "
    "answer alone."
)

SHEET = Sheet(
    system="MathCoder",
    paper="arXiv 2310.03731",
    repository="github.com/mathllm/MathCoder",
    unknown="the notebook's limits",
)


@settings
class Settings:
    """What a recipe may set."""

    instruction: str = INSTRUCTION
    """Follows the question in the prompt; the authors' models need none."""


@dataclass(frozen=True)
class _Block:
    start: int
    end: int
    """One past its closing token, or past the text where it is not closed."""
    code: str


def _next_block(text: str, at: int) -> _Block | None:
    """The first code block that starts at character `at` or behind; one without anything in it is prose."""
    while (start := text.find(CODE, at)) >= 0:
        inside = start + len(CODE)
        close = text.find(END, inside)
        if close < 0:
            return _Block(start, len(text), _source(text[inside:]))
        if text[inside:close].strip():
            return _Block(start, close + len(END), _source(text[inside:close]))
        at = close
    return None


def _source(code: str) -> str:
    return code.replace("\r\n", "\n")


class _Scanner:
    """Watches one turn; linear in its text."""

    def __init__(self) -> None:
        self._window = ""
        """What has come and may still begin a marker."""
        self._at = 0
        """Characters of the turn before the window."""
        self._code: list[str] | None = None
        """Pieces of the open block's code that have left the window; None outside of a block."""
        self._call: Call | None = None

    def feed(self, text: str) -> Call | None:
        """See `formats.Scanner`; after a call was found it stays the same one."""
        self._window += text
        while self._call is None and self._step():
            pass
        return self._call

    def finish(self) -> Call | None:
        """See `formats.Scanner`."""
        return self._call

    def _step(self) -> bool:
        """Pass the next marker; False if none has come yet."""
        marker = CODE if self._code is None else END
        before, found, _ = self._window.partition(marker)
        if not found:
            before = self._window[: max(len(self._window) - len(marker) + 1, 0)]
        self._window = self._window[len(before) + len(found) :]
        self._at += len(before) + len(found)
        if self._code is None:
            self._code = [] if found else None
            return bool(found)
        self._code.append(before)
        if found:
            code, self._code = "".join(self._code), None
            self._call = Call(code=_source(code), end=self._at) if code.strip() else None
        return bool(found)


@dataclass(frozen=True)
class _MathCoder:
    """The format; see the module."""

    name: str
    instruction: str

    @property
    def markers(self) -> tuple[str, ...]:
        return (TEXT, CODE, EXECUTION, NOTICE, END)

    def user_message(self, question: str) -> str:
        return f"{question}\n\n{self.instruction}" if self.instruction else question

    def scanner(self) -> _Scanner:
        return _Scanner()

    def output(self, printed: str) -> Insertion:
        return Insertion(EXECUTION, harmless(printed), END)

    def notice(self, words: str) -> Insertion:
        return Insertion(NOTICE, harmless(words), END)

    def piece(self, kind: SegmentKind, content: str) -> str:
        return f"{_OPENER.get(kind, TEXT)}{content}{END}"

    def segments(self, turn: str, *, call: Call | None, first: bool, last: bool) -> list[Segment]:
        text = turn if call is None else turn[: call.end]
        found: list[Segment] = []
        at = 0

        def prose(end: int) -> list[Segment]:
            return _prose(SegmentKind.PLAN if first and not found else SegmentKind.THOUGHT, text[at:end])

        while (block := _next_block(text, at)) is not None:
            found += prose(block.start)
            found.append(Segment(SegmentKind.CODE, text[block.start : block.end], block.code))
            at = block.end
        return found + (_prose(SegmentKind.ANSWER, text[at:]) if last else prose(len(text)))

    def insertion(self, segment: Segment) -> Insertion:
        opener = _OPENER[segment.kind]
        closer = END if segment.text.endswith(END) else ""
        return Insertion(opener, segment.text[len(opener) : len(segment.text) - len(closer)], closer)

    def answer(self, segments: Sequence[Segment]) -> str | None:
        said = [segment for segment in segments if segment.kind in _PROSE and segment.content]
        if not said or said[-1].kind is not SegmentKind.ANSWER:
            return None
        return last_boxed(said[-1].text) or said[-1].content

    def parse(self, text: str) -> list[Segment]:
        """A whole trajectory's text; an execution or notice is one only right behind a block, where the driver puts it."""
        found: list[Segment] = []
        at = 0
        while (block := _next_block(text, at)) is not None:
            found += self.segments(text[at : block.end], call=None, first=not found, last=False)
            at = block.end
            for kind in (SegmentKind.OUTPUT, SegmentKind.NOTICE):
                opener = _OPENER[kind]
                if text.startswith(opener, at):
                    close = text.find(END, at)
                    end, body = (len(text), len(text)) if close < 0 else (close + len(END), close)
                    found.append(Segment(kind, text[at:end], text[at + len(opener) : body]))
                    at = end
                    break
        return found + self.segments(text[at:], call=None, first=not found, last=True)

    def teacher_turns(self, plan: str, thoughts: Sequence[str], blocks: Sequence[str], answer: str | None) -> list[str]:
        leads = list(thoughts) if thoughts else [plan]
        turns = []
        for number, code in enumerate(blocks):
            lead = leads[number].strip() if number < len(leads) else ""
            turns.append(f"{TEXT}{lead}{END}" * bool(lead) + f"{CODE}{code}{END}")
        if answer is not None:
            closing = [f"{TEXT}{lead.strip()}{END}" for lead in leads[len(blocks) :] if lead.strip()]
            turns.append("".join([*closing, f"{TEXT}{answer}{END}"]))
        return turns


def _prose(kind: SegmentKind, text: str) -> list[Segment]:
    """One segment a text block; what stands outside of blocks belongs to the one behind it."""
    units = text.split(END)
    whole = [unit + END for unit in units[:-1]] + units[-1:]
    return [Segment(kind, unit, unit.removeprefix(TEXT).removesuffix(END).strip()) for unit in whole if unit]


def build(settings: Settings) -> _MathCoder:
    """The format."""
    return _MathCoder(name="mathcoder", instruction=settings.instruction)
