"""Evaluate: sample a model on problems, grade, measure.

for each problem, for s < k:  τ ~ π(· | q), graded against the gold answer    → avg@k and everything else
greedy, if asked:             the same once at temperature 0
outputs swapped, if asked:    the same, but shown what another problem's blocks printed: a model that thinks in code fails
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..engines import Context, Sampling
from ..engines.scripted import Script
from ..evaluation import Estimate, Scorecard
from ..evaluation.scorecard import measure, swap_partners, write
from ..grading import Graded, records
from ..grading.answers import Grader
from ..problems import Problem
from ..rollout.episode import Ask
from ..runlog import RunFolder
from ..settings import Kind, kind
from ..trajectory import Address, Trajectory
from ..trajectory.store import Store
from .recipe import EvaluateSection
from .speakers import Speaker
from .workshop import ShowProgress, Workshop, load_problems


@dataclass(frozen=True)
class Subject:
    """What is evaluated: its name in the tables, and who speaks for it."""

    name: str
    speaker: Speaker


def run(
    section: EvaluateSection,
    *,
    subject: Subject,
    folder: RunFolder,
    shop: Workshop,
    progress: ShowProgress,
    problems: Sequence[Problem] | None = None,
) -> Scorecard:
    """Evaluate one subject; records that are there already are not sampled again.

    Args:
        section: problems, samples, sampling, metrics.
        subject: who speaks.
        folder: gets `trajectories.jsonl` (and `greedy/`, `swapped/`) and `scorecard.json`.
        shop: interpreter, event loop, format.
        progress: makes the line that shows how far it is.
        problems: instead of the section's own.
    """
    asked = {problem.id: problem for problem in (load_problems(section.problems) if problems is None else problems)}
    arm = _Arm(section, subject, shop, progress, asked)
    rows = arm.sample(folder.path, "", samples=section.samples, sampling=section.sampling)
    estimates = list(measure(rows, with_groups(section), name=subject.name).estimates)
    if section.greedy:
        greedy = arm.sample(
            folder.path / "greedy", "greedy", samples=1, sampling=replace(section.sampling, temperature=0.0)
        )
        estimates += _named("greedy", greedy, section)
    if section.swap_outputs:
        shown = _swapped(rows, seed=shop.recipe.seed)
        swapped = arm.sample(
            folder.path / "swapped", "swapped", samples=section.samples, sampling=section.sampling, shown=shown
        )
        estimates += _named("swapped", whole_problems(swapped, samples=section.samples), section)
    card = measure(rows, with_groups(section), name=subject.name)
    card = replace(card, estimates=tuple(estimates))
    write(card, folder.path / "scorecard.json")
    return card


class _Arm:
    """Samples one arm after another of an evaluation."""

    def __init__(
        self,
        section: EvaluateSection,
        subject: Subject,
        shop: Workshop,
        progress: ShowProgress,
        problems: Mapping[str, Problem],
    ) -> None:
        self.section = section
        self.subject = subject
        self.shop = shop
        self.progress = progress
        self.problems = problems

    def sample(
        self,
        folder: Path,
        arm: str,
        *,
        samples: int,
        sampling: Sampling,
        shown: Mapping[tuple[str, int], tuple[str, ...]] | None = None,
    ) -> list[Graded]:
        """Graded rows of one arm, those that were there and those sampled now.

        Args:
            folder: the arm's own.
            arm: its name in addresses; empty for the main one.
            samples: a problem.
            sampling: temperature and top-p.
            shown: what to show instead of real outputs, by (problem, sample); those that are missing are left out.
        """
        stage = "/".join(part for part in ("evaluate", self.subject.name, arm) if part)
        versions = {**self.subject.speaker.versions, "model": self.subject.name}
        asks = []
        for problem in self.problems.values():
            for sample in range(samples):
                if shown is None or (problem.id, sample) in shown:
                    address = Address(self.shop.recipe.seed, stage, 0, problem.id, sample)
                    outputs = shown[problem.id, sample] if shown is not None else None
                    asks.append(Ask(address, problem.question, shown=outputs, versions=versions))
        speaker = self.subject.speaker
        setting = self.shop.setting(
            tokenizer=speaker.tokenizer, budget=self.section.budget, sampling=sampling, shots=speaker.shots
        )
        with Store(folder, keep_ids=False) as store, Grader() as grader:
            there = store.keys()

            def grade(trajectory: Trajectory) -> None:
                problem = self.problems[trajectory.address.problem]
                graded = Graded(problem, trajectory, grader.grade(trajectory.answer, problem.answer))
                if trajectory.address.key not in there:
                    store.append(trajectory, records.annotations(graded))
                    line.advance(1)

            with self.progress(stage, total=len(asks), unit="trajectories", done=len(there)) as line:
                speaker.crowd.roll(self._missing(asks, there), setting, on_finished=grade)
            store.sync()
            return [records.graded_from_record(record.trajectory, record.annotations) for record in store.records()]

    def _missing(self, asks: Sequence[Ask], there: set[tuple[str, int, str, int]]) -> list[Ask]:
        """The asks still to sample; in the deterministic schedule whole cohorts, whose membership must not change."""
        if not self.shop.deterministic:
            return [ask for ask in asks if ask.address.key not in there]
        size = self.shop.recipe.live
        cohorts = [asks[first : first + size] for first in range(0, len(asks), size)]
        return [ask for cohort in cohorts if any(a.address.key not in there for a in cohort) for ask in cohort]


def with_groups(section: EvaluateSection) -> list[Kind]:
    """The section's metrics, accuracy split by its tags."""
    return [
        kind(chosen.room, chosen.name, k=section.samples, groups=list(section.groups))
        if chosen.name == "accuracy"
        else chosen
        for chosen in section.metrics
    ]


def whole_problems(rows: Sequence[Graded], *, samples: int) -> list[Graded]:
    """Rows of problems with all their samples: a trajectory without outputs, or without a partner, can't be swapped."""
    found = Counter(row.problem.id for row in rows)
    return [row for row in rows if found[row.problem.id] == samples]


def _named(arm: str, rows: Sequence[Graded], section: EvaluateSection) -> list[Estimate]:
    """Accuracy of an arm, with the arm's name before each estimate's."""
    samples = 1 if arm == "greedy" else section.samples
    accuracy = kind("thincode.evaluation.metrics", "accuracy", k=samples, groups=list(section.groups))
    return [
        replace(estimate, name=f"{arm}/{estimate.name}") for estimate in measure(rows, [accuracy], name=arm).estimates
    ]


def _swapped(rows: Sequence[Graded], *, seed: int) -> dict[tuple[str, int], tuple[str, ...]]:
    """What to show each trajectory instead of its own outputs: those of a partner of its family with another answer."""
    shown = {}
    for index, partner in enumerate(swap_partners(rows, seed=seed)):
        outputs = tuple(segment.content for segment in rows[partner].trajectory.outputs) if partner is not None else ()
        if outputs:
            address = rows[index].trajectory.address
            shown[address.problem, address.sample] = outputs
    return shown


def gold_script(problems: Sequence[Problem], format: Any) -> Script:
    """A script that prints each problem's gold answer in one block and boxes it: every file must score 100 %."""
    gold = {problem.id: problem.answer for problem in problems}

    def say(context: Context) -> str:
        answer = gold[context.question_id]
        turns = format.teacher_turns("Print the known answer.", (), [f"print({answer!r})"], answer)
        return str(turns[min(len(context.outputs), len(turns) - 1)])

    return say
