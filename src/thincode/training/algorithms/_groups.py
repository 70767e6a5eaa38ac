"""What group-relative algorithms share: groups, their statistics, and the denominators of the loss."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from ...trajectory.tokens import loss_mask
from .. import Rollout
from . import Selection

SIGMA_FLOOR = 1e-6
"""A group whose population σ of rewards is below this has no signal. A tolerance, because equal floats may differ."""


class Denominator(StrEnum):
    """What the sum over trainable tokens is divided by."""

    GROUP = "group"
    """The trainable tokens of the group, then the mean over groups (ThinC Eq. 5 as printed)."""
    BATCH = "batch"
    """All trainable tokens of the update (DAPO, and what most trainers call token mean)."""


class ZeroAdvantageGroups(StrEnum):
    """What happens to groups whose rewards are all equal: they give no gradient but count in the denominators."""

    KEEP = "keep"
    DROP = "drop"


def members(rollouts: Sequence[Rollout]) -> dict[int, list[int]]:
    """Indices of the rollouts of each group, both in order of appearance."""
    found: dict[int, list[int]] = {}
    for index, rollout in enumerate(rollouts):
        found.setdefault(rollout.group, []).append(index)
    return found


def standardized(reward_G: Sequence[float]) -> NDArray[np.float64]:
    """(r − μ) / σ with the population σ of one group, or zeros where σ < 1e-6 (ThinC Eq. 4)."""
    centered_G = np.asarray(reward_G, dtype=np.float64) - np.mean(reward_G)
    sigma = float(np.sqrt(np.mean(centered_G**2)))
    return np.zeros_like(centered_G) if sigma < SIGMA_FLOOR else centered_G / sigma


def has_signal(reward_G: Sequence[float]) -> bool:
    """Whether the rewards of a group differ."""
    return float(np.std(reward_G)) >= SIGMA_FLOOR


def select(rollouts: Sequence[Rollout], *, zero_advantage_groups: ZeroAdvantageGroups, refill: bool) -> Selection:
    """Leave out groups without signal, if asked to, and ask for as many others, if `refill`."""
    if zero_advantage_groups is ZeroAdvantageGroups.KEEP:
        return Selection(keep=range(len(rollouts)))
    keep: list[int] = []
    reasons = {"all rewards equal and positive": 0, "all rewards equal and not positive": 0}
    dropped = 0
    for indices in members(rollouts).values():
        if has_signal([rollouts[i].reward for i in indices]):
            keep += indices
        else:
            dropped += 1
            right = rollouts[indices[0]].reward > 0
            reasons["all rewards equal and positive" if right else "all rewards equal and not positive"] += len(indices)
    return Selection(keep=sorted(keep), missing_groups=dropped if refill else 0, reasons=reasons)


def group_advantages(rollouts: Sequence[Rollout], reward_N: Sequence[float]) -> list[NDArray[np.float32]]:
    """The standardized reward of each rollout in its group, on the tokens its model wrote; 0 elsewhere."""
    value_N = np.zeros(len(rollouts))
    for indices in members(rollouts).values():
        value_N[indices] = standardized([reward_N[i] for i in indices])
    return [(loss_mask(r.tokens) * value).astype(np.float32) for r, value in zip(rollouts, value_N, strict=True)]


def trainable(rollout: Rollout) -> NDArray[np.bool_]:
    """(T,) tokens that count in a loss: those the model wrote, if the rollout is in the update at all."""
    mask = loss_mask(rollout.tokens)
    return mask if rollout.in_update else np.zeros_like(mask)


def token_weights(rollouts: Sequence[Rollout], denominator: Denominator) -> list[NDArray[np.float32]]:
    """For each rollout of one update, (T,): 1 ÷ denominator on trainable tokens, 0 elsewhere.

    The weights of an update sum to 1. A group with no trainable token is not counted in the mean over groups.
    """
    mask_N = [trainable(rollout) for rollout in rollouts]
    count_N = np.array([int(mask.sum()) for mask in mask_N], dtype=np.float64)
    share_N = np.zeros(len(rollouts))
    if denominator is Denominator.BATCH:
        share_N[:] = 1.0 / max(count_N.sum(), 1.0)
    else:
        groups = [indices for indices in members(rollouts).values() if count_N[indices].sum() > 0]
        for indices in groups:
            share_N[indices] = 1.0 / (count_N[indices].sum() * len(groups))
    return [(mask * share).astype(np.float32) for mask, share in zip(mask_N, share_N, strict=True)]
