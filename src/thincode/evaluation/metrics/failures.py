r"""The three failures of interleaved reasoning that ThinC names (Hwang, Lee, Kang 2026), measured on any system's trajectories.

- post-hoc verification: the answer stands in the model's text, and a block runs after that, before any output has shown it;
  so code can only confirm it. Numbers of the question don't count, nor do the numbers of a list's items.
- unverified constants: a number that the text works out (it stands behind `=`, `≈` or a word such as "gives") is written into
  a later block, and neither the question nor an earlier output has it. What the block asserts or compares is not used but
  checked, and numbers inside its texts do nothing: neither counts.
- role overlap: the text before a block retells it. The similarity of a text and the next block is the share of the block's steps
  (loop, condition, count, sum, remainder, …: the table in `_retelling`) that the text names; at `overlap` or more, with
  three steps or more and control flow among them, it is a retelling.

Shares are of trajectories in which a block ran; post-hoc verification is over those that also have an answer. Beside each stands
its chance level: the answer of another problem (exact over all pairs), the constants and the blocks of another trajectory (the next
one of another problem). The last two read Python: trajectories in another language are left out of them. A code format whose text
is one plan has little room for any of them. The paper states no formulas: these are ours, and its three examples are in the
tests. Lost trajectories are left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from ...grading import Graded
from ...grading.values import SCAN_CHARS, shown
from ...settings import Share, settings
from ...trajectory import SegmentKind
from .. import Estimate
from ..intervals import normal_of_shares
from ..samples import Looks, estimate, next_of_another_problem, share
from . import _retelling
from ._shown import (
    NOT_PYTHON,
    Marks,
    Output,
    all_in,
    chances,
    given,
    in_python,
    mark_of,
    packed,
    read,
    unpacked,
    wanted,
)
from ._source import Block, Key

_TEXT = (SegmentKind.PLAN, SegmentKind.THOUGHT)
_ITEM_NUMBER = re.compile(
    r"^[ \t]*(?:#+[ \t]*)?(?:(?:step|part|case)[ \t]+)?\(?\d{1,2}[.):](?=\s)", re.IGNORECASE | re.MULTILINE
)
_MATH_MODE = re.compile(r"\\[()\[\]]")
_WORKED_OUT = re.compile(
    r"(?:=|≈|→|\\approx|\\Rightarrow|\b(?:equals|gives?|yields?|gets?|is|are|becomes?))[\s$*(\[{\\]*\Z"
)
_SIGN_CHARS = 24
"""How far before a number its sign is looked for."""
_LEAST_STEPS = 3


@settings
class Settings:
    """Where to draw lines."""

    overlap: Share = 0.75
    """Similarity from which a text retells its block."""
    small: int = 2
    """Whole numbers up to this one are no constants: every program has them."""


class Look(NamedTuple):
    """The failures of one trajectory."""

    has_code: bool
    is_python: bool
    answer: tuple[int, ...]
    early: Marks
    """Values that stood in text before a block, and no output had shown them yet."""
    worked_out: Marks
    """Values that the text worked out before some block."""
    written: Marks
    """Literals of blocks that neither the question nor earlier outputs have."""
    constants: tuple[str, ...]
    """Worked out and then written: unverified."""
    steps: tuple[frozenset[str], ...]
    """Of each block that has a text right before it."""
    told: tuple[frozenset[str], ...]
    """What that text names."""

    @property
    def similarities(self) -> list[float]:
        """Of each such block and its text."""
        return [_retelling.similarity(told, done) for told, done in zip(self.told, self.steps, strict=True)]

    @property
    def is_post_hoc(self) -> bool:
        """Whether the answer stood in text first."""
        return self.has_code and bool(self.answer) and all_in(self.early, self.answer)


class _Reader:
    """Goes through a trajectory once, from the question to the last block."""

    def __init__(self, settings: Settings, question: str) -> None:
        self.settings = settings
        self.known: set[Key] = given(question)
        self.said: set[Key] = set()  # in text since, and not known by then
        self.early: set[Key] = set()
        self.computed: set[Key] = set()
        self.worked_out: set[Key] = set()
        self.written: set[Key] = set()
        self.constants: dict[str, None] = {}
        self.text = ""  # right before the next block
        self.steps: list[frozenset[str]] = []
        self.told: list[frozenset[str]] = []

    def text_segment(self, text: str) -> None:
        self.text += text
        plain = _MATH_MODE.sub("  ", _ITEM_NUMBER.sub("", text[:SCAN_CHARS]))
        for item in shown(plain):
            if item.value.key not in self.known:
                self.said.add(item.value.key)
                if _WORKED_OUT.search(plain[max(0, item.start - _SIGN_CHARS) : item.start]):
                    self.computed.add(item.value.key)

    def block(self, block: Block) -> None:
        self.early |= self.said
        self.worked_out |= self.computed
        new = {key for key in block.numbers if key not in self.known and not self._is_small(key)}
        self.written |= new
        self.constants |= dict.fromkeys(str(key) for key in sorted(new & self.computed, key=str))
        if block.steps is not None and self.text.strip():
            self.steps.append(block.steps)
            self.told.append(_retelling.named(self.text))
        self.text = ""

    def output(self, output: Output) -> None:
        self.known |= output.keys
        self.said -= output.keys
        self.computed -= output.keys

    def _is_small(self, key: Key) -> bool:
        return isinstance(key, int) and abs(key) <= self.settings.small


def look(settings: Settings, graded: Graded) -> Look:
    """The failures of one trajectory."""
    said = graded.trajectory
    reader = _Reader(settings, said.question)
    for segment, found in zip(said.segments, read(said), strict=True):
        if segment.kind in _TEXT:
            reader.text_segment(segment.text)
        elif isinstance(found, Block) and segment.block is not None:
            reader.block(found)
        elif isinstance(found, Output):
            reader.output(found)
    answer = wanted(said.answer) if said.answer is not None and said.answer.strip() else None
    return Look(
        has_code=bool(said.blocks),
        is_python=in_python(said),
        answer=answer.marks if answer is not None else (),
        early=_marks(reader.early),
        worked_out=_marks(reader.worked_out),
        written=_marks(reader.written),
        constants=tuple(reader.constants),
        steps=tuple(reader.steps),
        told=tuple(reader.told),
    )


def _marks(keys: set[Key]) -> Marks:
    return packed({mark_of(key) for key in keys})


def sum_up(settings: Settings, looks: Looks[Look]) -> list[Estimate]:
    """The three shares, their chance levels, and the mean similarity."""
    coded = [one for one in looks.seen if one.look.has_code]
    answered = [one for one in coded if one.look.answer]
    by_chance = chances([(one.row.problem, one.look.answer, [one.look.early]) for one in answered])
    readable = [one for one in coded if one.look.is_python]
    note = NOT_PYTHON if coded and not readable else looks.note
    pairs = [(one.look, other.look) for one, other in next_of_another_problem(readable)]
    similar = [value for one in readable for value in one.look.similarities]
    swapped = [_across(one, other) for one, other in pairs if one.told and other.steps]
    return [
        share("post-hoc verification", sum(o.look.is_post_hoc for o in answered), len(answered), note=looks.note),
        estimate("post-hoc verification by chance", normal_of_shares(by_chance), n=len(by_chance)),
        share("unverified constants", sum(bool(o.look.constants) for o in readable), len(readable), note=note),
        share("unverified constants by chance", sum(_meet(*pair) for pair in pairs), len(pairs)),
        share("role overlap", sum(_retells(settings, o.look) for o in readable), len(readable), note=note),
        estimate(
            "role similarity", normal_of_shares(similar), n=len(similar), unit="share of steps", note="n counts blocks"
        ),
        estimate("role similarity by chance", normal_of_shares(swapped), n=len(swapped), unit="share of steps"),
    ]


def details(settings: Settings, looks: Looks[Look]) -> Mapping[str, Any]:
    """For each trajectory that fails: in which ways."""
    found = []
    for row, seen in looks.seen:
        failure = {
            "post_hoc": seen.is_post_hoc,
            "constants": list(seen.constants),
            "role_overlap": _retells(settings, seen),
        }
        if any(failure.values()):
            found.append({"problem": row.problem, "sample": row.sample, **failure})
    return {"failures": found}


def _retells(settings: Settings, seen: Look) -> bool:
    return any(
        len(told & done) >= _LEAST_STEPS
        and not _retelling.CONTROL.isdisjoint(told & done)
        and _retelling.similarity(told, done) >= settings.overlap
        for told, done in zip(seen.told, seen.steps, strict=True)
    )


def _meet(one: Look, other: Look) -> bool:
    return not unpacked(one.worked_out).isdisjoint(unpacked(other.written))


def _across(one: Look, other: Look) -> float:
    return _retelling.similarity(one.told[0], other.steps[0])
