"""From the rollouts of one step to its optimizer updates: select, advantages, split by groups, weights, rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from ..errors import InfrastructureError
from ..settings import Kind
from . import Rollout, Row, Update
from .algorithms import _groups

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .algorithms import Algorithm


def updates(
    algorithm: Kind, rollouts: Sequence[Rollout], *, step: int, updates_per_step: int, seed: int
) -> list[Update]:
    """The updates of one step, never none; the last one has `last` set.

    Whole groups are dealt to the updates in an order drawn from (`seed`, `step`). An update in which no token has an
    advantage is left out: it could only move weights by momentum. If that leaves nothing, one update without rows
    stands for the step, and the trainer marks the step's end without touching the weights.

    Args:
        algorithm: a kind of `thincode.training.algorithms`.
        rollouts: all rollouts of the step that are not lost, also those that are in the statistics only.
        step: index of the step.
        updates_per_step: at most so many updates; fewer where there are fewer groups.
        seed: of the run.

    Raises:
        InfrastructureError: a token to be trained has no log-probability from its sampler, or no token before it.
    """
    kind = cast("Algorithm", algorithm.module)
    selection = kind.select(algorithm.settings, rollouts)
    kept = [rollouts[index] for index in selection.keep]
    advantage_N = kind.advantages(algorithm.settings, kept)
    groups = list(_groups.members(kept).values())
    order = np.random.default_rng([seed, step]).permutation(len(groups))
    made: list[Sequence[Row]] = []
    for part in np.array_split(order, min(updates_per_step, max(len(groups), 1))):
        # Rows in the step's own order: which groups share an update is drawn, the order inside it is not.
        indices = sorted(index for group in part for index in groups[group])
        weight_N = kind.weights(algorithm.settings, [kept[index] for index in indices])
        rows = [
            _row(kept[index], advantage_N[index], weight, step)
            for index, weight in zip(indices, weight_N, strict=True)
            if weight.any()
        ]
        if any(row.advantage.any() for row in rows):
            made.append(rows)
    made = made or [()]
    return [
        Update(rows=rows, last=number == len(made), step=step, algorithm=algorithm)
        for number, rows in enumerate(made, start=1)
    ]


def _row(rollout: Rollout, advantage_T: NDArray[np.float32], weight_T: NDArray[np.float32], step: int) -> Row:
    on_T = weight_T > 0
    if not np.isfinite(rollout.tokens.logprob[on_T]).all():
        raise InfrastructureError(
            f"step {step}: a rollout of group {rollout.group} has a sampled token without a finite log-probability; "
            "RL needs an engine that gives one for every token it samples"
        )
    if on_T[0]:
        raise InfrastructureError(
            f"step {step}: a rollout of group {rollout.group} has no prompt before its first token"
        )
    return Row(
        ids=rollout.tokens.ids,
        behavior=np.where(on_T, rollout.tokens.logprob, 0.0).astype(np.float32),
        advantage=np.where(on_T, advantage_T, 0.0).astype(np.float32),
        weight=weight_T,
        old=rollout.old,
        reference=rollout.reference,
    )
