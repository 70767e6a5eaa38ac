"""What a drill family is: parameters, wordings, an exact gold answer, and a program that is taught.

A family's file makes one `FAMILY`. Its `gold` never runs the taught program: it counts, searches or multiplies on its
own, so that a slip in one shows against the other. A family may know one *flaw*, a mistake that people really make; a
flaw is lucky for parameters where the flawed program prints the gold answer all the same.
"""

from __future__ import annotations

import difflib
import hashlib
import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from random import Random

from ...errors import RecipeError
from ...settings import kinds
from .. import Block, WorkedSolution
from ._cuts import Cut, recut
from ._cuts import Step as Step

ROOM = "thincode.problems.drills"

Params = tuple[int, ...]
"""Parameters of one problem, none negative."""


class Split(StrEnum):
    """Which problems of a family; no two splits share parameters."""

    TRAIN = "train"
    RL = "rl"
    HELDOUT = "heldout"


class Language(StrEnum):
    """What worked solutions are written in."""

    PYTHON = "python"
    GP = "gp"


SPLITS = {Split.TRAIN: 70, Split.RL: 15, Split.HELDOUT: 15}
"""Percent of a family's parameters in each split."""


@dataclass(frozen=True)
class Flaw:
    """One realistic mistake."""

    name: str
    answer: Callable[..., int]
    """What the flawed program prints, by direct arithmetic."""


@dataclass(frozen=True)
class Family:
    """One kind of problem. The callables take the parameters in the order of `names`."""

    names: str
    """The parameters' names, parted by spaces; wordings use them in braces."""
    sample: Callable[[Random, int], Params]
    """Parameters drawn at a level: 1 for small numbers, 2 for larger ones."""
    wordings: tuple[str, ...]
    """At least six; the last third is for held-out problems only."""
    gold: Callable[..., int]
    plan: str
    """One sentence of strategy without a number."""
    steps: Callable[..., Sequence[Step]]
    """`steps(*params, flawed=…)`; the last block prints the answer."""
    flaw: Flaw | None = None
    text: Callable[..., Sequence[str]] | None = None
    """`text(*params, flawed=…)`: the steps worked in words and figures, for formats without code; the last number is the
    answer. None takes the sentences of `steps`."""
    gp: Callable[..., Sequence[Step]] | None = None
    """`steps` in PARI/GP, with as many blocks that show the same; None: the family is not taught in it."""
    symmetric: int = 0
    """So many leading parameters may change places without changing the problem."""
    fields: Callable[[Params], Mapping[str, object]] | None = None
    """What wordings may name, where that is not simply the parameters."""

    @property
    def seen_wordings(self) -> int:
        """Wordings below this index may be trained on."""
        return len(self.wordings) - len(self.wordings) // 3

    def question(self, params: Params, wording: int) -> str:
        """The question in one of the wordings."""
        fields = self.fields(params) if self.fields else dict(zip(self.names.split(), params, strict=True))
        return self.wordings[wording].format(**fields)

    def flaw_shows(self, params: Params) -> bool:
        """Whether a program with the flaw prints something else than the gold answer."""
        return self.flaw is not None and self.flaw.answer(*params) != self.gold(*params)

    def speaks(self, language: Language) -> bool:
        """Whether it is taught in this language."""
        return language is Language.PYTHON or self.gp is not None

    def solution(
        self, params: Params, *, flawed: bool = False, cut: Cut = Cut.STEPS, language: Language = Language.PYTHON
    ) -> WorkedSolution:
        """The taught program, with the family's flaw if asked and if it knows one; only Python is cut otherwise."""
        flaw = self.flaw if flawed else None
        written = self.gp if language is Language.GP and self.gp is not None else self.steps
        steps = recut(written(*params, flawed=flaw is not None), cut)
        return WorkedSolution(
            plan=self.plan,
            blocks=tuple(_block(source) for _, source in steps),
            thoughts=tuple(thought for thought, _ in steps),
            text=tuple(self.text(*params, flawed=flaw is not None)) if self.text else (),
            answer=str(flaw.answer(*params) if flaw else self.gold(*params)),
            flaw=flaw.name if flaw else "",
        )

    def canonical(self, params: Params) -> Params:
        """The same for all parameters that make the same problem."""
        return (*sorted(params[: self.symmetric]), *params[self.symmetric :])


def _block(source: str | Block) -> Block:
    return source if callable(source) else lambda outputs: source


def lines(*source: str) -> str:
    """A block of several lines."""
    return "\n".join(source)


def phrases(openings: Sequence[str], rests: Sequence[str]) -> tuple[str, ...]:
    """Wordings put together from parts: every opening with every rest in the place of its `…`.

    The last third, which is for held-out problems only, are combinations never trained on whose parts all were: with three
    of each, every part occurs in two seen wordings.
    """
    pairs = [(i, j) for i in range(len(openings)) for j in range(len(rests))]
    ordered = [pair for pair in pairs if sum(pair) % 3 != 2] + [pair for pair in pairs if sum(pair) % 3 == 2]
    return tuple(openings[i].replace("…", rests[j]) for i, j in ordered)


@cache
def families() -> Mapping[str, Family]:
    """Every family that ships, by the name of its file."""
    return {name: family(name) for name in kinds(ROOM)}


@cache
def family(name: str) -> Family:
    """The family of a file of this room, or of any module where the name has a dot: `my_lab.squares`.

    Raises:
        RecipeError: there is no such file, or it holds no `FAMILY`.
    """
    target = name if "." in name else f"{ROOM}.{name}"
    try:
        found = importlib.import_module(target).FAMILY
    except (ModuleNotFoundError, AttributeError) as error:
        if isinstance(error, ModuleNotFoundError) and not f"{target}.".startswith(f"{error.name}."):
            raise  # the file is there, and what it imports is not
        near = difflib.get_close_matches(name, kinds(ROOM), n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise RecipeError(f"{name!r} is no drill family{hint} Known: {', '.join(kinds(ROOM))}") from None
    if not isinstance(found, Family):
        raise RecipeError(f"{target}.FAMILY is {found!r}; it must be a thincode.problems.drills.Family")
    return found


def split_of(key: str) -> Split:
    """The split a key belongs to, whatever seed, count or level draws it."""
    place = int.from_bytes(hashlib.blake2b(key.encode(), digest_size=4).digest(), "big") % 100
    if place < SPLITS[Split.TRAIN]:
        return Split.TRAIN
    return Split.RL if place < SPLITS[Split.TRAIN] + SPLITS[Split.RL] else Split.HELDOUT
