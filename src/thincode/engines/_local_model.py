"""The model behind the engine `local`: loaded from a folder, or checked when it is given."""

from __future__ import annotations

import inspect
from collections.abc import Collection
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import nn

from ..errors import ModelError


class Ends(Protocol):
    """What this engine asks of a tokenizer."""

    @property
    def eos_ids(self) -> Collection[int]:
        """The ids that end a turn."""


_WEIGHTS = ("*.safetensors", "*.bin")


def load(folder: str, *, dtype: str, device: str) -> nn.Module:
    """A causal language model from a folder in transformers' layout.

    Args:
        folder: has `config.json` and weights.
        dtype: `auto` (as saved), `float32`, `bfloat16` or `float16`.
        device: `auto` takes the first CUDA device where there is one, else the CPU.

    Raises:
        ModelError: no such folder, no weights in it, or transformers can't read it.
    """
    path = Path(folder)
    if not path.is_dir():
        raise ModelError(f"engine local: model: {folder} is no folder; give one with config.json and *.safetensors")
    for pattern in (("config.json", "adapter_config.json"), _WEIGHTS):
        if not any(found for name in pattern for found in path.glob(name)):
            raise ModelError(
                f"engine local: model: {folder} has no {' or '.join(pattern)}; a model folder needs a config, weights and a "
                "tokenizer: name the checkpoint of a finished run, or download the weights into it"
            )
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()  # a run has its own
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        model: nn.Module = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, local_files_only=True)
        return model.to(device)
    except Exception as error:  # Config, weights, code or device: whatever it is, the folder can't be used here.
        raise ModelError(f"engine local: model: {folder} can't be loaded on {device}: {error}") from error


def check(model: nn.Module) -> None:
    """Refuse what this engine would get wrong.

    Raises:
        ModelError: weights are missing or spread over devices or processes, the attention is not plain causal attention, or
            the implementation of attention takes no mask of ours.
    """
    how = _how_sharded(model)
    if how:
        raise ModelError(
            f"engine local: the model is sharded ({how}), but this engine needs all weights on one device of this process; "
            "serve the model and use `engine: vllm`"
        )
    if any(parameter.is_meta for parameter in model.parameters()):
        raise ModelError("engine local: the model has no weights (meta device); load them before opening the engine")
    config: Any = model.config
    attention = config._attn_implementation
    if attention not in ("sdpa", "eager"):
        raise ModelError(
            f"engine local: attention implementation {attention!r} takes no mask for rows of different lengths; "
            "load the model with attn_implementation='sdpa'"
        )
    other = _other_than_full_attention(config)
    if other:
        raise ModelError(
            f"engine local: the model has {other}; only full causal attention is cached; use `engine: vllm`"
        )
    accepted = inspect.signature(getattr(model, "get_base_model", lambda: model)().forward).parameters
    missing = [name for name in ("cache", "position_ids", "logits_to_keep") if name not in accepted]
    if missing:
        raise ModelError(
            f"engine local: {type(model).__name__} takes no {', '.join(missing)}; it is no decoder-only language model that "
            "this version of transformers caches; use `engine: vllm`"
        )


def _how_sharded(model: nn.Module) -> str:
    devices = {str(place) for place in (getattr(model, "hf_device_map", None) or {}).values()}
    if len(devices) > 1:
        return f"hf_device_map on {', '.join(sorted(devices))}"
    for module in model.modules():
        if type(module).__name__ == "FullyShardedDataParallel":
            return "FSDP"
    found: set[str] = set()
    for parameter in model.parameters():
        if hasattr(parameter, "ds_id"):
            return "DeepSpeed ZeRO-3"
        if type(parameter.data).__name__ == "DTensor" or type(parameter).__name__ == "DTensor":
            return "FSDP2 or tensor parallel"
        found.add(str(parameter.device))
    return f"parameters on {', '.join(sorted(found))}" if len(found) > 1 else ""


def _other_than_full_attention(config: Any) -> str:
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"]) - {"full_attention"}
    if kinds:
        return f"layers of kind {', '.join(sorted(kinds))}"
    window = getattr(config, "sliding_window", None)
    reach = getattr(config, "max_position_embeddings", None)
    # Without layer_types every layer uses the window, unless it is switched off or wider than any context.
    if getattr(config, "layer_types", None) or not window or not getattr(config, "use_sliding_window", True):
        return ""
    return "" if reach and window >= reach else f"a sliding window of {window} positions"


def ends(model: nn.Module, tokenizer: Ends | None) -> frozenset[int]:
    """The ids that end a turn: those of the generation config, the config and the tokenizer."""
    found: set[int] = set() if tokenizer is None else set(tokenizer.eos_ids)
    for config in (getattr(model, "generation_config", None), model.config):
        value = getattr(config, "eos_token_id", None)
        found.update([value] if isinstance(value, int) else value or [])
    return frozenset(found)
