"""REINFORCE++ with a group baseline (arXiv 2501.03262): what CIR's code runs (arXiv 2505.24480).

Advantage: r − μ in the group, on every token the model wrote, then whitened over all those tokens of the step; no group σ. So
a long rollout counts more in mean and deviation than a short one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...settings import settings
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
    denominator: Denominator = Denominator.BATCH


def select(settings: Settings, rollouts: Sequence[Rollout]) -> Selection:
    """All rollouts."""
    return Selection(keep=range(len(rollouts)))


def advantages(settings: Settings, rollouts: Sequence[Rollout]) -> list[NDArray[np.float32]]:
    """Whitened r − μ on the tokens the model wrote."""
    value_N = _groups.by_group(rollouts, _groups.centered, [rollout.reward for rollout in rollouts])
    value_NT = [np.full(len(rollout.tokens), value) for rollout, value in zip(rollouts, value_N, strict=True)]
    return _groups.whitened(rollouts, value_NT)


def weights(settings: Settings, rollouts: Sequence[Rollout]) -> list[NDArray[np.float32]]:
    """1 ÷ all trainable tokens of the update, or as `denominator` says."""
    return _groups.token_weights(rollouts, settings.denominator)
