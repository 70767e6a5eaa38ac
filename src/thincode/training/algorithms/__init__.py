"""What is learned from a step. Each public module here is a kind with `Settings` and the four functions of `Algorithm`.

All of them are pure. torch is imported inside `loss` only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from .. import Rollout

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Selection:
    """Which rollouts of a step are learned from."""

    keep: Sequence[int]
    """Indices into the step's rollouts, ascending."""
    missing_groups: int = 0
    """Groups the algorithm would like sampled again from other problems (dynamic sampling); bounded by the loop."""
    reasons: Mapping[str, int] | None = None
    """Rollouts dropped, counted by reason."""


@dataclass(frozen=True)
class Loss:
    """A loss and what to log of it."""

    total: torch.Tensor
    """Scalar; sums over micro-batches and ranks to the loss of the update."""
    stats: Mapping[str, float]
    """Weighted sums (not means) over this micro-batch: add them up over the update."""


class Algorithm(Protocol):
    """A module of this room. N rollouts a step; T tokens in one of them; B rows of a micro-batch."""

    def select(self, settings: Any, rollouts: Sequence[Rollout]) -> Selection:
        """Choose rollouts of a step (resampling, dropping of groups without signal)."""

    def advantages(self, settings: Any, rollouts: Sequence[Rollout]) -> list[NDArray[np.float32]]:
        """For each rollout, the (T,) advantage of its tokens; 0 on tokens the model did not write."""

    def weights(self, settings: Any, rollouts: Sequence[Rollout]) -> list[NDArray[np.float32]]:
        """For each rollout of one update, the (T,) weight of its tokens in the loss: 1 ÷ denominator, 0 if not trainable."""

    def loss(
        self,
        settings: Any,
        *,
        logprob_BT: torch.Tensor,
        behavior_BT: torch.Tensor,
        advantage_BT: torch.Tensor,
        weight_BT: torch.Tensor,
        old_BT: torch.Tensor | None = None,
        reference_BT: torch.Tensor | None = None,
    ) -> Loss:
        """The surrogate, summed with `weight_BT`; gradients flow through `logprob_BT` only."""
