"""What a recipe holds: what all steps share, and a section for each step.

A recipe with one section serves that verb; `thincode run` does all sections there are, in the order of the pipeline.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import field
from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field

from .._mistakes import choices
from ..engines import Sampling
from ..interpreter import Limits, language_of
from ..interpreter.presets import AS_IT_IS, PRESETS, Keeps
from ..rollout import Budget, Schedule
from ..settings import In, Kind, NonNegativeFloat, NonNegativeInt, PositiveFloat, kind, settings
from ..training.curriculum import Stage
from ..training.lora import LoraSettings
from ..training.models import ModelSettings
from ..training.on_accelerate.loop import Head, Tracker
from ..training.on_accelerate.rl import PolicySettings
from ..training.on_accelerate.sft import SftSettings
from ..trajectory.formats import build, has_blocks, sheet
from .alarms import AlarmSettings
from .rollouts import Masks

Source = Annotated[Kind, In("thincode.problems.sources")]
FORMATS = "thincode.trajectory.formats"
FormatKind = Annotated[Kind, In(FORMATS)]
EngineKind = Annotated[Kind, In("thincode.engines")]
Backend = Annotated[Kind, In("thincode.interpreter.backends")]
Filter = Annotated[Kind, In("thincode.grading.filters")]
RewardKind = Annotated[Kind, In("thincode.grading.rewards")]
AlgorithmKind = Annotated[Kind, In("thincode.training.algorithms")]
BenchmarkKind = Annotated[Kind, In("thincode.evaluation.benchmarks")]
SuiteKind = Annotated[Kind, In("thincode.evaluation.suites")]
MetricKind = Annotated[Kind, In("thincode.evaluation.metrics")]
Count = Annotated[int, Field(ge=1)]
PUBLISHED = "published"
"""Stands for the preset of the system whose format it is."""


def _kind(room: str, name: str) -> Kind:
    return field(default_factory=lambda: kind(room, name))


def _filters() -> tuple[Kind, ...]:
    return tuple(
        kind("thincode.grading.filters", name) for name in ("correct", "blocks_ok", "min_blocks", "plan_share")
    )


def default_metrics() -> tuple[Kind, ...]:
    """Every metric that ships, as it is."""
    names = ("accuracy", "grounding", "recovery", "code_use", "copying", "failures", "structure", "length")
    return tuple(kind("thincode.evaluation.metrics", name) for name in names)


class Switch(StrEnum):
    """On or off, as YAML 1.2 reads them: as text."""

    ON = "on"
    OFF = "off"


@settings
class InterpreterSettings:
    """What runs the blocks."""

    backend: Backend = _kind("thincode.interpreter.backends", "python")
    limits: Limits = field(default_factory=Limits)
    preset: str | None = PUBLISHED
    """Behave as the interpreter of that system (cir, aster, retool, verl, …), whose time and output limits then hold.
    `published`: of the one whose format it is, where that has one; None: as the limits say."""
    keeps: Keeps | None = None
    """What a block finds of earlier ones: `all`, `nothing`, …; None: as the preset has it, else all."""
    last_line: bool | None = None
    """Whether a failed block shows only the last line of its error; None: as the preset has it, else False."""

    def check(self) -> Iterator[tuple[str, str]]:
        """The preset must be there."""
        known = [PUBLISHED, *sorted(PRESETS)]
        if self.preset is not None and self.preset not in known:
            yield "preset", f"no preset {self.preset!r}; {choices(self.preset, known)}"

    def preset_of(self, format: Kind) -> str | None:
        """The preset for trajectories in that format; None: as the limits say."""
        return sheet(format).preset if self.preset == PUBLISHED else self.preset

    def in_effect(self, format: Kind) -> dict[str, Any]:
        """What holds in the end: a preset's values instead of the limits, and over both what is set here."""
        name = self.preset_of(format)
        chosen = PRESETS[name] if name is not None else AS_IT_IS
        limits = chosen.limits(self.limits) if name is not None else self.limits
        return {
            "preset": name,
            "cpu_s": limits.cpu_s,
            "wall_s": limits.wall_s,
            "memory_mib": limits.memory_mib,
            "output_chars": self.limits.output_chars if name is None else chosen.shown_chars,
            "keeps": str(self.keeps or chosen.keeps),
            "last_line": chosen.last_line if self.last_line is None else self.last_line,
        }


@settings
class DistillSettings:
    """Sample a teacher and keep what passes the filters (ThinC section on distillation)."""

    problems: Source = _kind("thincode.problems.sources", "drills")
    teacher: EngineKind = _kind("thincode.engines", "scripted")
    prompt: str | None = None
    """Worked examples before each question: a prompt file that ships (`thinc_3shot`), or the path of a YAML file."""
    samples: Count = 1
    """Trajectories a problem."""
    budget: Budget = field(default_factory=Budget)
    sampling: Sampling = field(default_factory=Sampling)
    filters: tuple[Filter, ...] = field(default_factory=_filters)
    student: str | None = None
    """The model that will learn, a folder or a hub id: plans and lengths are counted in its tokens. Without it records of text
    are measured in characters, and their length in tokens is not known."""


@settings
class DataPart:
    """One distillation in a mixture."""

    data: str
    """Its run folder; trajectories are read in the format they were written in."""
    weight: PositiveFloat = 1.0
    """How often an epoch has each of its trajectories: 2 twice, 0.5 every other epoch."""


@settings
class SftValidation:
    """What is measured while training; the model that did best is kept beside the last one, in `best/`."""

    holdout: NonNegativeInt = 0
    """Kept trajectories that are not trained on; their loss is measured."""
    problems: Source | None = None
    """Problems that the model answers; the best model is then the one with the highest accuracy."""
    budget: Budget = field(default_factory=Budget)
    sampling: Sampling = field(default_factory=lambda: Sampling(temperature=0.0))

    def check(self) -> Iterator[tuple[str, str]]:
        """What one field's type can't say."""
        if not self.holdout and self.problems is None:
            yield "holdout", "0, and no problems: there is nothing to measure; set one of them"


@settings
class SftSection:
    """Next-token training on the trajectories that distillation kept."""

    model: ModelSettings = field(default_factory=ModelSettings)
    data: str | None = None
    """A distillation's run folder; None takes the one of this run."""
    mix: tuple[DataPart, ...] = ()
    """Several distillations, in place of `data`: other formats, other teachers."""
    lora: LoraSettings | None = None
    """Train low-rank additions only; None trains all weights."""
    validation: SftValidation | None = None
    """Measured every `train.validate_every` steps."""
    tokenizer_size: int = 512
    """Vocabulary of the tokenizer trained for a model built from scratch; a loaded model brings its own."""
    train_outputs: bool = False
    """Also train the interpreter's tokens (ThinC's m=1)."""
    train: SftSettings = field(default_factory=SftSettings)

    def check(self) -> Iterator[tuple[str, str]]:
        """What one field's type can't say."""
        if self.data is not None and self.mix:
            yield "mix", "data is set too; list that folder in mix, or leave one of them out"
        if (self.validation is None) != (self.train.validate_every is None):
            yield "validation", "goes with train.validate_every: set both or neither"


@settings
class WeightedReward:
    """One reward and what it counts in the total."""

    reward: RewardKind = _kind("thincode.grading.rewards", "correct")
    weight: float = 1.0


@settings
class ValidationSettings:
    """Held-out problems measured while training."""

    problems: Source = _kind("thincode.problems.sources", "drills")
    suite: SuiteKind | None = None
    """The benchmarks of a suite instead of `problems`; samples and sampling are the ones here, the budget is the last stage's."""
    every: Count = 10
    """Steps between two validations; one also stands before the first step and after the last."""
    samples: Count = 1
    """Trajectories a problem."""
    sampling: Sampling = field(default_factory=lambda: Sampling(temperature=0.0))


@settings
class RlSection:
    """Reinforcement learning with the interpreter in the loop, in stages."""

    model: str | None = None
    """Folder of the model to start from; None takes the one that SFT of this run made."""
    engine: EngineKind = _kind("thincode.engines", "local")
    """Who speaks with the policy's weights: `local` in this process, or `vllm` behind a server that takes new ones."""
    problems: Source = _kind("thincode.problems.sources", "drills")
    algorithm: AlgorithmKind = _kind("thincode.training.algorithms", "grpo")
    problems_per_step: Count = 128
    samples: Count = 8
    """Trajectories a problem: the size of a group."""
    updates_per_step: Count = 2
    max_refills: int = 0
    """Times a step may sample further problems where the algorithm misses groups (dynamic sampling; DAPO's own limit is 9)."""
    sampling: Sampling = field(default_factory=Sampling)
    rewards: tuple[WeightedReward, ...] = field(default_factory=lambda: (WeightedReward(),))
    masks: Masks = field(default_factory=Masks)
    stages: Annotated[tuple[Stage, ...], Field(min_length=1)]
    policy: PolicySettings = field(default_factory=PolicySettings)
    validation: ValidationSettings | None = None
    alarms: AlarmSettings = field(default_factory=AlarmSettings)
    trackers: tuple[Tracker, ...] = ()
    """Where the lines of metrics.jsonl go besides: tensorboard, trackio, wandb (each an extra to install)."""
    keep_ids: bool = False
    """Write token ids and log-probabilities of every rollout beside the records."""

    def check(self) -> Iterator[tuple[str, str]]:
        """What one field's type can't say."""
        heats = {stage.sampling.temperature for stage in self.stages if stage.sampling} | {self.sampling.temperature}
        if min(heats) <= 0:
            yield "sampling.temperature", "must be above 0: greedy samples of a problem are all alike"
        if self.policy.head is Head.FUSED and len(heats) > 1:
            yield "policy.head", "a fused head has one temperature, and the stages have several; set head: gathered"
        if any(stage.early_stop for stage in self.stages) and self.validation is None:
            yield "validation", "a stage has an early_stop, which goes by validations; add rl.validation"


@settings
class EvaluateSection:
    """Samples, grades and measures a model."""

    problems: Source = _kind("thincode.problems.sources", "drills")
    benchmark: BenchmarkKind | None = None
    """A contest instead of `problems`."""
    suite: SuiteKind | None = None
    """Several contests, each with its paper's own samples, sampling and budget, instead of what stands here."""
    engine: EngineKind = _kind("thincode.engines", "local")
    model: str | None = None
    """Folder of the model to evaluate when the command line names none."""
    prompt: str | None = None
    """Worked examples before each question (few-shot), as in distill.prompt."""
    samples: Count = 16
    sampling: Sampling = field(default_factory=lambda: Sampling(temperature=0.6))
    budget: Budget = field(default_factory=Budget)
    interpreter: Switch = Switch.ON
    """`off` runs no block: the model goes on by itself, which measures a code model without execution."""
    greedy: bool = False
    """Also one greedy sample a problem."""
    temperatures: tuple[NonNegativeFloat, ...] = ()
    """Also all samples at each of these temperatures."""
    swap_outputs: bool = False
    """Also measure with the outputs of another problem of the same family shown instead: the causal use of outputs."""
    injected_failures: Annotated[int, Field(ge=0, le=10)] = 0
    """Also measure with the first j blocks made to fail, for j up to this: recovery with counts that mean something."""
    base_problems: int = 64
    """Problems on which a pipeline measures the untrained model; it answers none, slowly."""
    metrics: tuple[MetricKind, ...] = field(default_factory=default_metrics)
    groups: tuple[str, ...] = ("family",)
    """Tags by which accuracy is split; a suite is split by benchmark."""

    def check(self) -> Iterator[tuple[str, str]]:
        """A suite brings its own problems."""
        if self.suite is not None and self.benchmark is not None:
            yield "benchmark", "a suite has its own benchmarks; drop one of the two"


@settings
class SweepArm:
    """One way to run the recipe."""

    set: tuple[str, ...] = ()
    """`key.path=value` each, as on the command line."""
    start: str | None = None
    """An arm above whose SFT model this one starts from, at the same seed: it has no distillation and no SFT of its own, and
    with `rl=null` it is only evaluated, another way."""
    against: tuple[str, ...] = ()
    """The arms it is compared with, in pairs; none: the one it starts from, else the first."""
    seeds: tuple[NonNegativeInt, ...] = ()
    """In place of the sweep's."""


@settings
class SweepSection:
    """The recipe in several arms, each at several seeds: what `thincode sweep` runs. Other verbs take no notice."""

    seeds: Annotated[tuple[NonNegativeInt, ...], Field(min_length=1)] = (1, 2, 3)
    seeded: tuple[str, ...] = ("seed",)
    """Settings that are the seed's number: with the problems' seeds among them, an interval over seeds holds for other
    problems too."""
    arms: Annotated[dict[str, SweepArm], Field(min_length=1)]

    def check(self) -> Iterator[tuple[str, str]]:
        """Names must be folders, and what an arm refers to must be there."""
        above: list[str] = []
        for name, arm in self.arms.items():
            if not re.fullmatch(r"\w+", name):
                yield f"arms.{name}", "names a folder and stands in overrides: write letters, digits and _"
            if arm.start is not None and arm.start not in above:
                yield f"arms.{name}.start", f"{arm.start!r} is no arm above it; {choices(arm.start, above)}"
            for other in arm.against:
                if other not in self.arms:
                    yield f"arms.{name}.against", f"no arm {other!r}; {choices(other, list(self.arms))}"
            if arm.start in self.arms and not set(arm.seeds or self.seeds) <= set(
                self.arms[arm.start].seeds or self.seeds
            ):
                yield f"arms.{name}.seeds", f"{arm.start!r} has not all of them, so there is no model to start from"
            above.append(name)


@settings
class Recipe:
    """Everything a run is told."""

    name: str = ""
    seed: int = 1
    schedule: Schedule = Schedule.OVERLAPPED
    threads: int = 0
    """torch threads; 0 takes all cores."""
    live: Count = 256
    """Episodes at once; in the deterministic schedule the size of a cohort."""
    lost_share_limit: float = 0.02
    """Share of blocks lost after retry above which the run stops, checkpointed."""
    answer_without_interpreter: bool = False
    """Where a block stays lost, let the model answer in text; such trajectories leave headline figures and RL."""
    format: FormatKind = _kind("thincode.trajectory.formats", "thinc")
    interpreter: InterpreterSettings = field(default_factory=InterpreterSettings)
    distill: DistillSettings | None = None
    sft: SftSection | None = None
    rl: RlSection | None = None
    evaluate: EvaluateSection | None = None
    sweep: SweepSection | None = None

    def check(self) -> Iterator[tuple[str, str]]:
        """Blocks must be in the language that the interpreter runs, and so must be what a scripted teacher writes."""
        format, backend = build(self.format), self.interpreter.backend
        if not has_blocks(format):
            return
        written, run = getattr(format, "language", "python"), language_of(backend)
        if written != run:
            spoken = f"interpreter.backend={backend.name} runs {run}"
            yield "format", f"{self.format.name} has blocks of {written}, and {spoken}; change one of the two"
        taught = getattr(self.distill.problems.settings, "language", None) if self.distill else None
        if self.distill and taught not in (None, written) and self.distill.teacher.name == "scripted":
            asked = f"format={self.format.name} has blocks of {written}; write language: {written}"
            yield "distill.problems.language", f"the teacher writes {taught}, and {asked}"
