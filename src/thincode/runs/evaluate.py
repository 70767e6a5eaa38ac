"""Evaluate: sample a model on problems, grade, measure.

for each problem, for s < k:  τ ~ π(· | q), graded against the gold answer    → avg@k and everything else
greedy, temperatures:         the same once at temperature 0, and k times at each other temperature
outputs swapped, if asked:    the same, but shown what another problem's blocks printed: a model that thinks in code fails
failures injected, if asked:  the same, but the first j blocks fail, for j = 1, 2, …: does it recover?

A suite has several benchmarks, each sampled by its own protocol; its average is the unweighted mean of theirs.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .. import atomic
from ..engines import Context
from ..engines.scripted import Script
from ..errors import RunFolderError
from ..evaluation import Estimate
from ..evaluation.scorecard import measure, swap_partners, write
from ..grading import Graded
from ..problems import Problem
from ..runlog import RunFolder
from ..settings import Resolved, kind, leaves, read_yaml, write_yaml
from ._arms import Arm, Part, Sampler, parts_of
from .recipe import EvaluateSection
from .speakers import Speaker
from .workshop import ShowProgress, Workshop

__all__ = ["Part", "Subject", "gold_script", "grow", "parts_of", "run", "samples_key", "whole_problems"]


@dataclass(frozen=True)
class Subject:
    """What is evaluated: its name in the tables, and who speaks for it."""

    name: str
    speaker: Speaker


def run(
    section: EvaluateSection,
    *,
    parts: Sequence[Part],
    subject: Subject,
    folder: RunFolder,
    shop: Workshop,
    progress: ShowProgress,
) -> int:
    """Evaluate one subject; records that are there already are not sampled again.

    Args:
        section: arms and metrics.
        parts: the problems with their protocols, see `parts_of`.
        subject: who speaks.
        folder: gets `trajectories.jsonl` (and a folder for each further arm) and `scorecard.json`.
        shop: interpreter, event loop, format.
        progress: makes the line that shows how far it is.

    Returns:
        How many trajectories are lost after retry; figures that need them are undefined until the run is resumed.
    """
    sampler = Sampler(section, parts, name=subject.name, speaker=subject.speaker, shop=shop, progress=progress)
    main = sampler.sample(folder.path, Arm())
    others = [metric for metric in section.metrics if metric.name != "accuracy"]
    card = measure(main, others, name=subject.name)
    estimates, lost = [*_accuracy(Arm(), main, parts, section), *card.estimates], _lost(main)
    for arm in _further_arms(section, main, seed=shop.recipe.seed):
        rows = sampler.sample(folder.path, arm)
        lost += _lost(rows)
        if arm.fail_first:
            estimates += _injected(arm, rows)
        else:
            kept = whole_problems(rows, samples=parts[0].samples) if arm.shown is not None and len(parts) == 1 else rows
            estimates += [replace(one, name=f"{arm.name}/{one.name}") for one in _accuracy(arm, kept, parts, section)]
    write(replace(card, estimates=tuple(estimates)), folder.path / "scorecard.json")
    return lost


def _further_arms(section: EvaluateSection, main: Sequence[Graded], *, seed: int) -> list[Arm]:
    arms = [Arm("greedy", samples=1, temperature=0.0)] if section.greedy else []
    arms += [Arm(f"T={heat}", temperature=heat) for heat in section.temperatures]
    if section.swap_outputs:
        tag = "benchmark" if section.suite or section.benchmark else "family"
        arms.append(Arm("swapped", shown=_swapped(main, seed=seed, tag=tag)))
    return arms + [Arm(f"failing-{j}", fail_first=j) for j in range(1, section.injected_failures + 1)]


def _lost(rows: Sequence[Graded]) -> int:
    return sum(row.trajectory.lost for row in rows)


def _accuracy(arm: Arm, rows: Sequence[Graded], parts: Sequence[Part], section: EvaluateSection) -> list[Estimate]:
    """The accuracy metric; of a suite for each benchmark, and their unweighted mean."""
    settings = next((chosen.settings for chosen in section.metrics if chosen.name == "accuracy"), None)
    if settings is None:
        return []
    found: list[Estimate] = []
    means: list[float | None] = []
    for part in parts:
        groups = () if part.name else section.groups
        accuracy = kind("thincode.evaluation.metrics", "accuracy")
        accuracy = replace(accuracy, settings=replace(settings, k=arm.samples_of(part), groups=groups))
        ids = {problem.id for problem in part.problems}
        own = measure([row for row in rows if row.problem.id in ids], [accuracy], name=part.name).estimates
        means.append(own[0].value)
        found += [replace(one, name=f"{one.name}/benchmark={part.name}") if part.name else one for one in own]
    if len(parts) > 1:
        known = [mean for mean in means if mean is not None]
        whole = len(known) == len(means)
        note = "unweighted mean of the benchmarks; n counts them" if whole else "undefined: a benchmark's mean is"
        found.append(Estimate("average", sum(known) / len(known) if whole else None, n=len(parts), note=note))
    return found


def _injected(arm: Arm, rows: Sequence[Graded]) -> list[Estimate]:
    recovery = kind("thincode.evaluation.metrics", "recovery", deepest=arm.fail_first)
    last = measure(rows, [recovery], name=arm.name).estimates[-1]
    return [replace(last, name=f"injected/{last.name}")]


def whole_problems(rows: Sequence[Graded], *, samples: int) -> list[Graded]:
    """Rows of problems with all their samples: a trajectory without outputs, or without a partner, can't be swapped."""
    found = Counter(row.problem.id for row in rows)
    return [row for row in rows if found[row.problem.id] == samples]


def _swapped(rows: Sequence[Graded], *, seed: int, tag: str) -> dict[tuple[str, int], tuple[str, ...]]:
    """What to show each trajectory instead of its own outputs: those of a partner with the same tag and another answer."""
    shown = {}
    for index, partner in enumerate(swap_partners(rows, seed=seed, tag=tag)):
        outputs = tuple(segment.content for segment in rows[partner].trajectory.outputs) if partner is not None else ()
        if outputs:
            address = rows[index].trajectory.address
            shown[address.problem, address.sample] = outputs
    return shown


# --- more samples of a run that is there ------------------------------------------------------------------------------


def samples_key(section: EvaluateSection) -> tuple[str, int]:
    """Where a recipe says how many samples a problem has, and how many they are."""
    if section.suite is None:
        return "evaluate.samples", section.samples
    most = max(part.samples for part in section.suite.module.parts(section.suite.settings))
    return "evaluate.suite.samples", most


def grow(folder: Path, resolved: Resolved[Any], *, key: str) -> None:
    """Let the finished run in `folder` go on with more samples: its recipe is rewritten, what it sampled stays.

    Raises:
        RunFolderError: no run there, or one that differs in more than the number of samples.
    """
    recipe = folder / "recipe.resolved.yaml"
    if not recipe.is_file():
        raise RunFolderError(f"{folder}: no run there to add samples to; name its folder with --out DIR")
    before = dict(leaves(read_yaml(recipe.read_text(encoding="utf-8"), place=str(recipe))))
    now = dict(leaves(read_yaml(write_yaml(resolved.resolved), place="recipe")))
    differs = [name for name in dict.fromkeys([*before, *now]) if before.get(name) != now.get(name)]
    if [name for name in differs if name != key]:
        raise RunFolderError(
            f"{folder}: the run there differs in {', '.join(differs)}; only samples can be added to it"
        )
    if differs:
        # In this order: killed in between, the same command does the rest.
        (folder / "done.json").unlink(missing_ok=True)
        atomic.write_text(recipe, write_yaml(resolved.resolved))


def gold_script(problems: Sequence[Problem], format: Any) -> Script:
    """A script that prints each problem's gold answer in one block and boxes it: every file must score 100 %."""
    gold: Mapping[str, str] = {problem.id: problem.answer for problem in problems}

    def say(context: Context) -> str:
        answer = gold[context.question_id]
        turns = format.teacher_turns(
            "Print the known answer.", (), [f"print({json.dumps(answer, ensure_ascii=False)})"], answer
        )
        return str(turns[min(len(context.outputs), len(turns) - 1)])

    return say
