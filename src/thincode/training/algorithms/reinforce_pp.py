"""REINFORCE++ (Hu 2025, arXiv 2501.03262): no groups; returns whitened over the trainable tokens of the whole step.

Each trainable token's return is what is earned from there on (γ = 1): the terminal reward, rewards of segments where a
process reward is set, − β·KL of each token against the starting model where that is on. Tokens the model did not write are
skipped, not reset. CIR names it (arXiv 2505.24480); its code runs `reinforce_pp_baseline`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...settings import NonNegativeFloat, settings
from ...trajectory.tokens import loss_mask
from .. import Rollout
from . import Selection, _groups, _surrogate
from ._groups import Denominator

if TYPE_CHECKING:
    from numpy.typing import NDArray

loss = _surrogate.loss


@settings
class Settings(_surrogate.Surrogate):
    """CIR's values."""

    dual_clip: float | None = 3.0
    kl_in_reward: NonNegativeFloat = 0.0
    """β of the per-token penalty log π_sampler − log π_reference inside the reward (the paper's place for it)."""
    denominator: Denominator = Denominator.BATCH

    @property
    def uses_reference(self) -> bool:
        """Also where the penalty stands in the reward."""
        return self.kl_coef > 0 or self.kl_in_reward > 0


def select(settings: Settings, rollouts: Sequence[Rollout]) -> Selection:
    """All rollouts."""
    return Selection(keep=range(len(rollouts)))


def returns(settings: Settings, rollout: Rollout) -> NDArray[np.float64]:
    """(T,) return of each trainable token, 0 elsewhere; before whitening."""
    mask_T = loss_mask(rollout.tokens)
    reward_T = np.zeros(len(mask_T))
    for place, value in rollout.credit:
        reward_T[place] += value
    # Whatever no segment earned is the trajectory's own, and is earned at its last token.
    reward_T[-1] += rollout.reward - sum(value for _, value in rollout.credit)
    if settings.kl_in_reward and rollout.reference is not None:
        reward_T -= settings.kl_in_reward * np.where(mask_T, rollout.tokens.logprob - rollout.reference, 0.0)
    return _groups.returns_to_go(mask_T, reward_T)


def advantages(settings: Settings, rollouts: Sequence[Rollout]) -> list[NDArray[np.float32]]:
    """Whitened returns-to-go on the tokens the model wrote."""
    return _groups.whitened(rollouts, [returns(settings, rollout) for rollout in rollouts])


def weights(settings: Settings, rollouts: Sequence[Rollout]) -> list[NDArray[np.float32]]:
    """1 ÷ all trainable tokens of the update, or as `denominator` says."""
    return _groups.token_weights(rollouts, settings.denominator)
