"""Stages: which problems a step asks, and which are dropped between stages. Pure; the state is plain and serializable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from ..settings import settings


class DropSolved(StrEnum):
    """Which problems a stage leaves out when it begins."""

    NONE = "none"
    LAST_EPOCH = "last_epoch"
    """Those whose latest group was right in every sample (an estimate: p = 0.9 gives 8 of 8 in 43 % of groups)."""


@settings
class Stage:
    """A stretch of RL with its own budget."""

    steps: Annotated[int, Field(ge=1)]
    context_tokens: int = 16_384
    calls: int = 20
    drop_solved: DropSolved = DropSolved.NONE
    """Applied when the stage begins, to what the stages before it measured."""


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
        }


def restore(state: Mapping[str, Any]) -> Curriculum:
    """The curriculum that gave this `state()`."""
    return Curriculum(
        active=tuple(state["active"]),
        seed=state["seed"],
        epoch=state["epoch"],
        position=state["position"],
        late=tuple(state["late"]),
        latest={key: Group(*values) for key, values in state["latest"].items()},
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


def solved(curriculum: Curriculum) -> list[str]:
    """Active problems whose latest group was right in every sample."""
    found = ((name, curriculum.latest.get(name)) for name in curriculum.active)
    return [name for name, group in found if group is not None and group.right == group.samples]


def begin(curriculum: Curriculum, stage: Stage) -> tuple[Curriculum, list[str]]:
    """The curriculum as the stage begins it, and the problems dropped. A stage that drops begins a new epoch.

    Where every problem is solved, none is dropped: a stage needs something to ask.
    """
    dropped = solved(curriculum) if stage.drop_solved is DropSolved.LAST_EPOCH else []
    if not dropped or len(dropped) == len(curriculum.active):
        return curriculum, []
    gone = set(dropped)
    active = tuple(name for name in curriculum.active if name not in gone)
    return replace(curriculum, active=active, epoch=curriculum.epoch + 1, position=0, late=()), dropped
