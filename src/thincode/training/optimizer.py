"""How weights move: Muon for matrices and AdamW for the rest, or AdamW alone; and the learning rate over the updates."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from ..errors import RecipeError
from ..settings import settings

if TYPE_CHECKING:
    import torch
    from torch import nn


class OptimizerKind(StrEnum):
    """What moves the weights."""

    MUON = "muon"
    """Muon (Jordan et al. 2024) for matrices, AdamW for embeddings, head, norms and biases."""
    ADAMW = "adamw"


class Decay(StrEnum):
    """How the learning rate comes down after its constant stretch."""

    NONE = "none"
    LINEAR = "linear"
    COSINE = "cosine"


@settings
class OptimizerSettings:
    """Which optimizer, with which rates."""

    kind: OptimizerKind = OptimizerKind.ADAMW
    lr: float = 1e-6
    """Of AdamW: all weights, or those that are no matrices under Muon."""
    lr_matrices: float = 3e-2
    """Of Muon."""
    weight_decay: float = 0.0
    """Decoupled, on matrices and embeddings, never on norms and biases."""
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    momentum: float = 0.95
    """Of Muon (Nesterov)."""
    newton_schulz_steps: int = 4
    """Iterations that bring a matrix's momentum near an orthogonal one."""


@settings
class ScheduleSettings:
    """The learning rate as a share of the optimizer's, over the updates of a run."""

    warmup_updates: int = 0
    """Linear from 1/n to 1."""
    constant_share: float = 0.0
    """Share of the run, warm-up included, before the decay begins."""
    decay: Decay = Decay.NONE
    floor: float = 0.0
    """Share at the end."""


def build(settings: OptimizerSettings, model: nn.Module) -> torch.optim.Optimizer:
    """An optimizer over the parameters of `model` that require gradients."""
    import torch

    from ._muon import MuonAdamW

    ends = {id(end.weight) for end in _embeddings(model)}
    matrices: list[nn.Parameter] = []
    embeddings: list[nn.Parameter] = []
    rest: list[nn.Parameter] = []
    for parameter in model.parameters():
        if not parameter.requires_grad:
            continue
        kind = embeddings if id(parameter) in ends else matrices if parameter.ndim == 2 else rest
        kind.append(parameter)
    adam = {"lr": settings.lr, "betas": (settings.beta1, settings.beta2), "eps": settings.epsilon}
    decay = {"weight_decay": settings.weight_decay}
    groups: list[dict[str, Any]]
    if settings.kind is OptimizerKind.ADAMW:
        groups = [{"params": matrices + embeddings, **adam, **decay}, {"params": rest, **adam, "weight_decay": 0.0}]
        return torch.optim.AdamW([group for group in groups if group["params"]])
    muon = {"lr": settings.lr_matrices, "momentum": settings.momentum, "iterations": settings.newton_schulz_steps}
    groups = [
        {"params": matrices, "rule": "muon", **muon, **decay},
        {"params": embeddings, "rule": "adamw", **adam, **decay},
        {"params": rest, "rule": "adamw", **adam, "weight_decay": 0.0},
    ]
    return MuonAdamW([group for group in groups if group["params"]])


def _embeddings(model: Any) -> list[Any]:
    """Input embedding and head (one and the same where they are tied)."""
    return [end for end in (model.get_input_embeddings(), model.get_output_embeddings()) if end is not None]


def share_at(settings: ScheduleSettings, update: int, *, total: int | None) -> float:
    """The share of the learning rate at optimizer update `update` (from 0) of `total`.

    Raises:
        RecipeError: a decay without a known end.
    """
    if update < settings.warmup_updates:
        return (update + 1) / settings.warmup_updates
    if settings.decay is Decay.NONE:
        return 1.0
    if total is None:
        raise RecipeError(f"schedule.decay: {settings.decay} needs a run of known length; set decay: none")
    start = max(settings.warmup_updates, round(settings.constant_share * total))
    gone = min(max((update - start) / max(total - start, 1), 0.0), 1.0)
    left = 1.0 - gone if settings.decay is Decay.LINEAR else 0.5 * (1.0 + math.cos(math.pi * gone))
    return settings.floor + (1.0 - settings.floor) * left


def schedule(
    settings: ScheduleSettings, optimizer: torch.optim.Optimizer, *, total: int | None
) -> torch.optim.lr_scheduler.LambdaLR:
    """`share_at` as a scheduler; `total` updates, None where the end is not known."""
    from torch.optim.lr_scheduler import LambdaLR

    return LambdaLR(optimizer, lambda update: share_at(settings, update, total=total))
