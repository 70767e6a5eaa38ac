"""What one output shows: values, words and whole items, so that an answer can be looked for among them.

Everything found has a mark, a 64-bit hash that is the same in every process, so that what a hundred thousand trajectories show
fits into memory and one answer is looked up in all of them at once.
"""

from __future__ import annotations

import hashlib
import re
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

from ...grading import forms
from ...grading.answers import numbers
from ...grading.values import SCAN_CHARS, Shown, shown
from ...trajectory import BlockStatus, Segment, SegmentKind, Trajectory
from ...trajectory.formats import language_of
from ._source import Block, Key

NOT_PYTHON = "not applicable: the blocks are no Python"
"""Note of a figure that needs syntax trees, where there is none."""

Marks = bytes
"""Eight bytes a mark, sorted, without repetition: quick to hand to another process, and small."""

_LINES, _LINE_CHARS = 200, 400
"""How many lines of an output are read as answers, and how long one may be."""
_TRACEBACK = re.compile(r'^(?:Traceback \(most recent call last\):|[ \t]*File "|  \*\*\*   )', re.MULTILINE)
"""Where Python, or gp, begins to say what went wrong."""
_MATHEMATICS = re.compile(r"[\\=!±°]")
"""A line with one of these may be worth more as a whole than the numbers that stand in it."""
_WORD = re.compile(r"[^\W\d_]+")
_LEFT_OUT = str.maketrans("", "", "*{}\\")
_NUMBER = re.compile(r"(?<![\d.])\d{1,30}(?:\.\d{1,30})?(?![\d.]*\d)")
_ITEM_END = re.compile(r"[\n=:;]")


def mark(text: str) -> int:
    """64 bits that stand for a text."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def mark_of(key: Key) -> int:
    """64 bits that stand for a value."""
    return mark(key if isinstance(key, str) else f"{key.numerator:x}/{key.denominator:x}")


@dataclass(frozen=True)
class Wanted:
    """An answer, as what must be shown together for it to be grounded."""

    keys: tuple[Key, ...]
    """Values of its parts; empty if it is not made of numbers."""
    marks: tuple[int, ...]
    """Never empty: of the values, or of the word or text it is."""


@lru_cache(maxsize=1_000)
def wanted(answer: str) -> Wanted | None:
    """What an answer needs; None for one that is longer than any answer."""
    if len(answer) > forms.LIMIT_CHARS:
        return None
    keys = tuple(value.key for value in numbers(answer) or ())
    if keys:
        return Wanted(keys, tuple(sorted({mark_of(key) for key in keys})))
    plain = forms.undress(answer)
    said = forms.words(plain)
    return Wanted((), (mark(f"word {said}") if said else mark(f"item {letters(plain)}"),))


def letters(text: str) -> str:
    """A text without what does not matter when it is compared by letters."""
    return forms.squeezed(text).translate(_LEFT_OUT)


class Output:
    """One output and the block that gave it."""

    def __init__(self, segment: Segment, block: Block | None) -> None:
        """The text that counts is what was printed, without the traceback of a failed block."""
        self.block = block
        self.text = _printed(segment, block.segment if block is not None else None)

    @cached_property
    def values(self) -> list[Shown]:
        """Values that stand free, left to right."""
        return list(shown(self.text))

    @cached_property
    def lines(self) -> list[tuple[frozenset[Key], int, int]]:
        """Values of whole lines, read as answers are read, with the span of each line."""
        found, at = [], 0
        for line in self.text.split("\n", _LINES)[:_LINES]:
            if len(line) <= _LINE_CHARS and _MATHEMATICS.search(line):
                keys = frozenset(value.key for value in numbers(line.strip()) or ())
                if keys:
                    found.append((keys, at, at + len(line)))
            at += len(line) + 1
        return found

    @cached_property
    def keys(self) -> frozenset[Key]:
        """All values shown."""
        return frozenset(item.value.key for item in self.values).union(*(keys for keys, _, _ in self.lines))

    @cached_property
    def marks(self) -> Marks:
        """Of all values, words and items shown."""
        words = {f"word {word}" for word in _WORD.findall(self.text.casefold())}
        items = {*_ITEM_END.split(self.text, _LINES), *self.text.split("\n", _LINES)}
        said = {f"word {' '.join(item.casefold().split()).strip('.')}" for item in items if " " in item.strip()}
        texts = {f"item {letters(item)}" for item in items if 0 < len(item) <= _LINE_CHARS}
        found = {mark_of(key) for key in self.keys} | {mark(text) for text in words | said | texts}
        return packed(found)

    def shows(self, answer: Wanted) -> bool:
        """Whether everything the answer needs is shown."""
        return set(answer.keys) <= self.keys if answer.keys else all_in(self.marks, answer.marks)

    def is_near(self, answer: Wanted) -> bool:
        """Whether each value of the answer is shown as a decimal within 1e-9 of it."""
        return bool(answer.keys) and all(self._is_near(Fraction(key)) for key in answer.keys)

    def _is_near(self, value: Fraction) -> bool:
        decimals = (item.value.rational for item in self.values if item.value.decimal is not None)
        return any(abs(one - value) * 10**9 <= abs(value) for one in decimals)

    def holds_as_literal(self, answer: Wanted) -> bool:
        """Whether the block's source has every value of the answer as a literal."""
        return bool(answer.keys) and self.block is not None and set(answer.keys) <= self.block.literals

    def spans(self, answer: Wanted) -> list[tuple[int, int]]:
        """Where the answer's values stand; the whole output for an answer without values."""
        found = [(item.start, item.end) for item in self.values if item.value.key in answer.keys]
        found = found or [(start, end) for keys, start, end in self.lines if keys & set(answer.keys)]
        return found or [(0, len(self.text))]


def given(question: str) -> set[Key]:
    """Values that a question states, and their negatives where a letter stands right behind: the 3 of 3x too."""
    text = question[:SCAN_CHARS]
    found: set[Key] = {item.value.key for item in shown(text)}
    for written in _NUMBER.findall(text):
        number = int(written) if "." not in written else Fraction(written)
        found |= {number, -number}
    return found


def packed(marks: Set[int]) -> Marks:
    """Marks in bytes."""
    return array("Q", sorted(marks)).tobytes()


def unpacked(marks: Marks) -> set[int]:
    """The inverse."""
    return set(memoryview(marks).cast("Q"))


def all_in(marks: Marks, some: Sequence[int]) -> bool:
    """Whether all of `some` are among the marks."""
    return unpacked(marks).issuperset(some)


def chances(answered: Sequence[tuple[str, tuple[int, ...], Sequence[Marks]]]) -> list[float]:
    """For each of (problem, answer, sets of marks) the share of other problems' different answers that one set holds.

    Exact over all pairs, at the cost of what is shown: an answer is tried only where its first mark stands.
    """
    total = Counter(answer for _, answer, _ in answered)
    own: dict[str, Counter[tuple[int, ...]]] = {}
    for problem, answer, _ in answered:
        own.setdefault(problem, Counter())[answer] += 1
    by_first: dict[int, list[tuple[int, ...]]] = {}
    for answer in total:
        by_first.setdefault(answer[0], []).append(answer)
    found = []
    for problem, mine, sets in answered:
        at_home = own[problem]
        others = len(answered) - sum(at_home.values()) - (total[mine] - at_home[mine])
        if others <= 0:
            continue
        hits = sum(
            total[answer] - at_home[answer]
            for first in by_first.keys() & unpacked(b"".join(sets))
            for answer in by_first[first]
            if answer != mine and (len(answer) == 1 or any(all_in(one, answer) for one in sets))
        )
        found.append(hits / others)
    return found


Reading = Sequence[Block | Output | None]
"""What stands in each segment of a trajectory: a block, an output, or neither."""

_last: tuple[Sequence[Segment], Reading] = ((), ())


def in_python(trajectory: Trajectory) -> bool:
    """Whether its blocks are Python, which syntax trees are made of; as its format says."""
    return language_of(trajectory.format) == "python"


def read(trajectory: Trajectory) -> Reading:
    """Every block and output of a trajectory. Metrics look at the same one in turn, so the last one is kept."""
    global _last
    segments = trajectory.segments
    kept, found = _last
    if kept is not segments:
        found = list(_read(segments, is_python=in_python(trajectory)))
        _last = (segments, found)
    return found


def _read(segments: Sequence[Segment], *, is_python: bool) -> Iterator[Block | Output | None]:
    block: Block | None = None
    for segment in segments:
        if segment.kind is SegmentKind.CODE:
            block = Block(segment, is_python=is_python)
            yield block
        elif segment.kind is SegmentKind.OUTPUT:
            yield Output(segment, block)
            block = None
        else:
            yield None


def outputs(trajectory: Trajectory) -> list[Output]:
    """The outputs alone, in order."""
    return [one for one in read(trajectory) if isinstance(one, Output)]


def _printed(segment: Segment, code: Segment | None) -> str:
    text = segment.content[:SCAN_CHARS]
    if code is None or code.block is None or code.block.status is not BlockStatus.ERROR:
        return text
    found = _TRACEBACK.search(text)
    if found:
        return text[: found.start()]
    start = text.rfind(f"\n{code.block.detail}") if code.block.detail else -1
    if start < 0 and code.block.detail and text.startswith(code.block.detail):
        return ""
    return text if start < 0 else text[:start]
