"""What is asked.

A source gives problems; some sources can also solve their own problems with a program, which makes them teachers. A
problem's gold answer never leaves the process that grades: not to an engine, not to an interpreter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True)
class Problem:
    """One question with its gold answer."""

    id: str
    """Unique inside its source."""
    question: str
    answer: str
    """The gold answer as text, for example `"033"` or `"\\frac{1}{2}"`."""
    tags: Mapping[str, str] = field(default_factory=dict)
    """Whatever groups problems: `family`, `wording`, `level`, `subject`, `source`."""


Block = Callable[[Sequence[str]], str]
"""Source of one block, given what the earlier blocks printed (one text per block, stripped)."""


@dataclass(frozen=True)
class WorkedSolution:
    """How a teacher solves one problem in code; the answer is read off what the last block prints."""

    plan: str
    """One short plan: strategy, no derivation, no arithmetic."""
    blocks: tuple[Block, ...]
    thoughts: tuple[str, ...] = ()
    """One sentence before each block, for formats that interleave; as long as `blocks`, or empty."""
    text: tuple[str, ...] = ()
    """The same worked without code, for formats that have none; empty: the thoughts."""
    answer: str = ""
    """What the last block prints, for a teacher that runs none; empty where only a run can tell."""
    flaw: str = ""
    """Name of the flaw a fallible teacher put in, or empty."""


class Source(Protocol):
    """A module of `thincode.problems.sources`: a `Settings` class and these functions."""

    def load(self, settings: Any) -> Sequence[Problem]:
        """The problems, in a fixed order; the same settings give the same problems.

        Raises:
            DataError: a file is missing or a line is wrong (file and line named).
        """

    def worked_solution(self, settings: Any, problem: Problem, *, seed: int) -> WorkedSolution | None:
        """A program that solves `problem`, or None where this source knows none."""
