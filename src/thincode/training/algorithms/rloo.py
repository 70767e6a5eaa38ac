"""RLOO, REINFORCE with a leave-one-out baseline (Ahmadian et al. 2024, arXiv 2402.14740; PRIME's estimator for its outcome).

Advantage: r − the mean of the group's other rewards, no σ; 0 in a group of one, which has no others. Here with the clipped
surrogate and a token mean over the update, as its users run it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...settings import settings
from .. import Rollout
from . import Selection, _groups, _surrogate
from ._groups import Denominator, ZeroAdvantageGroups

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

loss = _surrogate.loss


@settings
class Settings(_surrogate.Surrogate):
    """PRIME's values."""

    clip_high: float = 0.20
    denominator: Denominator = Denominator.BATCH
    zero_advantage_groups: ZeroAdvantageGroups = ZeroAdvantageGroups.KEEP


def select(settings: Settings, rollouts: Sequence[Rollout]) -> Selection:
    """All rollouts, or those of groups whose rewards differ."""
    return _groups.select(rollouts, zero_advantage_groups=settings.zero_advantage_groups, refill=False)


def leave_one_out(reward_G: Sequence[float]) -> NDArray[np.float64]:
    """Reward − mean of the others = (r − μ) · G / (G − 1)."""
    count = len(reward_G)
    return _groups.centered(reward_G) * (count / max(count - 1, 1))


def advantages(settings: Settings, rollouts: Sequence[Rollout]) -> list[NDArray[np.float32]]:
    """Reward − the mean of the others on the tokens the model wrote."""
    return _groups.group_advantages(rollouts, leave_one_out)


def weights(settings: Settings, rollouts: Sequence[Rollout]) -> list[NDArray[np.float32]]:
    """1 ÷ all trainable tokens of the update, or as `denominator` says."""
    return _groups.token_weights(rollouts, settings.denominator)
