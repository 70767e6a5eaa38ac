"""The training loop that SFT and RL share: they differ in where updates come from and in the loss, in nothing else."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ...errors import UserError
from ...settings import settings
from .. import Update, checkpoint
from ..algorithms import Loss
from ..batch import Layout
from ..optimizer import OptimizerSettings, ScheduleSettings

if TYPE_CHECKING:
    import torch
    from torch import nn

    from ...trajectory.tokenizer import Tokenizer


class Tracker(StrEnum):
    """Where figures can be watched besides the run folder."""

    TENSORBOARD = "tensorboard"
    TRACKIO = "trackio"
    WANDB = "wandb"


class Precision(StrEnum):
    """In what the forward pass is computed; weights and optimizer state stay as the model has them."""

    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"


class Head(StrEnum):
    """How log-probabilities are made from hidden states; both compute trained positions only."""

    GATHERED = "gathered"
    """One projection."""
    FUSED = "fused"
    """TRL's, in tiles: never holds all logits. For large vocabularies and long rows on a GPU."""


@settings
class LoopSettings:
    """What SFT and RL have in common."""

    optimizer: OptimizerSettings = OptimizerSettings()
    schedule: ScheduleSettings = ScheduleSettings()
    micro_tokens: int = 16_384
    """Tokens of one forward and backward, padding counted. Changes memory and speed, never the result."""
    layout: Layout = Layout.PADDED
    head: Head = Head.GATHERED
    precision: Precision = Precision.FLOAT32
    activation_checkpointing: bool = False
    """Compute activations again in the backward pass: slower, far less memory."""
    max_grad_norm: float = 1.0
    checkpoint_every: int = 20
    """Steps between checkpoints; there is one at the end in any case."""
    log_every: int = 1
    """Updates between two records of the log; a checkpoint's update is always logged."""
    report_to: str = "none"
    """One of transformers' integrations, for example `tensorboard` or `wandb`."""


class LossFunction(Protocol):
    """What `Algorithm.loss` is once its settings are bound; `old_BT` and `reference_BT` come where the rows have them."""

    def __call__(
        self,
        *,
        logprob_BT: torch.Tensor,
        behavior_BT: torch.Tensor,
        advantage_BT: torch.Tensor,
        weight_BT: torch.Tensor,
        **more: torch.Tensor,
    ) -> Loss:
        """Sum over a micro-batch."""


@dataclass(frozen=True)
class Source:
    """Where the updates come from."""

    updates: Callable[[int], Iterator[Update]]
    """Given the number of steps completed, the updates that follow. Called once, in the first process only. What stands
    behind a `yield` runs after that update was made, and after its checkpoint was written if it has one."""
    total: int | None
    """Updates of the whole run; None where it is not known."""
    state: Callable[[], Mapping[str, Any]]
    """What a checkpoint shall remember beside weights; JSON values. Called when one is written."""
    finished: Callable[[], bool] = lambda: True
    """Asked when the updates have ended: False if the run was stopped, and shall go on from its last checkpoint."""
    on_update: Callable[[dict[str, float]], None] = lambda record: None
    """Gets one record for each logged update, before a checkpoint of it is written."""


def train(
    model: nn.Module,
    *,
    source: Source,
    loss: Callable[[Update], LossFunction],
    settings: LoopSettings,
    temperature: float,
    seed: int,
    tokenizer: Tokenizer | None,
    folder: Path,
    resume_from: checkpoint.Checkpoint | None,
) -> None:
    """Make all updates of `source`, with checkpoints in `folder`; `model` holds the trained weights afterwards.

    Resumed from one of its checkpoints on the same machine, a run makes the same updates bit by bit (float32, CPU).

    Args:
        model: a transformers causal language model; changed in place.
        source: the updates.
        loss: what an update is judged by; pure; the sum over its micro-batches is the loss.
        settings: of the loop.
        temperature: logits are divided by it before log-probabilities are taken.
        seed: of dropout.
        tokenizer: saved into each checkpoint, so that plain transformers can load it.
        folder: the run's `checkpoint/`.
        resume_from: from `checkpoint.latest`.

    Raises:
        UserError: loss or gradient is not finite. The update was not made, and no checkpoint of it written.
    """
    import torch

    from ._trainer import UpdateTrainer

    if resume_from is not None and resume_from.finished:
        _take_weights(model, resume_from.path)
        return
    writing = folder / checkpoint.WRITING
    shutil.rmtree(writing, ignore_errors=True)
    trainer = UpdateTrainer(
        model,
        source=source,
        loss=loss,
        settings=settings,
        temperature=temperature,
        seed=seed,
        tokenizer=tokenizer,
        folder=folder,
        writing=writing,
        resume_from=resume_from,
    )
    try:
        trainer.train(resume_from_checkpoint=str(resume_from.path) if resume_from else None)
    except torch.OutOfMemoryError as error:
        raise _out_of_memory(error, settings) from None
    finally:
        trainer.close()
        shutil.rmtree(writing, ignore_errors=True)


def _out_of_memory(error: Exception, settings: LoopSettings) -> UserError:
    return UserError(
        f"out of GPU memory in an update (micro_tokens={settings.micro_tokens}): {str(error).splitlines()[0]} Go on with "
        "--resume and a lower micro_tokens, activation_checkpointing: true, head: fused, LoRA, or more GPUs"
    )


def _take_weights(model: nn.Module, folder: Path) -> None:
    from .. import lora, models

    if lora.is_lora(model):
        lora.restore(model, folder)
    else:
        model.load_state_dict(models.load(str(folder)).state_dict())


def close(updates: Iterator[Update]) -> None:
    """Let a generator run its `finally` blocks now, not when it is collected."""
    if isinstance(updates, Generator):
        updates.close()
