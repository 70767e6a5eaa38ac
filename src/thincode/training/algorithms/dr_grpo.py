"""Dr. GRPO (Liu et al. 2025, arXiv 2503.20783; Oat-Zero): GRPO without its two biases.

Advantage: r − μ in the group, no σ, so questions of middling difficulty don't count more and ±1 differs from 1/0. Loss: each
rollout's sum over trainable tokens ÷ a constant, then the mean over rollouts, so long wrong answers are not spared.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...settings import PositiveInt, settings
from .. import Rollout
from . import Selection, _groups, _surrogate
from ._groups import ZeroAdvantageGroups

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

loss = _surrogate.loss


@settings
class Settings(_surrogate.Surrogate):
    """Oat-Zero's values."""

    clip_high: float = 0.20
    horizon: PositiveInt = 3_000
    """The constant every rollout's sum is divided by: the largest number of tokens it may write."""
    zero_advantage_groups: ZeroAdvantageGroups = ZeroAdvantageGroups.KEEP


def select(settings: Settings, rollouts: Sequence[Rollout]) -> Selection:
    """All rollouts, or those of groups whose rewards differ."""
    return _groups.select(rollouts, zero_advantage_groups=settings.zero_advantage_groups, refill=False)


def advantages(settings: Settings, rollouts: Sequence[Rollout]) -> list[NDArray[np.float32]]:
    """Reward − μ on the tokens the model wrote."""
    return _groups.group_advantages(rollouts, _groups.centered)


def weights(settings: Settings, rollouts: Sequence[Rollout]) -> list[NDArray[np.float32]]:
    """1 ÷ (`horizon` × rollouts that have a trainable token); they sum to less than 1 where rollouts are shorter."""
    mask_N = [_groups.trainable(rollout) for rollout in rollouts]
    count = max(sum(bool(mask.any()) for mask in mask_N), 1)
    return [(mask / (settings.horizon * count)).astype("float32") for mask in mask_N]
