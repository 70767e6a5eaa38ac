"""RL: reinforcement learning with the interpreter in the loop, in stages (ThinC, Eq. 4 and 5).

for each step:
    sample G trajectories of each of P problems from π; blocks really run
    reward each; lost ones leave the update and the group's statistics
    advantages within the groups; a few clipped updates of π
    between stages: a new budget, and problems that π always solves are dropped
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..grading import Graded, Reward, combine, records
from ..grading.answers import Grader
from ..problems import Problem
from ..rollout import Budget
from ..rollout.episode import Ask
from ..runlog import Progress, RunFolder
from ..settings import kind
from ..training import Rollout, Update, curriculum
from ..training.curriculum import Curriculum, Group, Stage
from ..training.rows import updates
from ..trajectory import Address, EndReason, Trajectory
from ..trajectory.store import LOG, Store
from ..trajectory.tokenizer import Tokenizer
from . import health
from .recipe import RlSection
from .workshop import ShowProgress, Workshop, load_problems


def run(
    section: RlSection,
    *,
    start: Path,
    folder: RunFolder,
    shop: Workshop,
    progress: ShowProgress,
    say: Callable[[str], None],
) -> Path:
    """Train the policy in `start` through all stages.

    Args:
        section: problems, algorithm, stages, budgets.
        start: model folder, for example the one SFT made.
        folder: gets `metrics.jsonl`, `trajectories.jsonl`, `checkpoint/`, `model-STAGE/` after each stage, and `model/`. A
            run that stopped goes on from its last checkpoint.
        shop: interpreter, event loop, format.
        progress: makes the line that shows how far it is.
        say: told of a damaged checkpoint that was passed over.

    Returns:
        The folder of the last model.

    Raises:
        TooManyLostError: the interpreter lost too many blocks; the last checkpoint stands.
        UserError: loss or gradient is not finite.
    """
    from ..training import checkpoint, models
    from ..training.on_accelerate.rl import train_policy

    found = checkpoint.latest(folder.path / "checkpoint", on_warning=say)
    total = sum(stage.steps for stage in section.stages)
    with Grader() as grader, progress("rl", total=total, unit="steps", done=found.step if found else 0) as line:
        policy = _Policy(section, start, shop)
        loop = _Loop(section, folder=folder, shop=shop, policy=policy, grader=grader, line=line)
        loop.restore(found.state if found else None)
        train_policy(
            policy.model,
            updates=loop.updates,
            settings=section.policy,
            temperature=section.sampling.temperature,
            seed=shop.recipe.seed,
            folder=folder.path / "checkpoint",
            total_updates=None,
            resume_from=found,
            state=loop.state,
            on_update=loop.take_figures,
            tokenizer=policy.tokenizer,
        )
        models.save(policy.model, policy.tokenizer, folder.path / "model")
        loop.close()
    return folder.path / "model"


class _Policy:
    """The live model between its two users: the engine that samples from it and the trainer that updates it."""

    def __init__(self, section: RlSection, start: Path, shop: Workshop) -> None:
        from ..training import models

        self.tokenizer = Tokenizer.load(start)
        self.model = models.load(str(start))
        local = kind("thincode.engines", "local", rows=shop.recipe.live)
        self.engine: Any = local.module.open(
            local.settings, tokenizer=self.tokenizer, model=self.model, schedule=shop.recipe.schedule.value
        )
        self.crowd = shop.crowd(self.engine)


class _Loop:
    """The steps, one after another; what a checkpoint must remember is in `state`."""

    def __init__(
        self, section: RlSection, *, folder: RunFolder, shop: Workshop, policy: _Policy, grader: Grader, line: Progress
    ) -> None:
        self.section = section
        self.folder = folder
        self.shop = shop
        self.policy = policy
        self.grader = grader
        self.line = line
        self.problems = {problem.id: problem for problem in load_problems(section.problems)}
        self.curriculum = Curriculum(active=tuple(self.problems), seed=shop.recipe.seed)
        self.metrics = folder.log("metrics")
        self.store = Store(folder.path, keep_ids=section.keep_ids)
        self.figures: dict[str, Any] | None = None
        """Of the step that is open; None between steps."""
        self.train_began = 0.0

    def updates(self, first_step: int) -> Iterator[Update]:
        """The loop itself; transformers' Trainer makes each update that is yielded, then the loop goes on."""
        ends = [first_step_after(self.section.stages, number) for number in range(1, len(self.section.stages) + 1)]
        if first_step in ends:  # stopped between a stage's last checkpoint and what follows it
            self.end_stage(ends.index(first_step) + 1)
        for step in range(first_step, ends[-1]):
            number, stage, begins = self.stage_of(step)
            if begins:
                self.begin_stage(number, stage, step)
            self.validate(f"rl-{number}", step)
            rollouts = self.sample(f"rl-{number}", stage, step)
            self.train_began = time.monotonic()
            yield from updates(
                self.section.algorithm,
                rollouts,
                step=step,
                updates_per_step=self.section.updates_per_step,
                seed=self.shop.recipe.seed,
            )
            self.policy.engine.weights_changed()
            self.close_step()
            self.shop.lost.check()
            if step + 1 in ends:
                self.end_stage(number)

    # --- one step ---

    def sample(self, name: str, stage: Stage, step: int) -> list[Rollout]:
        """Sample, grade and reward the groups of one step, with refills where the algorithm misses groups."""
        began = time.monotonic()
        wanted = self.section.problems_per_step
        scored: list[tuple[Graded, Reward]] = []
        rollouts: list[Rollout] = []
        refills = 0
        while True:
            asked, self.curriculum = curriculum.draw(self.curriculum, wanted)
            new = self.ask(name, stage, step, asked, seen={graded.problem.id for graded, _ in scored})
            scored += new
            rollouts = self.rollouts(scored)
            missing = self.section.algorithm.module.select(self.section.algorithm.settings, rollouts).missing_groups
            if not missing or not new or refills >= self.section.max_refills:
                break
            refills += 1
            wanted = missing
        self.curriculum = curriculum.record(self.curriculum, _groups(scored, step))
        self.figures = {
            "stage": name,
            "step": step,
            "refills": refills,
            **health.of_step(scored),
            "sample_s": round(time.monotonic() - began, 3),
        }
        return rollouts

    def ask(
        self, name: str, stage: Stage, step: int, asked: Sequence[str], seen: set[str]
    ) -> list[tuple[Graded, Reward]]:
        """G trajectories of each problem asked, graded and rewarded, in the order asked."""
        asks = [
            Ask(Address(self.shop.recipe.seed, name, step, problem, sample), self.problems[problem].question)
            for problem in asked
            if problem not in seen
            for sample in range(self.section.samples)
        ]
        budget = Budget(context_tokens=stage.context_tokens, calls=stage.calls)
        setting = self.shop.setting(tokenizer=self.policy.tokenizer, budget=budget, sampling=self.section.sampling)
        rewards = [(weighted.reward, weighted.weight) for weighted in self.section.rewards]
        scored = []
        for trajectory in self.policy.crowd.roll(asks, setting):
            graded = self.grade(trajectory)
            reward = combine(rewards, graded)
            notes = {**records.annotations(graded), "reward": {"total": reward.total, "parts": dict(reward.parts)}}
            self.store.append(trajectory, notes)
            scored.append((graded, reward))
        return scored

    def rollouts(self, scored: Sequence[tuple[Graded, Reward]]) -> list[Rollout]:
        """What the algorithm sees: lost trajectories are gone, from the update and from the group's statistics."""
        groups: dict[str, int] = {}
        found = []
        for graded, reward in scored:
            trajectory = graded.trajectory
            if trajectory.lost or trajectory.tokens is None:
                continue
            truncated = trajectory.end in (EndReason.CONTEXT, EndReason.SECONDS)
            found.append(
                Rollout(
                    tokens=trajectory.tokens,
                    group=groups.setdefault(graded.problem.id, len(groups)),
                    reward=reward.total,
                    in_update=self.section.truncated_in_update or not truncated,
                    features=health.features(graded),
                )
            )
        return found

    def grade(self, trajectory: Trajectory) -> Graded:
        problem: Problem = self.problems[trajectory.address.problem]
        return Graded(problem, trajectory, self.grader.grade(trajectory.answer, problem.answer))

    def take_figures(self, figures: Mapping[str, float]) -> None:
        """What the trainer says of an update of the open step."""
        if self.figures is not None:
            self.figures.update({key: value for key, value in figures.items() if key not in ("step", "update")})

    def close_step(self) -> None:
        """Write the open step's line; a checkpoint asks for it before it is sealed, the loop after."""
        if self.figures is None:
            return
        self.metrics.append({**self.figures, "train_s": round(time.monotonic() - self.train_began, 3)})
        self.line.advance(1, stage=self.figures["stage"], reward=self.figures.get("reward_mean"))
        self.figures = None

    # --- stages and validation ---

    def stage_of(self, step: int) -> tuple[int, Stage, bool]:
        """Number (from 1) and settings of the stage a step belongs to, and whether the step is its first."""
        first = 0
        for number, stage in enumerate(self.section.stages, start=1):
            if step < first + stage.steps:
                return number, stage, step == first
            first += stage.steps
        raise IndexError(step)

    def begin_stage(self, number: int, stage: Stage, step: int) -> None:
        """Drop what the stages before it solved, and write that down."""
        self.curriculum, dropped = curriculum.begin(self.curriculum, stage)
        active = len(self.curriculum.active)
        self.metrics.append(
            {
                "stage": f"rl-{number}",
                "step": step,
                "curriculum": {"active": active, "dropped": len(dropped), "names": dropped},
            }
        )

    def end_stage(self, number: int) -> None:
        """Keep the model of the stage, for evaluation; measure the last one."""
        from ..training import models

        models.save(self.policy.model, self.policy.tokenizer, self.folder.path / f"model-rl-{number}")
        if number == len(self.section.stages):
            self.validate(f"rl-{number}", first_step_after(self.section.stages, number), last=True)

    def validate(self, name: str, step: int, *, last: bool = False) -> None:
        """Held-out problems at the full budget, every n steps."""
        section = self.section.validation
        if section is None or (step % section.every and not last):
            return
        problems = {problem.id: problem for problem in load_problems(section.problems)}
        full = self.section.stages[-1]
        setting = self.shop.setting(
            tokenizer=self.policy.tokenizer,
            budget=Budget(context_tokens=full.context_tokens, calls=full.calls),
            sampling=section.sampling,
        )
        seed = self.shop.recipe.seed
        asks = [Ask(Address(seed, f"{name}/validation", step, key, 0), p.question) for key, p in problems.items()]
        rows = []
        for trajectory in self.policy.crowd.roll(asks, setting):
            problem = problems[trajectory.address.problem]
            graded = Graded(problem, trajectory, self.grader.grade(trajectory.answer, problem.answer))
            self.store.append(trajectory, records.annotations(graded))
            rows.append((graded, Reward(float(graded.grade.correct))))
        self.metrics.append({"stage": name, "step": step, "validation": health.of_validation(rows)})

    # --- checkpoints ---

    def state(self) -> dict[str, Any]:
        """What a checkpoint must remember: the curriculum, and how long each log was."""
        self.close_step()
        return {"curriculum": self.curriculum.state(), "logs": self.folder.commit(), "store": self.store.sync()}

    def restore(self, state: Mapping[str, Any] | None) -> None:
        """Go back to a checkpoint's state; without one, to the beginning."""
        self.metrics.truncate(state["logs"]["metrics"] if state else 0)
        self.store.truncate(state["store"] if state else {LOG: 0})
        if state:
            self.curriculum = curriculum.restore(state["curriculum"])

    def close(self) -> None:
        """Close the store and free the engine."""
        self.store.sync()
        self.store.close()
        self.shop.close_engine(self.policy.engine)


def first_step_after(stages: Sequence[Stage], number: int) -> int:
    """The step at which stage `number` (from 1) is over."""
    return sum(stage.steps for stage in stages[:number])


def _groups(scored: Sequence[tuple[Graded, Reward]], step: int) -> dict[str, Group]:
    counted: dict[str, Group] = {}
    for graded, _ in scored:
        if not graded.trajectory.lost:
            before = counted.get(graded.problem.id, Group(step, 0, 0))
            right = before.right + int(graded.grade.correct)
            counted[graded.problem.id] = replace(before, right=right, samples=before.samples + 1)
    return counted
