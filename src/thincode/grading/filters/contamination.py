r"""Drop what was asked in a benchmark: the question shares too many of its 13-grams with one of a benchmark's problems.

Words are runs of letters or of digits, in lower case. LaTeX's layout (`\left`, `\,`, `\text`), signs and spaces don't count, so
that a problem set anew or given another closing sentence is still found. The overlap of two problems is the number of n-grams
they share over the smaller of their two numbers. A problem of 6 to 12 words must stand in the question as a whole, one of fewer
must be the whole question. One shared n-gram is not enough (GPT-3's rule, Brown et al. 2020, appendix C): many problems share
nothing but "where m and n are relatively prime positive integers. Find m + n".
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

from pydantic import Field

from ... import _jsonl
from ...errors import DataError
from ...settings import Share, settings
from .. import Graded, Verdict

_LAYOUT = re.compile(
    r"\\(?:left|right|big|Big|bigg|Bigg|displaystyle|limits|[lc]?dots|quad|qquad|text(?:bf|it|rm|sf)?|math(?:rm|bf|it|sf|cal|bb)|"
    r"operatorname|mbox|boxed|[,;:!])(?![a-zA-Z])|\[asy\].*?\[/asy\]",
    re.DOTALL,
)
_FRACTION = re.compile(r"\\[dtc]frac")
_WORD = re.compile(r"[^\W\d_]+|\d+")
_AT_LEAST = 6


@settings
class Settings:
    """Against which benchmarks."""

    files: tuple[Path, ...] = ()
    """JSONL files, one problem a line."""
    question_field: str = "problem"
    n: Annotated[int, Field(ge=6)] = 13
    """Words in an n-gram."""
    overlap: Share = 0.3
    """A question with this overlap or more is dropped. Among 2,000 problems of DAPO-Math-17k nine lie above 0.4, each a
    benchmark's problem in other words or with another last sentence, and the rest at 0.2 or below."""

    def check(self) -> Iterator[tuple[str, str]]:
        """What one field's type can't say."""
        if not self.files:
            yield "files", "names no benchmark, so nothing could be found; list JSONL files"


def open(settings: Settings) -> Callable[[Graded], Verdict]:
    """A judge that holds the n-grams of the benchmarks.

    Raises:
        DataError: a file is missing or has a line without a question.
    """
    index = _Index(settings.n)
    for path in settings.files:
        if not path.is_file():
            raise DataError(f"contamination.files: {path}: no such file; name a JSONL file of a benchmark")
        for number, row in _jsonl.read(path):
            question = row.get(settings.question_field)
            if not isinstance(question, str):
                raise DataError(
                    f"{path}:{number}: no question in {settings.question_field!r}; fields of this line: {', '.join(row)}. "
                    "Name the right one with question_field"
                )
            index.add(words(question), name=path.stem)

    def judge(graded: Graded) -> Verdict:
        found = index.nearest(words(graded.trajectory.question))
        if found is not None and found[0] >= settings.overlap:
            return Verdict(False, f"contaminated: {found[1][:40]}")
        return Verdict(True, "in no benchmark")

    return judge


def words(text: str) -> list[str]:
    """What is compared of a question."""
    return _WORD.findall(_FRACTION.sub(r"\\frac", _LAYOUT.sub(" ", text)).lower())


class _Index:
    """The n-grams of many problems, each with the problems that hold it."""

    def __init__(self, n: int) -> None:
        self._n = n
        self._names: list[str] = []
        self._sizes: list[int] = []
        self._holders: dict[int, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        """By length of the n-gram, by its words: numbers of problems. Length 0 holds whole questions."""
        self._starts: set[str] = set()
        """What the first six words of an n-gram may be: where none of them stands, nothing is shared."""

    def add(self, words: list[str], *, name: str) -> None:
        length = self._length(words)
        grams = _grams(words, length)
        for gram in grams:
            self._holders[length][gram].append(len(self._names))
        if length:
            self._starts |= _grams(words[: len(words) - length + _AT_LEAST], _AT_LEAST)
        self._names.append(name)
        self._sizes.append(len(grams))

    def nearest(self, words: list[str]) -> tuple[float, str] | None:
        """The largest overlap there is, and the benchmark it is with."""
        best: tuple[float, str] | None = None
        at_all = not self._starts.isdisjoint(_grams(words, _AT_LEAST))
        for length, holders in self._holders.items():
            if length and not at_all:
                continue
            grams = _grams(words, length)
            shared = Counter(number for gram in grams if gram in holders for number in holders[gram])
            for number, count in shared.items():
                overlap = count / min(len(grams), self._sizes[number])
                if best is None or overlap > best[0]:
                    best = overlap, self._names[number]
        return best

    def _length(self, words: list[str]) -> int:
        return 0 if len(words) < _AT_LEAST else min(len(words), self._n)


def _grams(words: list[str], length: int) -> set[str]:
    if length == 0:
        return {" ".join(words)}
    return {" ".join(words[at : at + length]) for at in range(len(words) - length + 1)}
