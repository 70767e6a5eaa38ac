"""Stages: which problems a step asks, which are dropped between stages, when a stage is over. Pure; the state is plain."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Annotated, Any

import numpy as np

from ..engines import Sampling
from ..settings import In, Kind, NonNegativeFloat, PositiveInt, settings


class Measure(StrEnum):
    """By what a filter judges a problem."""

    LAST_EPOCH = "last_epoch"
    """Its latest group of the stages before: free, and up to an epoch old."""
    FRESH_N = "fresh_n"
    """New samples of the policy as it begins the stage."""


@settings
class DifficultyFilter:
    """Which problems a stage leaves out when it begins. An estimate: p = 0.9 gives 8 right of 8 in 43 % of groups."""

    measure: Measure = Measure.LAST_EPOCH
    samples: PositiveInt = 8
    """New samples a problem, for `fresh_n`."""
    drop_solved: bool = True
    """Those that were right in every sample."""
    drop_unsolved: bool = False
    """Those that were right in none."""


class AtStage(StrEnum):
    """What becomes of the optimizer's moments and schedule when a stage begins."""

    CARRY = "carry"
    RESET = "reset"


@settings
class EarlyStop:
    """Ends a stage before its steps are spent, by the accuracy of its validations."""

    patience: PositiveInt = 3
    """Validations in a row that bring nothing."""
    gain: NonNegativeFloat = 0.0
    """More than this above the best before is something."""


@settings
class Stage:
    """A stretch of RL with its own budget; what is None is as the section says."""

    steps: PositiveInt
    """At most."""
    context_tokens: PositiveInt = 16_384
    calls: int = 20
    calls_from: tuple[tuple[int, int], ...] = ()
    """Pairs (step of the run, calls): from that step on, so many calls instead (CIR: 2, then [[100, 3], [200, 4]])."""
    sampling: Sampling | None = None
    algorithm: Annotated[Kind, In("thincode.training.algorithms")] | None = None
    filter: DifficultyFilter | None = None
    """Applied when the stage begins; what was dropped before stays dropped."""
    optimizer: AtStage = AtStage.CARRY
    early_stop: EarlyStop | None = None

    def check(self) -> Iterator[tuple[str, str]]:
        """What one field's type can't say."""
        if list(self.calls_from) != sorted(set(self.calls_from)):
            yield "calls_from", f"steps must rise, found {[list(pair) for pair in self.calls_from]}"

    @property
    def most_calls(self) -> int:
        """The most that any of its steps allows."""
        return max([self.calls, *(calls for _, calls in self.calls_from)])

    def calls_at(self, step: int) -> int:
        """Calls a trajectory may make at a step of the run."""
        return [self.calls, *(calls for first, calls in self.calls_from if step >= first)][-1]


@dataclass(frozen=True)
class Group:
    """What the latest group of a problem gave."""

    step: int
    right: int
    samples: int
    """Samples that were not lost."""


@dataclass(frozen=True)
class Curriculum:
    """Where the run stands in its problems."""

    active: tuple[str, ...]
    """Ids of the problems still asked, in the source's order."""
    seed: int
    epoch: int = 0
    position: int = 0
    """Problems of this epoch already asked."""
    late: tuple[str, ...] = ()
    """Problems that come last in this epoch, because the step that began it had asked them already."""
    latest: Mapping[str, Group] = field(default_factory=dict)
    stage: int = 0
    """Number of the stage, from 1; 0 before the first has begun."""
    first: int = 0
    """The step that the stage began with."""
    best: float | None = None
    """The best validation accuracy of the stage."""
    stale: int = 0
    """Validations since then."""

    def state(self) -> dict[str, Any]:
        """Plain values for a checkpoint; `restore` reads them back."""
        latest = {key: [group.step, group.right, group.samples] for key, group in self.latest.items()}
        return {
            "active": list(self.active),
            "seed": self.seed,
            "epoch": self.epoch,
            "position": self.position,
            "late": list(self.late),
            "latest": latest,
            "stage": self.stage,
            "first": self.first,
            "best": self.best,
            "stale": self.stale,
        }


def restore(state: Mapping[str, Any]) -> Curriculum:
    """The curriculum that gave this `state()`."""
    return Curriculum(
        **{
            **state,
            "active": tuple(state["active"]),
            "late": tuple(state["late"]),
            "latest": {key: Group(*values) for key, values in state["latest"].items()},
        }
    )


def epoch_order(problem_ids: Sequence[str], *, seed: int, epoch: int) -> list[str]:
    """A permutation that depends on the ids, the seed and the epoch only."""
    drawn = np.random.default_rng([seed, epoch]).permutation(len(problem_ids))
    return [problem_ids[index] for index in drawn.tolist()]


def draw(curriculum: Curriculum, count: int) -> tuple[list[str], Curriculum]:
    """The next `count` problems, all different, and where that leaves the run; all active ones where there are fewer.

    An epoch asks every active problem once. A step that ends one epoch goes on with the next.
    """
    count = min(count, len(curriculum.active))
    late = set(curriculum.late)
    order = epoch_order(curriculum.active, seed=curriculum.seed, epoch=curriculum.epoch)
    order = [name for name in order if name not in late] + list(curriculum.late)
    chosen = order[curriculum.position : curriculum.position + count]
    if len(chosen) == count:
        return chosen, replace(curriculum, position=curriculum.position + count)
    following = replace(curriculum, epoch=curriculum.epoch + 1, position=0, late=tuple(chosen))
    more, following = draw(following, count - len(chosen))
    return chosen + more, following


def record(curriculum: Curriculum, groups: Mapping[str, Group]) -> Curriculum:
    """Remember what a step's groups gave, by problem; a group whose samples were all lost says nothing."""
    return replace(
        curriculum, latest={**curriculum.latest, **{k: group for k, group in groups.items() if group.samples}}
    )


# --- stages ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Filtered:
    """What a filter found: problems by what became of them."""

    kept: tuple[str, ...]
    dropped: Mapping[str, tuple[str, ...]]
    """By reason: `always solved`, `never solved`."""


def judge(curriculum: Curriculum, filter: DifficultyFilter) -> Filtered:
    """Sort the active problems by their latest groups; one that was never measured is kept.

    Where a filter would leave nothing to ask, it drops nothing.
    """
    reasons: dict[str, list[str]] = {"always solved": [], "never solved": []}
    for name in curriculum.active:
        group = curriculum.latest.get(name)
        if group is not None and filter.drop_solved and group.right == group.samples:
            reasons["always solved"].append(name)
        elif group is not None and filter.drop_unsolved and group.right == 0:
            reasons["never solved"].append(name)
    gone = {name for names in reasons.values() for name in names}
    kept = tuple(name for name in curriculum.active if name not in gone)
    if not kept:
        return Filtered(curriculum.active, dict.fromkeys(reasons, ()))
    return Filtered(kept, {reason: tuple(names) for reason, names in reasons.items()})


def report(curriculum: Curriculum, filtered: Filtered) -> dict[str, Any]:
    """What was kept and dropped, each problem with what decided it: {right, samples, step}, or null where nothing did."""

    def counts(names: Sequence[str]) -> dict[str, Any]:
        found = ((name, curriculum.latest.get(name)) for name in names)
        return {name: dataclasses.asdict(group) if group is not None else None for name, group in found}

    dropped = {reason: counts(names) for reason, names in filtered.dropped.items()}
    return {"kept": counts(filtered.kept), "dropped": dropped}


def begin(curriculum: Curriculum, step: int, filtered: Filtered | None) -> Curriculum:
    """The next stage begins with `step`. One whose filter dropped something begins a new epoch."""
    later = replace(curriculum, stage=curriculum.stage + 1, first=step, best=None, stale=0)
    if filtered is None or len(filtered.kept) == len(curriculum.active):
        return later
    return replace(later, active=filtered.kept, epoch=curriculum.epoch + 1, position=0, late=())


def validated(curriculum: Curriculum, accuracy: float, stop: EarlyStop) -> Curriculum:
    """Remember a validation of the stage."""
    if curriculum.best is None or accuracy > curriculum.best + stop.gain:
        return replace(curriculum, best=accuracy, stale=0)
    return replace(curriculum, stale=curriculum.stale + 1)


def is_over(curriculum: Curriculum, stages: Sequence[Stage], step: int) -> bool:
    """Whether the stage that stands has had its steps, or its early stop has come. Before the first stage: yes."""
    if curriculum.stage == 0:
        return True
    stage = stages[curriculum.stage - 1]
    tired = stage.early_stop is not None and curriculum.stale >= stage.early_stop.patience
    return step >= curriculum.first + stage.steps or tired
