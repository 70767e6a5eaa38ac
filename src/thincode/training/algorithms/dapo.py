"""DAPO (Yu et al. 2025, arXiv 2503.14476): GRPO's advantage with four changes.

Clip-higher; a token mean over the whole update (denominator: all trainable tokens of the update's groups); dynamic sampling
(groups whose rewards are all equal are left out, and as many others asked for); optional soft punishment of long answers.
Dual clip 10, as in its reference recipe and in ASTER's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...settings import settings
from .. import Rollout
from . import Selection, _groups, _surrogate
from ._groups import Denominator, Sigma, ZeroAdvantageGroups

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

loss = _surrogate.loss


@settings
class Settings(_surrogate.Surrogate):
    """DAPO's values."""

    dual_clip: float | None = 10.0
    sigma: Sigma = Sigma.POPULATION
    denominator: Denominator = Denominator.BATCH
    zero_advantage_groups: ZeroAdvantageGroups = ZeroAdvantageGroups.DROP
    dynamic_sampling: bool = True
    """Ask for another group for each one dropped; how often is the loop's setting."""
    overlong_limit: int | None = None
    """Tokens after the prompt at which the punishment reaches −1; None is off. Set it anew for each stage's context."""
    overlong_cache: int = 4_096
    """Tokens before the limit over which the punishment grows."""


def overlong_penalty(length: int, *, limit: int, cache: int) -> float:
    """0 up to `limit − cache` tokens, then linear to −1 at `limit`, −1 beyond (DAPO Eq. 13)."""
    return -min(max((length - (limit - cache)) / cache, 0.0), 1.0)


def select(settings: Settings, rollouts: Sequence[Rollout]) -> Selection:
    """Groups whose rewards, before any punishment of length, differ."""
    return _groups.select(
        rollouts, zero_advantage_groups=settings.zero_advantage_groups, refill=settings.dynamic_sampling
    )


def advantages(settings: Settings, rollouts: Sequence[Rollout]) -> list[NDArray[np.float32]]:
    """(r − μ) / σ on the tokens the model wrote; r includes the punishment of length where it is on."""
    reward_N = [rollout.reward for rollout in rollouts]
    if settings.overlong_limit is not None:
        length_N = [len(rollout.tokens) - rollout.tokens.prompt_length for rollout in rollouts]
        reward_N = [
            reward + overlong_penalty(length, limit=settings.overlong_limit, cache=settings.overlong_cache)
            for reward, length in zip(reward_N, length_N, strict=True)
        ]
    return _groups.group_advantages(rollouts, lambda group: _groups.standardized(group, settings.sigma), reward_N)


def weights(settings: Settings, rollouts: Sequence[Rollout]) -> list[NDArray[np.float32]]:
    """1 ÷ all trainable tokens of the update, or as `denominator` says."""
    return _groups.token_weights(rollouts, settings.denominator)
