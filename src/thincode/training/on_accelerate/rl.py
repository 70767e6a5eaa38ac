"""RL on finished updates: transformers' Trainer with our loss. The loop that makes rollouts is `thincode.runs.rl`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...settings import settings
from .. import Update
from ..checkpoint import Checkpoint
from .loop import LoopSettings, LossFunction, Source, train

if TYPE_CHECKING:
    from torch import nn

    from ...trajectory.tokenizer import Tokenizer


@settings
class PolicySettings(LoopSettings):
    """How the policy is updated."""

    checkpoint_every: int = 10


def train_policy(
    model: nn.Module,
    *,
    updates: Callable[[int], Iterator[Update]],
    settings: PolicySettings,
    temperature: float,
    seed: int,
    folder: Path,
    total_updates: int | None,
    resume_from: Checkpoint | None,
    state: Callable[[], Mapping[str, Any]],
    on_update: Callable[[dict[str, float]], None],
    finished: Callable[[], bool] = lambda: True,
    tokenizer: Tokenizer | None = None,
) -> None:
    """Train `model` on the updates of all stages; they are one run, and its steps are counted through.

    Args:
        model: the policy; changed in place, so that an engine that holds it speaks with the new weights.
        updates: given the number of steps completed, the updates that follow, as a generator that makes rollouts between
            its `yield`s. Behind a `yield` the update is made, its record logged, and, at the end of a step that has a
            checkpoint, the checkpoint written.
        settings: how weights move.
        temperature: of the rollouts.
        seed: of dropout.
        folder: the run's `checkpoint/`.
        total_updates: for a learning rate that decays; None where it is not known.
        resume_from: from `checkpoint.latest`.
        state: what a checkpoint shall remember; called at the end of a step, before the generator goes on.
        on_update: gets `step`, `update`, `loss`, `grad_norm`, `learning_rate`, `tokens` and the algorithm's figures.
        finished: asked when the updates have ended; False if they were stopped, and the run shall go on from its last step.
        tokenizer: saved into each checkpoint.

    Raises:
        UserError: loss or gradient is not finite.
    """
    train(
        model,
        source=Source(updates=updates, total=total_updates, state=state, finished=finished, on_update=on_update),
        loss=_loss,
        settings=settings,
        temperature=temperature,
        seed=seed,
        tokenizer=tokenizer,
        folder=folder,
        resume_from=resume_from,
    )


def follow_policy(
    model: nn.Module,
    *,
    settings: PolicySettings,
    temperature: float,
    seed: int,
    folder: Path,
    resume_from: Checkpoint | None,
) -> None:
    """Take part, in another process, in the `train_policy` of the first one: updates and the end come from there."""
    train(
        model,
        source=Source(updates=lambda first: iter(()), total=None, state=dict),
        loss=_loss,
        settings=settings,
        temperature=temperature,
        seed=seed,
        tokenizer=None,
        folder=folder,
        resume_from=resume_from,
    )


def _loss(update: Update) -> LossFunction:
    """The loss of the algorithm that made the update."""
    assert update.algorithm is not None
    function: LossFunction = partial(update.algorithm.module.loss, update.algorithm.settings)
    return function
