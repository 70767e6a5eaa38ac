"""RL: reinforcement learning with the interpreter in the loop, in stages (ThinC, Eq. 4 and 5).

for each step:
    sample G trajectories of each of P problems from π; blocks really run
    reward each; lost ones leave the update and the group's statistics
    advantages within the groups; a few clipped updates of π
    between stages: a new budget, and problems that π always solves are dropped
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from .. import atomic
from ..engines import Sampling
from ..errors import AlarmError, ThincodeError, TooManyLostError
from ..grading import records
from ..problems import Problem
from ..rollout import Budget
from ..rollout.episode import Ask
from ..runlog import Progress, RunFolder
from ..settings import Kind, dump
from ..training import Rollout, Update, curriculum
from ..training.curriculum import AtStage, Curriculum, DifficultyFilter, Measure, Stage
from ..training.rows import updates
from ..trajectory import Address
from ..trajectory.store import LOG, Store
from . import health, validation
from .alarms import Alarms
from .policy import Policy
from .recipe import RlSection
from .rollouts import Judge, Scored, groups_of, to_rollouts
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
        folder: gets `metrics.jsonl`, `trajectories.jsonl`, `checkpoint/`, `model-STAGE/` after each stage, `filter-STAGE.json`
            where one filters, and `model/`. A run that stopped goes on from its last checkpoint.
        shop: interpreter, event loop, format.
        progress: makes the line that shows how far it is.
        say: told of a damaged checkpoint that was passed over.

    Returns:
        The folder of the last model.

    Raises:
        TooManyLostError: the interpreter lost too many blocks; a checkpoint stands behind the last whole step.
        AlarmError: an alarm rang, with a checkpoint as above; or loss or gradient is not finite, and the last checkpoint stands.
    """
    from ..training import checkpoint, models
    from ..training.on_accelerate.processes import agree, refuse_shards
    from ..training.on_accelerate.rl import train_policy
    from ..training.on_accelerate.tracking import Trackers

    refuse_shards("rl")
    found = checkpoint.latest(folder.path / "checkpoint", on_warning=say)
    agree((folder.path, found))
    total = sum(stage.steps for stage in section.stages)
    trackers = Trackers(section.trackers, folder=folder.path, recipe=dump(section))
    rewards = [(weighted.reward, weighted.weight) for weighted in section.rewards]
    with Judge(rewards, section.masks) as judge, progress("rl", total=total, unit="steps", done=_done(found)) as line:
        policy = Policy(section, start, shop)
        loop = _Loop(section, folder=folder, shop=shop, policy=policy, judge=judge, line=line, trackers=trackers)
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
            finished=lambda: loop.stopped_by is None,
            on_update=loop.take_figures,
            tokenizer=policy.tokenizer,
        )
        loop.close()
        if loop.stopped_by is not None:
            raise loop.stopped_by
        models.save(policy.model, policy.tokenizer, folder.path / "model")
    return folder.path / "model"


def _done(found: Any) -> int:
    return found.step if found else 0


class _Loop:
    """The steps, one after another; what a checkpoint must remember is in `state`."""

    def __init__(
        self,
        section: RlSection,
        *,
        folder: RunFolder,
        shop: Workshop,
        policy: Policy,
        judge: Judge,
        line: Progress,
        trackers: Any,
    ) -> None:
        self.section = section
        self.folder = folder
        self.shop = shop
        self.policy = policy
        self.judge = judge
        self.line = line
        self.trackers = trackers
        self.problems = {problem.id: problem for problem in load_problems(section.problems)}
        self.held_out = validation.problems(section.validation) if section.validation else {}
        self.curriculum = Curriculum(active=tuple(self.problems), seed=shop.recipe.seed)
        self.alarms = Alarms(section.alarms)
        self.metrics = folder.log("metrics")
        self.store = Store(folder.path, keep_ids=section.keep_ids)
        self.stopped_by: ThincodeError | None = None
        """What ended the run before its time."""
        self.figures: dict[str, Any] | None = None
        """Of the step that is open; None between steps."""
        self.closed: dict[str, Any] = {}
        """Of the last step that was closed."""
        self.mark: dict[str, Any] = {}
        """The state behind the last whole step."""
        self.train_began = 0.0
        self.validated: int | None = None
        """The step that was validated last."""

    @property
    def stage(self) -> Stage:
        """The stage that stands."""
        return self.section.stages[self.curriculum.stage - 1]

    @property
    def name(self) -> str:
        """Of the stage, in addresses, logs and folders."""
        return f"rl-{self.curriculum.stage}"

    @property
    def sampling(self) -> Sampling:
        """The stage's own, or the section's."""
        return self.stage.sampling or self.section.sampling

    @property
    def algorithm(self) -> Kind:
        """The stage's own, or the section's."""
        return self.stage.algorithm or self.section.algorithm

    def updates(self, first_step: int) -> Iterator[Update]:
        """The steps, until the last stage is over, or too much is lost, or an alarm rings."""
        try:
            yield from self.steps(first_step)
        except (TooManyLostError, AlarmError) as error:
            # Half a step must not be learned from: what is left of it would be a choice of those that ran no code.
            self.stopped_by = error
            self.restore(self.mark)

    def steps(self, step: int) -> Iterator[Update]:
        """The loop itself; transformers' Trainer makes each update that is yielded, then the loop goes on."""
        while True:
            if curriculum.is_over(self.curriculum, self.section.stages, step):
                if self.curriculum.stage:
                    self.end_stage(step)
                if self.curriculum.stage == len(self.section.stages):
                    return
                self.begin_stage(step)
            self.validate(step)
            if curriculum.is_over(self.curriculum, self.section.stages, step):
                continue  # it stops early
            yield from self.step(step)
            step += 1

    # --- one step ---

    def step(self, step: int) -> Iterator[Update]:
        """Sample, learn, write down."""
        rollouts = self.policy.complete(self.sample(step), self.algorithm, heat=self.sampling.temperature)
        self.train_began = time.monotonic()
        made = updates(
            self.algorithm,
            rollouts,
            step=step,
            updates_per_step=self.section.updates_per_step,
            seed=self.shop.recipe.seed,
        )
        fresh = self.stage.optimizer is AtStage.RESET and step == self.curriculum.first
        for number, update in enumerate(made):
            yield replace(update, temperature=self.sampling.temperature, fresh_optimizer=fresh and number == 0)
        self.policy.publish()
        figures = self.close_step()
        self.mark = self.state()
        self.shop.lost.check()
        self.alarms.check(figures)

    def sample(self, step: int) -> list[Rollout]:
        """Sample, grade and reward the groups of one step, with refills where the algorithm misses groups."""
        began = time.monotonic()
        wanted = self.section.problems_per_step
        scored: list[Scored] = []
        refills = 0
        while True:
            asked, self.curriculum = curriculum.draw(self.curriculum, wanted)
            seen = {one.graded.problem.id for one in scored}
            new = self.ask(self.name, step, [name for name in asked if name not in seen], samples=self.section.samples)
            scored += new
            rollouts = to_rollouts(scored)
            missing = self.algorithm.module.select(self.algorithm.settings, rollouts).missing_groups
            if not missing or not new or refills >= self.section.max_refills:
                break
            refills += 1
            wanted = missing
        self.curriculum = curriculum.record(self.curriculum, groups_of(scored, step))
        seconds = time.monotonic() - began
        figures = health.of_step([(one.graded, one.reward) for one in scored])
        tokens = sum(len(one.tokens) - one.tokens.prompt_length for one in rollouts)
        self.figures = {
            "stage": self.name,
            "step": step,
            "calls_budget": self.stage.calls_at(step),
            "refills": refills,
            **figures,
            "sampled_tokens_per_s": round(tokens / max(seconds, 1e-9), 1),
            "sample_s": round(seconds, 3),
        }
        return rollouts

    def ask(self, stage: str, step: int, names: Sequence[str], *, samples: int) -> list[Scored]:
        """Trajectories of each problem named, graded, rewarded and stored, in that order."""
        asks = self.asks(stage, step, [self.problems[name] for name in names], samples=samples)
        return self.roll(asks, self.problems, calls=self.stage.calls_at(step), context=self.stage.context_tokens)

    def asks(self, stage: str, step: int, problems: Iterable[Problem], *, samples: int) -> list[Ask]:
        """So many samples of each problem."""
        seed = self.shop.recipe.seed
        return [
            Ask(Address(seed, stage, step, problem.id, sample), problem.question)
            for problem in problems
            for sample in range(samples)
        ]

    def roll(
        self,
        asks: Sequence[Ask],
        problems: Mapping[str, Problem],
        *,
        calls: int,
        context: int,
        sampling: Sampling | None = None,
    ) -> list[Scored]:
        """Make, judge and store what is asked."""
        setting = self.shop.setting(
            tokenizer=self.policy.tokenizer,
            budget=Budget(context_tokens=context, calls=calls),
            sampling=sampling or self.sampling,
        )
        scored = self.judge.roll(self.policy.crowd, asks, setting, problems.__getitem__)
        for one in scored:
            earned = {"total": one.reward.total, "parts": dict(one.reward.parts)}
            notes = {**records.annotations(one.graded), "reward": earned, "fate": one.fate.value}
            self.store.append(one.graded.trajectory, notes)
        return scored

    def take_figures(self, figures: Mapping[str, float]) -> None:
        """What the trainer says of an update of the open step; the first one's mismatch is the sampler's own."""
        if self.figures is not None:
            mismatch = self.figures.get("mismatch")
            self.figures.update({key: value for key, value in figures.items() if key not in ("step", "update")})
            if mismatch is not None:
                self.figures["mismatch"] = mismatch

    def close_step(self) -> dict[str, Any]:
        """Write the open step's line; a checkpoint asks for it before it is sealed, the loop after."""
        if self.figures is None:
            return self.closed
        self.closed = {**self.figures, "train_s": round(time.monotonic() - self.train_began, 3)}
        self.alarms.count(self.closed)
        self.write(self.closed)
        shown = {key: self.closed.get(key) for key in ("reward_mean", "accuracy", "entropy")}
        self.line.advance(1, stage=self.name, **{key: value for key, value in shown.items() if value is not None})
        self.figures = None
        return self.closed

    def write(self, record: dict[str, Any]) -> None:
        """One line of metrics, to the trackers too."""
        self.metrics.append(record)
        self.trackers.log(record, step=record["step"])

    # --- stages and validation ---

    def begin_stage(self, step: int) -> None:
        """The next stage; its filter leaves out what the policy can do already, and that is written down."""
        number = self.curriculum.stage + 1
        filter = self.section.stages[number - 1].filter
        if filter is not None and filter.measure is Measure.FRESH_N:
            self.measure(number, step, filter)
        filtered = curriculum.judge(self.curriculum, filter) if filter is not None else None
        if filtered is not None:
            found = curriculum.report(self.curriculum, filtered)
            atomic.write_json(self.folder.path / f"filter-rl-{number}.json", {"step": step, **found})
        self.curriculum = curriculum.begin(self.curriculum, step, filtered)
        dropped = {reason: len(names) for reason, names in filtered.dropped.items()} if filtered else {}
        active = {"active": len(self.curriculum.active), "dropped": sum(dropped.values()), **dropped}
        self.write({"stage": self.name, "step": step, "curriculum": active})
        self.mark = self.mark or self.state()

    def measure(self, number: int, step: int, filter: DifficultyFilter) -> None:
        """New samples of every active problem, as the stage will ask them, for its filter."""
        stage = self.section.stages[number - 1]
        active = [self.problems[name] for name in self.curriculum.active]
        scored = self.roll(
            self.asks(f"rl-{number}/filter", step, active, samples=filter.samples),
            self.problems,
            calls=stage.calls_at(step),
            context=stage.context_tokens,
            sampling=stage.sampling or self.section.sampling,
        )
        self.curriculum = curriculum.record(self.curriculum, groups_of(scored, step))

    def end_stage(self, step: int) -> None:
        """Keep the model of the stage, for evaluation; measure the last one."""
        from ..training import models

        models.save(self.policy.model, self.policy.tokenizer, self.folder.path / f"model-{self.name}")
        if self.curriculum.stage == len(self.section.stages):
            self.validate(step, last=True)

    def validate(self, step: int, *, last: bool = False) -> None:
        """Held-out problems at the full budget, every n steps."""
        section = self.section.validation
        if section is None or self.validated == step or (step % section.every and not last):
            return
        self.validated = step
        began = time.monotonic()
        full = self.section.stages[-1]
        asks = self.asks(f"{self.name}/validation", step, self.held_out.values(), samples=section.samples)
        scored = self.roll(
            asks, self.held_out, calls=full.most_calls, context=full.context_tokens, sampling=section.sampling
        )
        figures = validation.figures(section, scored)
        figures["validate_s"] = round(time.monotonic() - began, 3)
        self.write({"stage": self.name, "step": step, "validation": figures})
        stop, accuracy = self.stage.early_stop, figures["accuracy"]
        if stop is not None and accuracy is not None:
            self.curriculum = curriculum.validated(self.curriculum, accuracy, stop)

    # --- checkpoints ---

    def state(self) -> dict[str, Any]:
        """What a checkpoint must remember: curriculum, alarms, and how long each log was."""
        self.close_step()
        return {
            "curriculum": self.curriculum.state(),
            "alarms": self.alarms.state(),
            "logs": self.folder.commit(),
            "store": self.store.sync(),
        }

    def restore(self, state: Mapping[str, Any] | None) -> None:
        """Go back to a checkpoint's state; without one, to the beginning."""
        self.metrics.truncate(state["logs"]["metrics"] if state else 0)
        self.store.truncate(state["store"] if state else {LOG: 0})
        self.figures = None
        if state:
            self.curriculum = curriculum.restore(state["curriculum"])
            self.alarms.restore(state["alarms"])
            self.mark = dict(state)

    def close(self) -> None:
        """Close the store and free the engine."""
        self.store.sync()
        self.store.close()
        self.trackers.close()
        self.shop.close_engine(self.policy.engine)
