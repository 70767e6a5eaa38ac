r"""The tool-call family: code in JSON, outputs in turns of their own.

    Count the pairs with a loop.
    <tool_call>
    {"name": "code_interpreter", "arguments": {"code": "print(6 * 7)"}}
    </tool_call><|im_end|>
    <|im_start|>user
    <tool_response>
    42
    </tool_response><|im_end|>
    <|im_start|>assistant
    \boxed{42}

A call is heard when the model ends its turn, never before: half a turn runs nothing. Of several calls in one turn the first
is run and the rest stays in the turn, unanswered, as verl does it by default. Where the turns' own words are those of another
chat template, `spoken_in` gives the format those words; above are ChatML's with Hermes' tags, as Qwen's templates write them.
Where the model spells out a turn of the tool in letters, its own turn ends before it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Self

from .. import Block, BlockStatus, Segment, SegmentKind
from . import Call, Insertion, ToolTurn
from ._boxed import last_boxed_of
from ._json_calls import Found, found, written
from ._printed import harmless

HERMES = ToolTurn(
    end="<|im_end|>",
    before="\n<|im_start|>user\n<tool_response>\n",
    after="\n</tool_response><|im_end|>\n<|im_start|>assistant\n",
)
"""How Qwen2.5, Qwen3 and their relatives write an output."""

_DECODED = ToolTurn(end="", before="\nuser\n<tool_response>\n", after="\n</tool_response>\nassistant\n")
"""What is left of that where special tokens were dropped in decoding."""

_NOTICE = ("<notice>\n", "\n</notice>")
_TAG = re.compile(r"<(?=/?(?:tool_call|tool_response|tools|notice)>)")
_SURROGATE = re.compile("[\ud800-\udfff]")
_FENCED = re.compile(r"```(?:python|py)?[ \t]*\n(.*?)```", re.DOTALL)
_NOTHING = re.compile("")
_PROSE = (SegmentKind.PLAN, SegmentKind.THOUGHT, SegmentKind.ANSWER)
_OURS = (SegmentKind.OUTPUT, SegmentKind.NOTICE)


class Malformed(StrEnum):
    """What becomes of a call whose JSON can't be read."""

    SKIPPED = "skipped"
    """It is as if it were not there: without another call the model's turn is its last."""
    ANSWERED = "answered"
    """The model is told what is wrong with it."""


def code_tool(name: str, *, description: str, more: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The schema of a tool that runs code; `more` has further text arguments and what they are."""
    arguments = {"code": "The Python code to run.", **(more or {})}
    properties = {key: {"type": "string", "description": text} for key, text in arguments.items()}
    parameters = {"type": "object", "properties": properties, "required": list(arguments)}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


class Scanner:
    """Watches one turn; linear in its text."""

    def __init__(self, format: ToolCalls) -> None:
        self._format = format
        self._pieces: list[str] = []
        self._length = 0
        self._tail = ""
        """Last signs, which may begin a turn of the tool."""
        self._over = False
        self._call: Call | None = None

    def feed(self, text: str) -> Call | None:
        """See `formats.Scanner`; a turn of the tool that the model spells out itself ends its own."""
        if self._over:
            return self._call
        self._pieces.append(text)
        window = self._tail + text
        at = window.find(self._format.opening)
        if at >= 0:
            self._hear("".join(self._pieces)[: self._length - len(self._tail) + at])
        self._length += len(text)
        self._tail = window[max(0, len(window) - len(self._format.opening) + 1) :]
        return self._call

    def finish(self) -> Call | None:
        """See `formats.Scanner`."""
        if not self._over:
            self._hear("".join(self._pieces))
        return self._call

    def _hear(self, turn: str) -> None:
        self._over = True
        heard = self._format.heard(turn)
        self._call = None if heard is None else heard[1]


@dataclass(frozen=True)
class ToolCalls:
    """A wire format of the family; what differs between two of them is data."""

    name: str
    instruction: str
    """Follows the question in the prompt; empty for the bare question."""
    tools: tuple[Mapping[str, Any], ...]
    """Schemas the model is shown; the first one is called where we write."""
    known: tuple[str, ...] = ()
    """Names of further tools that run code the same way."""
    malformed: Malformed = Malformed.SKIPPED
    strips_fence: bool = False
    """Whether code that is wrapped in a fence once more is unwrapped."""
    failures: tuple[tuple[str, BlockStatus], ...] = ()
    """How outputs of published runs begin that tell of a failure."""
    head: re.Pattern[str] = _NOTHING
    """What stands before the printed text in a turn of the tool; and behind it, `tail`."""
    tail: re.Pattern[str] = _NOTHING
    closing: str = "\\boxed{{{}}}"
    """The last line of a teacher's trajectory, around its answer."""
    turn: ToolTurn = HERMES

    @property
    def called(self) -> str:
        """Name of the tool that runs code."""
        return str(self.tools[0]["function"]["name"])

    @property
    def markers(self) -> tuple[str, ...]:
        before, _, after = written(self.called, {"code": "\0"}).partition("\\u0000")
        return (before, after, "<tool_response>\n", "\n</tool_response>", "\\boxed{")

    @property
    def tools_in_words(self) -> str:
        if not self.instruction:
            return ""
        schemas = "\n".join(json.dumps(tool, ensure_ascii=False) for tool in self.tools)
        return (
            f"You have these tools:\n<tools>\n{schemas}\n</tools>\nTo call one, end your message with its name and arguments:\n"
            '<tool_call>\n{"name": …, "arguments": {…}}\n</tool_call>\nWhat it gives comes back as <tool_response>.'
        )

    def user_message(self, question: str) -> str:
        return f"{question}\n\n{self.instruction}" if self.instruction else question

    def spoken_in(self, turn: ToolTurn) -> Self:
        return replace(self, turn=turn)

    # --- the model's turns ---

    def scanner(self) -> Scanner:
        return Scanner(self)

    def heard(self, turn: str) -> tuple[Found, Call] | None:
        """The call that a whole turn makes; where it stands, and what is to be done."""
        for one in found(turn):
            if not one.closed:
                return None
            if not one.fault:
                code, refused = self._source(one)
                return one, Call(code or one.body, end=len(turn), refused=refused)
            if self.malformed is Malformed.ANSWERED:
                return one, Call(one.body, end=len(turn), refused=f"Failed to decode tool call: {one.fault}")
        return None

    def _source(self, one: Found) -> tuple[str, str]:
        """The source to run, and why it is not run; one of the two is empty."""
        value = one.value if isinstance(one.value, dict) else {}
        name, arguments = value.get("name"), value.get("arguments")
        if name not in (self.called, *self.known):
            return "", f"Error when executing tool: {name!r}"
        if not isinstance(arguments, dict) or not isinstance(arguments.get("code"), str):
            return "", "Error when executing tool: 'code' is no text among its arguments"
        code = _SURROGATE.sub("�", self.program(arguments))
        inside = _FENCED.search(code) if self.strips_fence else None
        code = inside[1].strip() if inside is not None else code
        return (code, "") if code.strip() else ("", "Error when executing tool: there is no code")

    def program(self, arguments: Mapping[str, Any]) -> str:
        """The source that a call's arguments ask to run."""
        return str(arguments["code"])

    def segments(self, turn: str, *, call: Call | None, first: bool, last: bool) -> list[Segment]:
        """See `Format.segments`; what stands behind the call that is run is part of its segment."""
        text = turn if call is None else turn[: call.end]
        heard = None if call is None else self.heard(text)
        made: list[Segment] = []
        at = 0

        def prose(end: int, kind: SegmentKind) -> list[Segment]:
            kind = SegmentKind.PLAN if first and not made and kind is SegmentKind.THOUGHT else kind
            return [Segment(kind, text[at:end], text[at:end].strip())] if end > at else []

        for one in found(text):
            made += prose(one.start, SegmentKind.THOUGHT)
            if heard is not None and one.start == heard[0].start:
                return [*made, Segment(SegmentKind.CODE, text[one.start :], heard[1].code)]
            made.append(Segment(SegmentKind.CODE, text[one.start : one.end], self._source(one)[0] or one.body))
            at = one.end
        return made + prose(len(text), SegmentKind.ANSWER if last else SegmentKind.THOUGHT)

    def answer(self, segments: Sequence[Segment]) -> str | None:
        return last_boxed_of(segment.text for segment in segments if segment.kind in _PROSE)

    # --- turns of the tool ---

    def output(self, printed: str) -> Insertion:
        return self._turn("", printed, "")

    def notice(self, words: str) -> Insertion:
        return self._turn(_NOTICE[0], words, _NOTICE[1])

    def report(self, printed: str, block: Block) -> Insertion:
        return self.output(printed)

    def reported(self, segment: Segment) -> Block | None:
        for begins, status in self.failures:
            if segment.content.startswith(begins):
                return Block(status, detail=begins)
        return None

    def _turn(self, head: str, body: str, tail: str) -> Insertion:
        body = _TAG.sub("< ", harmless(body))
        for words in (self.turn.end, self.turn.before.strip(), self.turn.after.strip()):
            while len(words) > 1 and words in body:  # a template may part turns by words without `<|`
                body = body.replace(words, f"{words[0]} {words[1:]}")
        return Insertion(self.opening + head, body, tail + self.turn.after, ends_turn=True)

    @property
    def opening(self) -> str:
        """What stands between the model's last sign and the tool's first."""
        return self.turn.end + self.turn.before

    def insertion(self, segment: Segment) -> Insertion:
        """See `Format.insertion`; one that was written in the words of another template is put into this one's."""
        text, content = segment.text, segment.content
        head, tail = _NOTICE
        if segment.kind is not SegmentKind.NOTICE or head + content not in text:
            heads = (match for match in self.head.finditer(text) if text.startswith(content, match.end()))
            match = next(heads, None)
            head = match[0] if match else ""
            behind = self.tail.match(text, match.end() + len(content)) if match else None
            tail = behind[0] if behind else ""
        before = self.opening + head
        if text.startswith(before + content):
            return Insertion(before, content, text[len(before) + len(content) :], ends_turn=True)
        return Insertion(before, content, tail + self.turn.after, ends_turn=True)

    def messages(self, segments: Sequence[Segment]) -> list[dict[str, str]]:
        turns: list[dict[str, str]] = []
        for segment in segments:
            if segment.kind in _OURS:
                said = self.insertion(segment).text.removeprefix(self.opening).removesuffix(self.turn.after)
                turns.append({"role": "tool", "content": said})
            elif turns and turns[-1]["role"] == "assistant":
                turns[-1]["content"] += segment.text
            else:
                turns.append({"role": "assistant", "content": segment.text})
        return turns

    # --- whole texts ---

    def piece(self, kind: SegmentKind, content: str) -> str:
        if kind is SegmentKind.CODE:
            return written(self.called, self.arguments(content))
        if kind is SegmentKind.NOTICE:
            content = content.join(_NOTICE)
        return self.opening + content + self.turn.after if kind in _OURS else content

    def arguments(self, code: str) -> dict[str, str]:
        """The arguments of a call that runs `code`."""
        return {"code": code}

    def parse(self, text: str) -> list[Segment]:
        """A whole trajectory's text; a turn of the tool is one only behind a turn with a call, where the driver puts it."""
        made: list[Segment] = []
        at = 0
        while (end := text.find(self.opening, at)) >= 0:
            scanner = self.scanner()
            call = scanner.feed(text[at:end]) or scanner.finish()
            if call is None or call.end < end - at:
                break
            made += self.segments(text[at:end], call=call, first=not made, last=False)
            made.append(self._inserted(text, end, refused=bool(call.refused)))
            at = end + len(made[-1].text)
        return made + self.segments(text[at:], call=None, first=not made, last=True)

    def read_published(self, text: str) -> list[Segment]:
        """See `Reads`; text that was decoded without special tokens, as verl logs it, parts its turns by words alone.

        Where one turn of the tool has its tokens all must, so what a block prints can't part the text otherwise.
        """
        return (self if self.opening in text else self.spoken_in(_DECODED)).parse(text)

    def _inserted(self, text: str, at: int, *, refused: bool) -> Segment:
        """The turn of the tool that starts at character `at`; without its last words it reaches to the end."""
        inside = at + len(self.opening)
        close = text.find(self.turn.after, inside)
        end = len(text) if close < 0 else close + len(self.turn.after)
        body = text[inside:] if close < 0 else text[inside:close]
        if close < 0:
            ends = (self.turn.after[:length] for length in range(len(self.turn.after), 0, -1))
            body = body.removesuffix(next((words for words in ends if body.endswith(words)), ""))
        if body.startswith(_NOTICE[0]):
            content = body.removeprefix(_NOTICE[0]).removesuffix(_NOTICE[1])
            return Segment(SegmentKind.NOTICE, text[at:end], content)
        head = self.head.match(body)
        content = body[head.end() :] if head else body
        tails = [match.start() for match in self.tail.finditer(content) if match.end() == len(content)]
        content = content[: tails[0]] if tails else content
        return Segment(SegmentKind.NOTICE if refused else SegmentKind.OUTPUT, text[at:end], content)

    def teacher_turns(self, plan: str, thoughts: Sequence[str], blocks: Sequence[str], answer: str | None) -> list[str]:
        leads = list(thoughts) if thoughts else [plan]
        turns = []
        for number, code in enumerate(blocks):
            lead = leads[number].strip() if number < len(leads) else ""
            turns.append(f"{lead}\n" * bool(lead) + self.piece(SegmentKind.CODE, code.strip("\n")))
        if answer is not None:
            closing = [lead.strip() for lead in leads[len(blocks) :] if lead.strip()]
            turns.append("\n".join([*closing, self.closing.format(answer)]))
        return turns
