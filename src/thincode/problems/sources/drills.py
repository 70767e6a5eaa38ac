"""Generated problems with exact answers, and a teacher that may be fallible.

Held-out problems share no parameters with training or RL problems of their family, whatever seed, count or level is
asked for: the split of a parameter tuple is decided by a hash of it. The last third of each family's wordings occurs
in held-out problems only: new combinations of openings and rests that were trained on in other combinations.

The teacher writes each family's program; with `fallible`, the program of a family that knows a flaw carries it that
often. Filtering by answer then keeps the programs that are right by luck, which leaves something for a reward to teach.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from random import Random
from typing import Annotated

from pydantic import Field

from ...errors import DataError, RecipeError
from ...settings import settings
from .. import Problem, WorkedSolution
from ..drills import Cut, Family, Language, Params, Split, families, split_of
from ..drills import family as family_named

MISSES = 3000
"""So many draws in a row without a new problem, and a family counts as exhausted."""


class Wordings(StrEnum):
    """Which wordings; all but `seen` are for held-out problems."""

    SEEN = "seen"
    UNSEEN = "unseen"
    MIXED = "mixed"
    """Every third problem of a family has an unseen wording."""


Share = Annotated[float, Field(ge=0, le=1)]


@settings
class Settings:
    """Which problems to generate, and how fallible their teacher is."""

    families: tuple[str, ...] = ()
    """Names of files of `thincode.problems.drills`, or of modules (`my_lab.squares`); none means all that ship."""
    count: Annotated[int, Field(ge=1)] = 1000
    """Problems in all, spread evenly over the families."""
    seed: int = 0
    split: Split = Split.TRAIN
    level: Annotated[int, Field(ge=1, le=2)] = 1
    """1: numbers of one to three digits; 2: larger ones, longer chains."""
    wordings: Wordings = Wordings.SEEN
    fallible: Share = 0.0
    """Share of the worked solutions of families with a flaw that carry it."""
    language: Language = Language.PYTHON
    """What the worked solutions are written in; `gp` leaves out families that are not taught in it."""
    cut: Cut = Cut.STEPS
    """How the worked solutions are cut into blocks."""
    thoughts: Share = 1.0
    """Share of the worked solutions with a sentence before each block, for formats that interleave; the others have a plan."""
    values: bool = True
    """Whether those sentences state what the block will print, before it runs; else `…` stands for the number."""
    flaw_shows: Share | None = None
    """Share of the problems of families with a flaw in which a flawed program is wrong; null leaves it to chance."""

    def check(self) -> Iterator[tuple[str, str]]:
        """Only Python is cut anew."""
        if self.language is not Language.PYTHON and self.cut is not Cut.STEPS:
            yield "cut", f"{self.cut} cuts Python; with language: {self.language} write cut: {Cut.STEPS}"


def load(settings: Settings) -> Sequence[Problem]:
    """The problems, families mixed; each with the tags family, wording, unseen_wording, flaw, flaw_shows, blocks, level.

    Raises:
        RecipeError: an unknown family, unseen wordings outside the held-out split, or more problems than there are.
    """
    chosen = _chosen(settings)
    if settings.wordings is not Wordings.SEEN and settings.split is not Split.HELDOUT:
        raise RecipeError(
            f"wordings: {settings.wordings} is for split: heldout only, found split: {settings.split}; "
            "training on them would leave none unseen. Write wordings: seen"
        )
    problems: list[Problem] = []
    for index, name in enumerate(chosen):
        share = settings.count // len(chosen) + (index < settings.count % len(chosen))
        problems += _draw(settings, name, share)
    Random(f"order {settings.seed}").shuffle(problems)
    return problems


def worked_solution(settings: Settings, problem: Problem, *, seed: int) -> WorkedSolution:
    """The taught program; whether it carries its family's flaw, and has thoughts, depends on `seed` and the problem alone.

    Raises:
        DataError: the problem is none of this source's.
    """
    name, _, rest = problem.id.partition("/")
    try:
        family = family_named(name)
        params = tuple(int(part) for part in rest.partition("/")[0].split("-"))
        known = problem.answer == str(family.gold(*params))
    except (RecipeError, TypeError, ValueError):
        known = False
    if not known:
        raise DataError(f"problem {problem.id!r} is no drill of this version; load it again with source: drills")
    flawed = Random(f"flaw {seed} {problem.id}").random() < settings.fallible
    solution = family.solution(params, flawed=flawed, cut=settings.cut, language=settings.language)
    thinks = Random(f"thoughts {seed} {problem.id}").random() < settings.thoughts
    thoughts = solution.thoughts if settings.values else tuple(re.sub(r"\d+", "…", one) for one in solution.thoughts)
    return replace(solution, thoughts=thoughts if thinks else ())


def _chosen(settings: Settings) -> tuple[str, ...]:
    able = [name for name, family in families().items() if family.speaks(settings.language)]
    for name in settings.families:
        if not family_named(name).speaks(settings.language):
            raise RecipeError(
                f"families: {name} is not taught in {settings.language}; those that are: {', '.join(able)}"
            )
    if len(set(settings.families)) < len(settings.families):
        raise RecipeError(f"families: a name stands twice in {', '.join(settings.families)}; write each once")
    return settings.families or tuple(able)


def _draw(settings: Settings, name: str, count: int) -> Iterator[Problem]:
    family = family_named(name)
    rng = Random(f"{name} {settings.seed} {settings.split}")
    seen: set[Params] = set()
    for index in range(count):
        wanted = None if settings.flaw_shows is None else _quota(index, settings.flaw_shows)
        params = _new_params(settings, name, rng, seen, wanted)
        if params is None:
            kind = "" if wanted is None else f" in which the flaw {'shows' if wanted else 'does not show'}"
            raise RecipeError(
                f"count: {settings.count} asks for {count} problems of {name}, but level {settings.level} of split "
                f"{settings.split} has only {index} that are distinct{kind}, at these shares; "
                f"lower count, add families or take level: 2"
            )
        seen.add(family.canonical(params))
        yield _problem(settings, name, params, _wording(settings, family, rng, index))


def _new_params(settings: Settings, name: str, rng: Random, seen: set[Params], wanted: bool | None) -> Params | None:
    family = family_named(name)
    for _ in range(MISSES):
        params = family.sample(rng, settings.level)
        key = family.canonical(params)
        if key in seen or split_of(f"{name} {key}") != settings.split:
            continue
        if wanted is None or family.flaw is None or family.flaw_shows(params) == wanted:
            return params
    return None


def _quota(index: int, share: float) -> bool:
    """Whether number `index` is one of those that keep the running share at `share`."""
    return int((index + 1) * share + 1e-9) > int(index * share + 1e-9)


def _wording(settings: Settings, family: Family, rng: Random, index: int) -> int:
    unseen = settings.wordings is Wordings.UNSEEN or (settings.wordings is Wordings.MIXED and index % 3 == 2)
    return rng.randrange(family.seen_wordings, len(family.wordings)) if unseen else rng.randrange(family.seen_wordings)


def _problem(settings: Settings, name: str, params: Params, wording: int) -> Problem:
    family = family_named(name)
    return Problem(
        id=f"{name}/{'-'.join(map(str, params))}/w{wording}",
        question=family.question(params, wording),
        answer=str(family.gold(*params)),
        tags={
            "family": name,
            "wording": str(wording),
            "unseen_wording": "yes" if wording >= family.seen_wordings else "no",
            "flaw": family.flaw.name if family.flaw else "",
            "flaw_shows": "yes" if family.flaw_shows(params) else "no",
            "blocks": str(len(family.steps(*params, flawed=False))),
            "level": str(settings.level),
        },
    )
