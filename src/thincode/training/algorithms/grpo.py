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
from . import Selection, _groups, _surrogate
from ._groups import Denominator, Sigma, ZeroAdvantageGroups

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

loss = _surrogate.loss


@settings
class Settings(_surrogate.Surrogate):
    """ThinC's values."""

    sigma: Sigma = Sigma.POPULATION
    denominator: Denominator = Denominator.GROUP
    zero_advantage_groups: ZeroAdvantageGroups = ZeroAdvantageGroups.KEEP


def select(settings: Settings, rollouts: Sequence[Rollout]) -> Selection:
    """All rollouts, or those of groups whose rewards differ."""
    return _groups.select(rollouts, zero_advantage_groups=settings.zero_advantage_groups, refill=False)


def advantages(settings: Settings, rollouts: Sequence[Rollout]) -> list[NDArray[np.float32]]:
    """(r − μ) / σ on the tokens the model wrote (Eq. 4)."""
    return _groups.group_advantages(rollouts, lambda group: _groups.standardized(group, settings.sigma))


def weights(settings: Settings, rollouts: Sequence[Rollout]) -> list[NDArray[np.float32]]:
    """1 ÷ (trainable tokens of the group × groups), or as `denominator` says (Eq. 5)."""
    return _groups.token_weights(rollouts, settings.denominator)
