"""Several processes, as `accelerate launch` or `torchrun` start them: the first one runs the loop, the others follow it."""

from __future__ import annotations

import os
from typing import TypeVar

T = TypeVar("T")


def rank() -> int:
    """Number of this process; 0 where there is one."""
    return int(os.environ.get("RANK", "0"))


def count() -> int:
    """How many processes there are."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def agree(value: T) -> T:
    """What the first process says, in every process; each waits for the others here."""
    if count() == 1:
        return value
    import torch
    from accelerate import PartialState
    from accelerate.utils import broadcast_object_list

    PartialState(cpu=not torch.cuda.is_available())  # joins the others; what Trainer does itself comes later
    box = [value]
    broadcast_object_list(box)
    return box[0]
