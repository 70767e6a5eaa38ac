"""How it learns. The rooms inside: `models` builds and loads, `algorithms` say what is learned, `rows` turns a step's rollouts
into updates, `batch` packs them, `on_accelerate` makes them on transformers' Trainer, `checkpoint` holds what a run needs to go
on, `curriculum` says what is asked next. Training knows no interpreter and no problem: it gets finished rollouts.

One **step** is one rollout batch of P problems × G samples; it gives one or more optimizer **updates**; an update is
split into **micro-batches** by a token budget. Stages, checkpoints, validation and resume count steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..settings import Kind
from ..trajectory import Tokens

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Rollout:
    """One finished trajectory as an algorithm sees it. Lost trajectories never become one."""

    tokens: Tokens
    """T tokens; behavior log-probabilities inside."""
    group: int
    """Rollouts of one problem in one step share a group."""
    reward: float
    """The whole of it, `credit` included."""
    in_update: bool = True
    """False keeps it in the group's statistics but out of the loss (void or truncated ones, by setting)."""
    credit: tuple[tuple[int, float], ...] = ()
    """(Place of a token, reward earned with it), from process rewards; what is left of `reward` is earned at the end."""
    old: NDArray[np.float32] | None = None
    """(T,) the trainer's own log-probabilities before the step's first update, where an importance cap asks for them."""
    reference: NDArray[np.float32] | None = None
    """(T,) those of the model that RL started from, where a KL term asks for them."""
    features: Mapping[str, float] = field(default_factory=dict)
    """What resampling may look at: `tool_error_share`, `answer_repeat_share`, `truncated`, `length`."""


@dataclass(frozen=True, eq=False)
class Row:
    """One rollout ready for the loss: what `batch` packs. All arrays have length T."""

    ids: NDArray[np.int32]
    behavior: NDArray[np.float32]
    """Log-probability the sampler gave each token; 0 where not trainable."""
    advantage: NDArray[np.float32]
    """0 where not trainable."""
    weight: NDArray[np.float32]
    """What one token counts in the loss of its update; 0 where not trainable; the denominators live here, so that the
    loss is a plain sum and no split into micro-batches, ranks or paddings can change it."""
    old: NDArray[np.float32] | None = None
    """See `Rollout.old`; all rows of an update have it, or none."""
    reference: NDArray[np.float32] | None = None
    """See `Rollout.reference`; all rows of an update have it, or none."""


@dataclass(frozen=True)
class Update:
    """One optimizer update: rows in order, and whether it ends its step."""

    rows: Sequence[Row]
    last: bool
    step: int
    algorithm: Kind | None = None
    """Whose loss is meant; None for supervised updates."""
    temperature: float | None = None
    """Of the rollouts; None takes the trainer's."""
    fresh_optimizer: bool = False
    """Forget the optimizer's moments and begin its schedule anew before this update."""
