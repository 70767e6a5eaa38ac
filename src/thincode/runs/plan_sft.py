"""What a recipe's SFT will ask of a machine, before anything runs: steps, tokens, memory of each GPU, hours; and on what basis."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import RecipeError
from ..grading.spans import has_spans, length
from ..training.on_accelerate.loop import Head
from . import sieve
from .plan import GIB, GPUS, TRAIN_SHARE, Gpu, Shape, shape_by_name, shape_of, shape_of_own
from .recipe import Recipe, SftSection

EXAMPLES = 12_200
"""Assumed where no distillation is there yet: what ThinC kept."""
CONTEXT_SHARE = 0.25
"""Of the context, an example's assumed length where none is there."""
CHARACTERS_A_TOKEN = 3.0
CHECKPOINTED, WHOLE = 1.0, 14.0
"""Hidden vectors kept a layer and token for the backward pass, with activation checkpointing and without."""


def of_sft(recipe: Recipe, *, gpu: str, gpus: int = 1) -> tuple[dict[str, Any], list[str]]:
    """Figures by name, and the assumptions they rest on.

    Args:
        recipe: with a section sft.
        gpu: a name in `plan.GPUS`.
        gpus: how many; several share weights, gradients and moments (FSDP), and the micro-batches of an update.

    Raises:
        RecipeError: no such GPU, or the model's size can't be told.
    """
    section = recipe.sft
    if section is None:
        raise RecipeError("the recipe has no section sft, so there is nothing to estimate")
    if gpu not in GPUS:
        raise RecipeError(f"--gpu {gpu}: not known; known: {', '.join(GPUS)}")
    card, shape = GPUS[gpu], _shape(recipe, section)
    examples, mean_tokens, found = _data(section)
    figures: dict[str, Any] = {"gpu": gpu, "gpus": gpus, "parameters": shape.parameters}
    figures |= _work(section, examples, mean_tokens)
    memory = _memory(section, shape, gpus=gpus)
    figures |= {"train_gib": round(memory / GIB, 2), "gpu_gib": round(card.memory_gib, 1)}
    work = (8.0 if section.train.activation_checkpointing else 6.0) * shape.parameters * figures["tokens"]
    figures["hours"] = round(work / (TRAIN_SHARE * card.peak_tflops * 1e12) / gpus / 3600, 2)
    return figures, [found, *_assumptions(section, card, gpus)]


def text(figures: Mapping[str, Any], assumptions: Sequence[str]) -> str:
    """For a terminal."""
    fits = (
        "fits"
        if figures["train_gib"] < 0.92 * figures["gpu_gib"]
        else "does not fit: more GPUs, LoRA, or fewer micro_tokens"
    )
    rows = [
        ("model", f"{figures['parameters'] / 1e9:.3g} billion parameters"),
        ("examples", f"{figures['examples']:,} of {figures['mean_tokens']:,} tokens on average"),
        ("steps", f"{figures['steps']:,}"),
        ("tokens", f"{figures['tokens'] / 1e6:,.4g} million, prompts and outputs included"),
        (
            "GPU memory",
            f"{figures['train_gib']:.0f} GiB on each of {figures['gpus']}, of {figures['gpu_gib']:.0f} GiB: {fits}",
        ),
        ("hours", f"{figures['hours']:,.4g} on {figures['gpus']} × {figures['gpu']}"),
    ]
    lines = [f"{name:<13}{value}" for name, value in rows]
    return "\n".join([*lines, "", "Assumed, not measured:", *(f"- {one}" for one in assumptions)])


def _shape(recipe: Recipe, section: SftSection) -> Shape:
    path = section.model.path
    if path is None:
        return shape_of_own(section)
    config = Path(path, "config.json")
    if config.is_file():
        return shape_of(json.loads(config.read_text(encoding="utf-8")))
    found = shape_by_name(f"{path} {recipe.name}")
    if found is None:
        raise RecipeError(
            f"sft.model.path: the size of {path!r} can't be told without its folder; name one that is there"
        )
    return found


def _data(section: SftSection) -> tuple[int, float, str]:
    """Examples an epoch, their mean length, and where that is from."""
    parts = [(Path(part.data), part.weight) for part in section.mix]
    parts = parts or ([(Path(section.data), 1.0)] if section.data else [])
    if not parts or not all((place / sieve.VERDICTS).is_file() for place, _ in parts):
        tokens = round(CONTEXT_SHARE * section.train.context_tokens)
        return EXAMPLES, tokens, f"no distillation yet: {EXAMPLES:,} examples, as ThinC kept, of {tokens:,} tokens each"
    count = total = 0.0
    for place, weight in parts:
        for trajectory in sieve.kept(place):
            size = float(length(trajectory).total)
            count += weight
            total += weight * (size if has_spans(trajectory) else size / CHARACTERS_A_TOKEN)
    where = ", ".join(str(place) for place, _ in parts)
    return (
        round(count),
        total / max(count, 1.0),
        f"examples counted in {where}; {CHARACTERS_A_TOKEN:g} characters a token, no prompt",
    )


def _work(section: SftSection, examples: int, mean_tokens: float) -> dict[str, Any]:
    train = section.train
    batch = train.batch_examples or max(train.batch_tokens / mean_tokens, 1.0)
    limits = [
        math.ceil(examples / batch) * train.epochs if train.epochs is not None else None,
        train.max_steps,
        math.ceil(train.max_tokens / (batch * mean_tokens)) if train.max_tokens is not None else None,
    ]
    steps = min((limit for limit in limits if limit is not None), default=0)
    tokens = round(min(steps * batch, examples * (train.epochs or math.inf)) * mean_tokens)
    return {"examples": examples, "mean_tokens": round(mean_tokens), "steps": steps, "tokens": tokens}


def _memory(section: SftSection, shape: Shape, *, gpus: int) -> float:
    """Bytes on each GPU."""
    if section.lora is None:
        states = 16.0 * shape.parameters / gpus
    else:
        # Additions to seven matrices a layer, about twice the hidden size wide; the weights stand still in float32.
        added = section.lora.rank * shape.layers * 7 * 4 * shape.hidden
        states = (4.0 * shape.parameters + 16.0 * added) / gpus
    states += 2.0 * shape.parameters * (gpus > 1)
    row = min(section.train.micro_tokens, section.train.context_tokens)
    kept = CHECKPOINTED if section.train.activation_checkpointing else WHOLE
    activations = 2.0 * row * shape.hidden * (shape.layers * kept + WHOLE)
    head = 0.0 if section.train.head is Head.FUSED else 8.0 * row * shape.vocabulary
    return states + activations + head


def _assumptions(section: SftSection, card: Gpu, gpus: int) -> list[str]:
    states = "float32 weights with AdamW's gradients and moments, 16 bytes a parameter"
    states = states if section.lora is None else "float32 weights that stand still, and LoRA's own states"
    return [
        states + (f", shared by {gpus} GPUs, and a bfloat16 copy of what a layer gathers" if gpus > 1 else ""),
        f"activations of one micro-batch, {CHECKPOINTED:g} hidden vector a layer with checkpointing, {WHOLE:g} without",
        f"training reaches {TRAIN_SHARE:.0%} of {card.peak_tflops:,.0f} TFLOP/s; attention's own work is left out",
    ]
