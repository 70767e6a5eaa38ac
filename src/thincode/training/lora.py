"""LoRA (Hu et al. 2022, arXiv 2106.09685): low-rank additions are trained, the model's own weights stand still.

A checkpoint holds the additions alone; what a run leaves as its model has them merged, so that nothing behind it needs peft.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from ..errors import ModelError
from ..settings import Share, settings

if TYPE_CHECKING:
    from torch import nn


@settings
class LoraSettings:
    """How large the additions are, and where they sit."""

    rank: Annotated[int, Field(ge=1)] = 16
    alpha: float = 32.0
    """An addition is scaled by alpha / rank."""
    dropout: Share = 0.0
    targets: tuple[str, ...] = ()
    """Names of the modules that get one, such as `q_proj`; none stands for all linear ones but the head."""


def add(model: nn.Module, settings: LoraSettings, *, seed: int) -> nn.Module:
    """The model with additions that change nothing yet; only they require gradients.

    Raises:
        ModelError: no module has a name in `targets`.
    """
    import warnings

    import torch
    from peft import LoraConfig, get_peft_model

    config = LoraConfig(
        r=settings.rank,
        lora_alpha=settings.alpha,
        lora_dropout=settings.dropout,
        target_modules=list(settings.targets) or "all-linear",
        task_type="CAUSAL_LM",
    )
    with torch.random.fork_rng(), warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # peft asks transformers by a name that is to go
        torch.manual_seed(seed)
        try:
            changed: nn.Module = get_peft_model(model, config)
        except ValueError as error:
            raise ModelError(
                f"lora.targets: {error}; name modules of this model, or none for all linear ones"
            ) from None
    return changed


def restore(model: Any, folder: Path) -> None:
    """Put the additions of a checkpoint into a model that `add` made."""
    from peft import load_peft_weights, set_peft_model_state_dict

    set_peft_model_state_dict(model, load_peft_weights(str(folder)))


def merged(model: Any) -> nn.Module:
    """The plain model with the additions in its weights; `model` can't be trained on."""
    plain: nn.Module = model.merge_and_unload()
    return plain


def is_lora(model: Any) -> bool:
    """Whether `add` made it."""
    return hasattr(model, "peft_config") and hasattr(model, "merge_and_unload")
