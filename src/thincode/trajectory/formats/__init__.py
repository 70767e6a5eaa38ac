"""Wire formats: how a trajectory is written down. Each public module here is a kind with `Settings` and `build`.

A format owns how a prompt is rendered, when a call is complete, in which role and shape an output goes in, and where
the answer stands. Text of the interpreter can't forge structure: the format neutralizes its own markers in it, the
tokenizer its special tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol, cast, runtime_checkable

from ...errors import RecipeError
from ...settings import Kind, kind
from .. import Block, Segment, SegmentKind

ROOM = "thincode.trajectory.formats"
COMMENTS = {"python": "#", "gp": r"\\"}
"""Language → what begins a comment in it."""


@dataclass(frozen=True)
class Call:
    """A complete, well formed, non-empty block at the end of what the model wrote in this turn."""

    code: str
    end: int
    """Characters of the turn's text up to and including the closer's line; what stands behind counts as never sampled."""
    missing: str = ""
    """What the driver adds to complete the closer: its line break, where the model ended its turn right behind it. Goes in
    like a closer that had shared its token with dropped text."""
    refused: str = ""
    """What the model is told instead of running this: it calls a tool that is not here, or can't be read. Empty: it runs."""


@dataclass(frozen=True)
class Insertion:
    """Text the driver puts in. `before` and `after` may hold the format's markers and special tokens; `body` may not."""

    before: str
    body: str
    """Neutralized text of the interpreter, or our own words."""
    after: str
    ends_turn: bool = False
    """Whether `before` begins with the token that ends the model's turn; it stands there once, whoever wrote it. Such an
    insertion is encoded as one text, as chat templates are; any other part by part."""

    @property
    def text(self) -> str:
        """What the model sees."""
        return self.before + self.body + self.after

    @property
    def marker(self) -> str:
        """What a server may stop at, since the model has nothing to say behind it; empty where only a token tells.

        At the start of a line where that is where it stands: prose may name it.
        """
        begins = "" if self.ends_turn else self.before.rstrip()
        return f"\n{begins}" if begins.strip() == begins and begins and self.before.endswith("\n") else begins


class Scanner(Protocol):
    """Watches the text of one turn as it streams in."""

    def feed(self, text: str) -> Call | None:
        """Take the next piece; the call as soon as one is complete. Splitting the text otherwise changes nothing."""

    def finish(self) -> Call | None:
        """The turn is over: a closer that ends the text without a line break is complete now."""


class Format(Protocol):
    """One wire format."""

    name: str

    @property
    def markers(self) -> tuple[str, ...]:
        """Texts that a tokenizer made for this format holds as one token each."""

    def user_message(self, question: str) -> str:
        """What the user says; the tokenizer's chat template puts it into the prompt."""

    def scanner(self) -> Scanner:
        """A fresh scanner for one turn of the model; a format without code gives one that never finds a call."""

    def output(self, printed: str) -> Insertion:
        """What goes in after a block printed `printed` (already cut to the limit; maybe empty)."""

    def notice(self, words: str) -> Insertion:
        """What goes in when the driver has something to say."""

    def piece(self, kind: SegmentKind, content: str) -> str:
        """A segment's text, markers and all, from nothing but its content; for transcripts that come in pieces.

        The content goes in as it is: what might forge structure in it stays.
        """

    def segments(self, turn: str, *, call: Call | None, first: bool, last: bool) -> list[Segment]:
        """The model's text of one turn as segments whose texts join to `turn[:call.end] + call.missing` (or `turn`).

        A block that was cut short is a code segment too; it never ran, so it has no `block`.
        """

    def insertion(self, segment: Segment) -> Insertion:
        """The insertion that an output or notice segment is; its text is the segment's."""

    def answer(self, segments: Sequence[Segment]) -> str | None:
        """The answer, looked for in model-written segments only."""

    def parse(self, text: str) -> list[Segment]:
        """A whole trajectory's text as segments; their texts join to `text` again."""

    def teacher_turns(self, plan: str, thoughts: Sequence[str], blocks: Sequence[str], answer: str | None) -> list[str]:
        """What a teacher writes, turn by turn: the text up to each block's end; with an answer, the closing turn too."""


@runtime_checkable
class Thinks(Protocol):
    """What a format has besides, where the model thinks before it answers and a budget may end the thought."""

    @property
    def thought_end(self) -> str:
        """The text that ends a thought."""

    def close_thought(self) -> Insertion:
        """What goes in when a thought has used its tokens: it holds `thought_end`, and the model answers behind it."""


@runtime_checkable
class Concludes(Protocol):
    """What a format has besides, where what a block printed may be the answer. Other formats take it from the model alone."""

    def concluded(self, segments: Sequence[Segment]) -> bool:
        """Whether a trajectory that ends in an output is over with it."""


@runtime_checkable
class Reads(Protocol):
    """What a format has besides, whose system's transcripts differ from what we write: other marks, or a looser rule for them."""

    def read_published(self, text: str) -> list[Segment]:
        """`parse`, and for text in which the marks of `parse` are not all there is, by the system's own rule."""


@dataclass(frozen=True)
class ToolTurn:
    """How a chat template writes what stands between two turns of the assistant, where that is a tool's output."""

    end: str
    """Ends the assistant's turn: a token of its own, which the model itself writes."""
    before: str
    """From there to the output."""
    after: str
    """From the output to where the assistant speaks again."""


@runtime_checkable
class Converses(Protocol):
    """What a format has besides, whose outputs are turns of a tool, in the words of the model's chat template."""

    @property
    def tools(self) -> Sequence[Mapping[str, Any]]:
        """Schemas of the tools, as chat templates take them."""

    @property
    def tools_in_words(self) -> str:
        """The same for a prompt whose template has no words for tools; empty where the bare question is asked."""

    def spoken_in(self, turn: ToolTurn) -> Format:
        """The same format in the words of a template."""

    def messages(self, segments: Sequence[Segment]) -> list[dict[str, str]]:
        """A trajectory as a chat's messages: `role` (assistant, tool) and `content` each, without the template's words."""


@runtime_checkable
class Reports(Protocol):
    """What a format has besides, whose outputs say how a block ended."""

    def report(self, printed: str, block: Block) -> Insertion:
        """`output` for a block that ended so."""

    def reported(self, segment: Segment) -> Block | None:
        """How a block ended, by its output; None where that does not say."""


@runtime_checkable
class Hands(Protocol):
    """What a format has besides, whose blocks hand values on by name."""

    def handed(self, blocks: Sequence[str], printed: Sequence[str]) -> list[str]:
        """A teacher's plain blocks as this format writes them, given what the earlier ones printed."""

    def values(self, printed: str) -> str:
        """What a plain block would have printed."""


@runtime_checkable
class Adheres(Protocol):
    """What a format has besides, that asks for another shape than ThinC's."""

    def adheres(self, segments: Sequence[Segment]) -> bool:
        """Whether a trajectory has that shape; nothing is rejected for it."""


@dataclass(frozen=True)
class Sheet:
    """What is published of the system whose trajectories a format writes. Defaults to take over, none of which is enforced."""

    system: str
    """As `docs/systems.md` names it."""
    paper: str = ""
    """For example `arXiv 2505.24480`; empty: none."""
    repository: str = ""
    """For example `github.com/RUCAIBox/CIR`; empty: none is public."""
    preset: str | None = None
    """Its interpreter in `interpreter.presets`; None: ours as the limits say, or no code runs."""
    calls: int | None = None
    """Blocks that run in a trajectory; 0 in text alone. None: unbounded, or not known."""
    turn_tokens: int | None = None
    """New tokens of one turn; None: not bounded apart, or not known."""
    context_tokens: int | None = None
    """Of a whole trajectory in evaluation, prompt and outputs included; None: not known."""
    thinking_tokens: int | None = None
    """Of a thought; None: not bounded apart, or there is none."""
    unknown: str = ""
    """What could not be known, so that it is our choice; ends without a period."""


def build(kind: Kind) -> Format:
    """The format a recipe names.

    Raises:
        RecipeError: it calls itself otherwise, so that its records would not be known for its own.
    """
    built = cast("Format", kind.module.build(kind.settings))
    if built.name != kind.name:
        raise RecipeError(
            f"format {kind.name}: it has the name {built.name!r}; records need {kind.name!r} to be found again"
        )
    return built


def has_blocks(format: Format) -> bool:
    """Whether code runs in it: a solution that is one block is written as one."""
    return bool(format.teacher_turns("", (), ["0"], None))


@cache
def by_name(name: str) -> Format | None:
    """The format that a record names, with its default settings; None where there is no such module."""
    try:
        return build(kind(ROOM, name))
    except RecipeError:
        return None


def language_of(name: str) -> str:
    """What the blocks of a record in this format are written in; `python` where nothing else is known."""
    return str(getattr(by_name(name), "language", "python"))


def sheet(kind: Kind) -> Sheet:
    """What is published of the format a recipe names; for one from outside without a `SHEET`, its name alone.

    Where that hangs on the settings, the module has a `sheet_of` them besides.
    """
    if hasattr(kind.module, "sheet_of"):
        return cast("Sheet", kind.module.sheet_of(kind.settings))
    return cast("Sheet", getattr(kind.module, "SHEET", Sheet(system=kind.name)))
