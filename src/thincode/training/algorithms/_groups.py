"""What algorithms share: groups and their statistics, returns, whitening, and the denominators of the loss."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from ...trajectory.tokens import loss_mask
from .. import Rollout
from . import Selection

SIGMA_FLOOR = 1e-6
"""A group whose population σ of rewards is below this has no signal. A tolerance, because equal floats may differ."""
WHITEN_EPSILON = 1e-8
"""Added to the variance that whitening divides by, as verl does."""


class Denominator(StrEnum):
    """What the sum over trainable tokens is divided by."""

    GROUP = "group"
    """The trainable tokens of the group, then the mean over groups (ThinC Eq. 5 as printed)."""
    BATCH = "batch"
    """All trainable tokens of the update (DAPO, and what most trainers call token mean)."""
    SEQUENCE = "sequence"
    """The trainable tokens of the rollout, then the mean over rollouts (GRPO as first printed, arXiv 2402.03300)."""


class ZeroAdvantageGroups(StrEnum):
    """What happens to groups whose rewards are all equal: they give no gradient but count in the denominators."""

    KEEP = "keep"
    DROP = "drop"


class Sigma(StrEnum):
    """Which standard deviation a group's rewards are divided by."""

    POPULATION = "population"
    """÷ G under the root, no ε (ThinC Eq. 4)."""
    SAMPLE = "sample"
    """÷ (G − 1) under the root, and 1e-6 added to the root (verl)."""


def members(rollouts: Sequence[Rollout]) -> dict[int, list[int]]:
    """Indices of the rollouts of each group, both in order of appearance."""
    found: dict[int, list[int]] = {}
    for index, rollout in enumerate(rollouts):
        found.setdefault(rollout.group, []).append(index)
    return found


# --- selection ------------------------------------------------------------------------------------------------------


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


# --- advantages -----------------------------------------------------------------------------------------------------


def standardized(reward_G: Sequence[float], sigma: Sigma = Sigma.POPULATION) -> NDArray[np.float64]:
    """(r − μ) / σ of one group, or zeros where the population σ is below 1e-6 (ThinC Eq. 4)."""
    centered_G = np.asarray(reward_G, dtype=np.float64) - np.mean(reward_G)
    population = float(np.sqrt(np.mean(centered_G**2)))
    if population < SIGMA_FLOOR:
        return np.zeros_like(centered_G)
    count = len(centered_G)
    return centered_G / (population if sigma is Sigma.POPULATION else population * (count / (count - 1)) ** 0.5 + 1e-6)


def centered(reward_G: Sequence[float]) -> NDArray[np.float64]:
    """Reward − μ of one group."""
    return np.asarray(reward_G, dtype=np.float64) - np.mean(reward_G)


def by_group(
    rollouts: Sequence[Rollout], of_group: Callable[[list[float]], NDArray[np.float64]], reward_N: Sequence[float]
) -> NDArray[np.float64]:
    """(N,) what `of_group` makes of the rewards of each group."""
    value_N = np.zeros(len(rollouts))
    for indices in members(rollouts).values():
        value_N[indices] = of_group([reward_N[i] for i in indices])
    return value_N


def group_advantages(
    rollouts: Sequence[Rollout],
    of_group: Callable[[list[float]], NDArray[np.float64]],
    reward_N: Sequence[float] | None = None,
) -> list[NDArray[np.float32]]:
    """For each rollout, (T,): what `of_group` gives it, on the tokens its model wrote, and 0 elsewhere.

    Args:
        rollouts: N of them.
        of_group: from the rewards of one group to as many values.
        reward_N: other rewards than the rollouts' own.
    """
    value_N = by_group(rollouts, of_group, reward_N or [rollout.reward for rollout in rollouts])
    return [(loss_mask(r.tokens) * value).astype(np.float32) for r, value in zip(rollouts, value_N, strict=True)]


def returns_to_go(mask_T: NDArray[np.bool_], reward_T: NDArray[np.float64]) -> NDArray[np.float64]:
    """(T,) at each trainable token the rewards from there on; masked tokens are skipped, not reset, and hold 0.

    A reward at a masked token belongs to the trainable token before it; in front of the first one nothing earned it.
    """
    return np.where(mask_T, np.cumsum(reward_T[::-1])[::-1], 0.0)


def whitened(rollouts: Sequence[Rollout], value_NT: Sequence[NDArray[np.float64]]) -> list[NDArray[np.float32]]:
    """Values of trainable tokens minus their mean, over their standard deviation, both over all those tokens of the step.

    The deviation is the sample's, with 1e-8 added to the variance; where there is none, nothing is left.
    """
    mask_NT = [loss_mask(rollout.tokens) for rollout in rollouts]
    kept = np.concatenate([value[mask] for value, mask in zip(value_NT, mask_NT, strict=True)] or [np.zeros(0)])
    if len(kept) < 2 or float(kept.std()) < SIGMA_FLOOR:
        return [np.zeros(len(mask), dtype=np.float32) for mask in mask_NT]
    mean, spread = float(kept.mean()), float(np.sqrt(kept.var(ddof=1) + WHITEN_EPSILON))
    return [
        np.where(mask, (value - mean) / spread, 0.0).astype(np.float32)
        for value, mask in zip(value_NT, mask_NT, strict=True)
    ]


# --- denominators ---------------------------------------------------------------------------------------------------


def trainable(rollout: Rollout) -> NDArray[np.bool_]:
    """(T,) tokens that count in a loss: those the model wrote, if the rollout is in the update at all."""
    mask = loss_mask(rollout.tokens)
    return mask if rollout.in_update else np.zeros_like(mask)


def token_weights(rollouts: Sequence[Rollout], denominator: Denominator) -> list[NDArray[np.float32]]:
    """For each rollout of one update, (T,): 1 ÷ denominator on trainable tokens, 0 elsewhere.

    The weights of an update sum to 1. Groups and rollouts with no trainable token are not counted in a mean over them.
    """
    mask_N = [trainable(rollout) for rollout in rollouts]
    count_N = np.array([int(mask.sum()) for mask in mask_N], dtype=np.float64)
    share_N = np.zeros(len(rollouts))
    if denominator is Denominator.BATCH:
        parts = [list(range(len(rollouts)))]
    elif denominator is Denominator.GROUP:
        parts = list(members(rollouts).values())
    else:
        parts = [[index] for index in range(len(rollouts))]
    parts = [indices for indices in parts if count_N[indices].sum() > 0]
    for indices in parts:
        share_N[indices] = 1.0 / (count_N[indices].sum() * len(parts))
    return [(mask * share).astype(np.float32) for mask, share in zip(mask_N, share_N, strict=True)]
