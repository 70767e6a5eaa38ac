"""Sweep: one recipe in several arms, each at several seeds; then one table, paired where arms asked the same problems.

for each seed, for each arm:   the recipe with the arm's settings, as a run of its own in OUT/ARM/seed-N
for each arm:                  its last evaluation's figures, over seeds
for each arm but the first:    how much more often it is right than the arm it is compared with, on the same problems

Each run is resumed where it stopped, and finished ones are left alone. So a sweep may be killed, get more arms and more seeds,
and be run by several processes at once: each takes the runs that no other is at.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .. import atomic
from ..errors import DataError, RecipeError, RunInUseError
from ..evaluation import Estimate, Scorecard
from ..evaluation.paired import compare
from ..evaluation.scorecard import read
from ..evaluation.seeds import card_over_seeds, over_seeds
from ..grading import Graded
from ..runlog import check_same_recipe
from ..settings import Resolved
from . import pipeline
from .compare import evaluation_of, graded
from .pipeline import Console, Pipeline, split_of_time
from .recipe import Recipe, SweepSection
from .workshop import Workshop

RESULT = "sweep.json"
VERSION = 1

Load = Callable[[Sequence[str]], Resolved[Recipe]]
"""The recipe with further overrides."""


@dataclass(frozen=True)
class Run:
    """One arm at one seed."""

    arm: str
    seed: int
    folder: Path
    resolved: Resolved[Recipe]
    start: Path | None
    """The model it starts from, where another arm makes it."""

    @property
    def is_done(self) -> bool:
        """Whether its last step has ended."""
        return (self.folder / "done.json").exists()


def runs_of(section: SweepSection, *, out: Path, load: Load, seeds: Sequence[int] = ()) -> list[Run]:
    """Every run of a sweep, in order: all arms at the first seed, then at the next.

    Args:
        section: arms and seeds.
        out: the sweep's folder; seeds that an arm has there belong to the sweep too.
        load: gives the recipe with an arm's settings.
        seeds: more of them, for every arm.

    Raises:
        RecipeError: an arm's settings are wrong.
    """
    of_arm = {
        name: dict.fromkeys((*(arm.seeds or section.seeds), *seeds, *_seeds_in(out / name)))
        for name, arm in section.arms.items()
    }
    every = dict.fromkeys(seed for known in of_arm.values() for seed in known)
    return [
        _run_of(section, name, seed, out=out, load=load)
        for seed in every
        for name in section.arms
        if seed in of_arm[name]
    ]


def _seeds_in(folder: Path) -> list[int]:
    found = (re.fullmatch(r"seed-(\d+)", path.name) for path in folder.glob("seed-*"))
    return sorted(int(match[1]) for match in found if match)


def choose(section: SweepSection, runs: Sequence[Run], *, arms: Sequence[str], seeds: Sequence[int]) -> list[Run]:
    """Some of the runs.

    Args:
        section: which arm starts from which.
        runs: all of them.
        arms: names; those that they start from come too. None: all.
        seeds: for each of these arms, whatever seeds the recipe gives it. None: those that the recipe gives it.

    Raises:
        RecipeError: there is no such arm.
    """
    unknown = [name for name in arms if name not in section.arms]
    if unknown:
        raise RecipeError(f"--arms: no arm {', '.join(unknown)}; known: {', '.join(section.arms)}")
    wanted = {*arms} or {*section.arms}
    wanted |= {arm.start for name, arm in section.arms.items() if name in wanted and arm.start}
    return [
        one for one in runs if one.arm in wanted and one.seed in (seeds or section.arms[one.arm].seeds or section.seeds)
    ]


def _run_of(section: SweepSection, name: str, seed: int, *, out: Path, load: Load) -> Run:
    arm = section.arms[name]
    start = out / arm.start / f"seed-{seed}" / "sft" / "model" if arm.start else None
    words = [f"{key}={seed}" for key in section.seeded] + list(arm.set)
    try:
        resolved = load([*words, *_starting(start), "sweep=null"])
        if start is not None and resolved.value.rl is not None:
            resolved = load([*words, *_starting(start), f"rl.model={json.dumps(str(start))}", "sweep=null"])
    except RecipeError as error:
        raise RecipeError(f"sweep.arms.{name}: {error}") from None
    return Run(name, seed, out / name / f"seed-{seed}", resolved, start)


def _starting(start: Path | None) -> list[str]:
    return ["distill=null", "sft=null"] if start is not None else []


def run(
    section: SweepSection, runs: Sequence[Run], *, every: Sequence[Run], out: Path, console: Console
) -> list[Scorecard]:
    """Do what is not done of `runs`; after each `OUT/sweep.json` and `OUT/table.md` are written anew.

    Args:
        section: arms and what they are compared with.
        runs: to do, in this order.
        every: all runs of the sweep; those that are finished are in the table, whoever did them.
        out: the sweep's folder.
        console: progress and notices.

    Returns:
        A scorecard over seeds for each arm that has a finished run.

    Raises:
        RunFolderError: a finished run has other settings than its arm; each is named.
    """
    for one in every:
        if one.is_done:  # where the other arm's model lies may change: a sweep's folder can be moved
            check_same_recipe(one.folder, one.resolved.resolved, but=["rl.model"] if one.start else ())
    for number, one in enumerate(runs, start=1):
        if one.is_done:
            continue
        console.say(f"{one.arm}, seed {one.seed} ({number} of {len(runs)}): {one.folder}")
        try:
            with Workshop(one.resolved.value) as shop:
                _run(Pipeline(one.resolved, out=one.folder, shop=shop, console=console), one)
            summarize(section, every, out=out)
        except RunInUseError:
            console.say(f"{one.folder}: another process is at it; left to that one")
    missing = [one for one in runs if not one.is_done]
    if missing:
        console.say(f"{len(missing)} of {len(runs)} runs are not finished; the table leaves them out")
    return summarize(section, every, out=out)


def _run(work: Pipeline, one: Run) -> None:
    recipe = one.resolved.value
    if recipe.distill is None and recipe.sft is None and recipe.rl is None:
        work.evaluate(one.folder, name=one.arm, model=one.start)
    else:
        pipeline.run(work)


# --- the result -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Arm:
    """What the finished runs of one arm gave."""

    name: str
    runs: Sequence[Run]
    card: Scorecard


def summarize(section: SweepSection, runs: Sequence[Run], *, out: Path) -> list[Scorecard]:
    """Figures over seeds and paired differences of all finished runs, written to `OUT/sweep.json` and `OUT/table.md`."""
    arms = {arm.name: arm for arm in _arms(runs)}
    differences = list(_differences(section, arms))
    found = {
        "version": VERSION,
        "arms": [
            {
                "name": arm.name,
                "seeds": [one.seed for one in arm.runs],
                "folders": [str(one.folder.relative_to(out)) for one in arm.runs],
                "evaluations": [str(evaluation_of(one.folder).relative_to(out)) for one in arm.runs],
                "settings": list(section.arms[arm.name].set),
                "scorecard": dataclasses.asdict(arm.card),
            }
            for arm in arms.values()
        ],
        "differences": [
            {key: dataclasses.asdict(value) if isinstance(value, Estimate) else value for key, value in one.items()}
            for one in differences
        ],
    }
    from .sweep_tables import markdown

    atomic.write_json(out / RESULT, found)
    cards = [arm.card for arm in arms.values()]
    atomic.write_text(
        out / "table.md", markdown(cards, {arm.name: len(arm.runs) for arm in arms.values()}, differences)
    )
    return cards


def _arms(runs: Sequence[Run]) -> Iterator[Arm]:
    for name in dict.fromkeys(one.arm for one in runs):
        done = [one for one in runs if one.arm == name and one.is_done]
        if done:
            cards = [_with_effort(read(evaluation_of(one.folder) / "scorecard.json"), one.folder) for one in done]
            yield Arm(name, done, card_over_seeds(cards, name=name))


def _with_effort(card: Scorecard, folder: Path) -> Scorecard:
    """With what SFT saw and how long the run trained."""
    seconds = sum(split_of_time(folder).get(step, 0.0) for step in ("sft", "rl"))
    found = [Estimate("training", seconds, n=1, unit="s")]
    if (folder / "sft" / "done.json").exists():
        sft = json.loads((folder / "sft" / "done.json").read_text(encoding="utf-8"))
        found += [
            Estimate("SFT trajectories", sft["seen"], n=1, unit="seen"),
            Estimate("SFT tokens", sft["tokens"], n=1, unit="seen"),
        ]
    return replace(card, estimates=(*card.estimates, *found))


def _differences(section: SweepSection, arms: dict[str, Arm]) -> Iterator[dict[str, Any]]:
    """Of each arm and the one it is compared with: the gain over seeds, and over the problems of all seeds together."""
    for arm, other in _compared(section, arms):
        theirs = {one.seed: one for one in other.runs}
        pairs = [(theirs[one.seed], one) for one in arm.runs if one.seed in theirs]
        if not pairs:
            continue
        try:
            yield {"arm": arm.name, "against": other.name, "seeds": len(pairs), **_gains(pairs)}
        except DataError as error:
            yield {"arm": arm.name, "against": other.name, "seeds": 0, "not compared": str(error)}


def _compared(section: SweepSection, arms: dict[str, Arm]) -> Iterator[tuple[Arm, Arm]]:
    for name, arm in arms.items():
        settings = section.arms[name]
        others = settings.against or (settings.start or next(iter(section.arms)),)
        yield from ((arm, arms[other]) for other in others if other in arms and other != name)


def _gains(pairs: Sequence[tuple[Run, Run]]) -> dict[str, Estimate]:
    before, after = ([_rows(one) for one in side] for side in zip(*pairs, strict=True))
    by_seed = [_gain(*pair) for pair in zip(before, after, strict=True)]
    return {
        "over seeds": over_seeds(by_seed, is_share=False),
        "over problems": _gain([row for rows in before for row in rows], [row for rows in after for row in rows]),
    }


def _rows(one: Run) -> list[Graded]:
    """Graded rows whose problems are told apart by seed, so that seeds can be pooled."""
    found = graded(evaluation_of(one.folder))
    return [replace(row, problem=replace(row.problem, id=f"{one.seed}:{row.problem.id}")) for row in found]


def _gain(before: Sequence[Graded], after: Sequence[Graded]) -> Estimate:
    return next(one for one in compare(before, after) if one.name == "difference")
