"""GRPO as ThinC prints it (arXiv 2605.07237, Eq. 4 and 5; GRPO: arXiv 2402.03300).

Advantage: (r − μ) / σ in the group, population σ, 0 where σ < 1e-6. Loss: clipped surrogate over trainable tokens ÷ the
group's number of trainable tokens, then the mean over groups. No KL term, no entropy bonus, no dual clip. Groups whose
rewards are all equal stay in the update and dilute it (ThinC removes solved problems between stages, not online).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...settings import settings
from .. import Rollout
from . import Loss, Selection, _groups, _surrogate
from ._groups import Denominator, ZeroAdvantageGroups

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray


@settings
class Settings:
    """ThinC's values."""

    clip_low: float = 0.20
    clip_high: float = 0.28
    dual_clip: float | None = None
    """c > 1 bounds the loss of tokens with a negative advantage; None is off."""
    importance_cap: float | None = None
    """Truncated importance weights: no token's gradient counts more than this ratio; None is off."""
    denominator: Denominator = Denominator.GROUP
    zero_advantage_groups: ZeroAdvantageGroups = ZeroAdvantageGroups.KEEP


def select(settings: Settings, rollouts: Sequence[Rollout]) -> Selection:
    """All rollouts, or those of groups whose rewards differ."""
    return _groups.select(rollouts, zero_advantage_groups=settings.zero_advantage_groups, refill=False)


def advantages(settings: Settings, rollouts: Sequence[Rollout]) -> list[NDArray[np.float32]]:
    """(r − μ) / σ on the tokens the model wrote (Eq. 4)."""
    return _groups.group_advantages(rollouts, [rollout.reward for rollout in rollouts])


def weights(settings: Settings, rollouts: Sequence[Rollout]) -> list[NDArray[np.float32]]:
    """1 ÷ (trainable tokens of the group × groups), or as `denominator` says (Eq. 5)."""
    return _groups.token_weights(rollouts, settings.denominator)


def loss(
    settings: Settings,
    *,
    logprob_BT: torch.Tensor,
    behavior_BT: torch.Tensor,
    advantage_BT: torch.Tensor,
    weight_BT: torch.Tensor,
) -> Loss:
    """The clipped surrogate (Eq. 5)."""
    return _surrogate.clipped_surrogate(
        logprob_BT=logprob_BT,
        behavior_BT=behavior_BT,
        advantage_BT=advantage_BT,
        weight_BT=weight_BT,
        clip_low=settings.clip_low,
        clip_high=settings.clip_high,
        dual_clip=settings.dual_clip,
        importance_cap=settings.importance_cap,
    )
