"""Several processes, as `accelerate launch` or `torchrun` start them: the first one runs the loop, the others follow it."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import TypeVar

from ...errors import RecipeError

PATIENCE = timedelta(days=1)
"""How long a process waits for the others: rollouts, or a validation, may take hours in the first one."""

T = TypeVar("T")


def rank() -> int:
    """Number of this process; 0 where there is one."""
    return int(os.environ.get("RANK", "0"))


def count() -> int:
    """How many processes there are."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def refuse_shards(what: str) -> None:
    """Refuse a launch that gives each process only a part of the weights.

    Raises:
        RecipeError: names the launch's setting, and what to do instead.
    """
    for variable, name in (("ACCELERATE_USE_FSDP", "FSDP"), ("ACCELERATE_USE_DEEPSPEED", "DeepSpeed")):
        if os.environ.get(variable, "false").lower() == "true":
            raise RecipeError(
                f"{what} was launched with {name}, which gives each process a part of the weights, and the engine that samples "
                "needs all of them; launch it with distributed_type: MULTI_GPU, and where the model does not fit a GPU with its "
                "optimizer use activation_checkpointing, a smaller micro_tokens or a lighter optimizer"
            )


def agree(value: T) -> T:
    """What the first process says, in every process; each waits for the others here."""
    if count() == 1:
        return value
    import torch
    from accelerate import PartialState
    from accelerate.utils import broadcast_object_list

    PartialState(
        cpu=not torch.cuda.is_available(), timeout=PATIENCE
    )  # joins the others; what Trainer does itself comes later
    box = [value]
    broadcast_object_list(box)
    return box[0]
