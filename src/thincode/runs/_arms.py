"""What an evaluation samples: its parts (a benchmark with its protocol) and its arms (the same problems, asked another way)."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..engines import Sampling
from ..grading import Grade, Graded, GradeReason, records
from ..grading.answers import Grader
from ..problems import Problem
from ..rollout import Budget
from ..rollout.episode import Ask, Setting
from ..settings import Kind
from ..trajectory import Address, Trajectory
from ..trajectory.store import Store
from .recipe import EvaluateSection, Switch
from .speakers import Speaker
from .workshop import ShowProgress, Workshop, load_problems

LOST = "lost"
"""Folder of trajectories that are still lost after retry: not part of the records, run again on --resume."""


@dataclass(frozen=True)
class Part:
    """Problems that are sampled alike."""

    name: str
    """Of the benchmark; empty where there is only one part."""
    problems: Sequence[Problem]
    samples: int
    sampling: Sampling
    budget: Budget


def parts_of(section: EvaluateSection, *, limit: int | None = None) -> list[Part]:
    """What a recipe's section asks for: a suite, a benchmark, or problems of any source."""
    if section.suite is None:
        source: Kind = section.benchmark or section.problems
        budget, problems = section.budget, load_problems(source)[:limit]
        return [Part("", problems, section.samples, section.sampling, budget)]
    return [
        Part(
            part.name,
            load_problems(part.benchmark)[:limit],
            part.samples,
            replace(section.sampling, temperature=part.temperature, top_p=part.top_p),
            replace(
                section.budget,
                context_tokens=part.context_tokens,
                turn_tokens=part.turn_tokens,
                calls=part.calls,
            ),
        )
        for part in section.suite.module.parts(section.suite.settings)
    ]


@dataclass(frozen=True)
class Arm:
    """One way to ask."""

    name: str = ""
    """In addresses, folders and before an estimate's name; empty for the main one."""
    samples: int | None = None
    """Instead of each part's."""
    temperature: float | None = None
    """Instead of each part's."""
    shown: Mapping[tuple[str, int], tuple[str, ...]] | None = None
    """What to show instead of real outputs, by (problem, sample); those that are missing are left out."""
    fail_first: int = 0
    """How many first blocks are made to fail."""

    def samples_of(self, part: Part) -> int:
        """Samples a problem of a part."""
        return part.samples if self.samples is None else self.samples


class Sampler:
    """Samples one arm after another of an evaluation."""

    def __init__(
        self,
        section: EvaluateSection,
        parts: Sequence[Part],
        *,
        name: str,
        speaker: Speaker,
        shop: Workshop,
        progress: ShowProgress,
    ) -> None:
        """Bind what all arms share."""
        self._section, self._parts = section, parts
        self._name, self._speaker, self._shop, self._progress = name, speaker, shop, progress

    def sample(self, folder: Path, arm: Arm) -> list[Graded]:
        """Graded rows of one arm, those that were there and those sampled now; lost ones come last.

        A lost trajectory is not kept: its address is asked again when the evaluation is resumed, so that there are exactly k.
        """
        folder = folder / arm.name
        shutil.rmtree(folder / LOST, ignore_errors=True)
        lost: list[Graded] = []
        with Store(folder, keep_ids=False) as store, Grader() as grader:
            for part in self._parts:
                lost += self._sample_part(part, arm, store, grader)
            store.sync()
            kept = [records.graded_from_record(one.trajectory, one.annotations) for one in store.records()]
        if lost:
            with Store(folder / LOST, keep_ids=False) as store:
                for row in lost:
                    store.append(row.trajectory, records.annotations(row))
        return kept + lost

    def _sample_part(self, part: Part, arm: Arm, store: Store, grader: Grader) -> list[Graded]:
        asked = {problem.id: problem for problem in part.problems}
        asks, there, lost = self._asks(part, arm), store.keys(), []

        def grade(trajectory: Trajectory) -> None:
            problem = asked[trajectory.address.problem]
            if trajectory.lost:
                lost.append(Graded(problem, trajectory, Grade(False, GradeReason.NO_ANSWER)))
            elif trajectory.address.key not in there:
                graded = Graded(problem, trajectory, grader.grade(trajectory.answer, problem.answer))
                store.append(trajectory, records.annotations(graded))
                line.advance(1)

        done = sum(ask.address.key in there for ask in asks)
        title = " ".join(word for word in (self._stage(arm), part.name) if word)
        with self._progress(title, total=len(asks), unit="trajectories", done=done) as line:
            self._speaker.crowd.roll(self._missing(asks, there), self._setting(part, arm), on_finished=grade)
        return lost

    def _stage(self, arm: Arm) -> str:
        return "/".join(word for word in ("evaluate", self._name, arm.name) if word)

    def _asks(self, part: Part, arm: Arm) -> list[Ask]:
        versions = {**self._speaker.versions, "model": self._name}
        if self._section.interpreter is Switch.OFF:
            versions["interpreter"] = Switch.OFF.value
        seed, stage = self._shop.recipe.seed, self._stage(arm)
        return [
            Ask(
                Address(seed, stage, 0, problem.id, sample),
                problem.question,
                shown=arm.shown[problem.id, sample] if arm.shown is not None else None,
                fail_first=arm.fail_first,
                versions=versions,
            )
            for problem in part.problems
            for sample in range(arm.samples_of(part))
            if arm.shown is None or (problem.id, sample) in arm.shown
        ]

    def _setting(self, part: Part, arm: Arm) -> Setting:
        temperature = part.sampling.temperature if arm.temperature is None else arm.temperature
        return self._shop.setting(
            tokenizer=self._speaker.tokenizer,
            budget=part.budget,
            sampling=replace(part.sampling, temperature=temperature),
            shots=self._speaker.shots,
            executes=self._section.interpreter is Switch.ON,
        )

    def _missing(self, asks: Sequence[Ask], there: set[tuple[str, int, str, int]]) -> list[Ask]:
        """The asks still to sample; in the deterministic schedule whole cohorts, whose membership must not change."""
        if not self._shop.deterministic:
            return [ask for ask in asks if ask.address.key not in there]
        size = self._shop.recipe.live
        cohorts = [asks[first : first + size] for first in range(0, len(asks), size)]
        return [ask for cohort in cohorts if any(a.address.key not in there for a in cohort) for ask in cohort]
