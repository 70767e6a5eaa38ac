"""What a recipe's RL will ask of a machine, before anything runs: an estimate, and what it rests on.

Nothing here has been measured on the GPUs named: peak figures are their data sheets', shares of them are assumptions, said with
each estimate. Good for a factor of two, and for seeing that a run needs days and not hours.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import RecipeError
from ..training.on_accelerate.loop import Head
from .recipe import Recipe, RlSection, SftSection

GIB = 2**30
CONTEXT_SHARE = 0.5
"""A rollout is assumed to use so much of its context."""
DECODE_SHARE, TRAIN_SHARE = 0.5, 0.35
"""Of the memory's bandwidth while decoding, and of the peak rate while training, that are reached."""
STEP_FLOOR_S = 0.02
"""Of one step of decoding, however small the model: its kernels must be started."""
BLOCKS, BLOCK_CPU_S = 6.0, 0.5
"""Blocks a rollout runs (ThinC-4B: 6.1; never more than its calls) and CPU seconds a block takes, its worker's start included."""


@dataclass(frozen=True)
class Gpu:
    """A data sheet."""

    memory_gib: float
    peak_tflops: float
    """Dense bfloat16."""
    bandwidth_gbps: float


GPUS: Mapping[str, Gpu] = {
    "h200": Gpu(141e9 / GIB, 989, 4_800),
    "h100": Gpu(80e9 / GIB, 989, 3_350),
    "a100": Gpu(80e9 / GIB, 312, 2_039),
    "l40s": Gpu(48e9 / GIB, 362, 864),
    "rtx4090": Gpu(24e9 / GIB, 165, 1_008),
}


@dataclass(frozen=True)
class Shape:
    """Of a model, as far as memory and time depend on it."""

    parameters: float
    layers: int
    hidden: int
    kv_width: int
    """Key heads × their width."""
    vocabulary: int


SHAPES: Mapping[str, Shape] = {
    "135m": Shape(0.135e9, 30, 576, 192, 49_152),
    "1.7b": Shape(1.72e9, 28, 2048, 1024, 151_936),
    "4b": Shape(4.02e9, 36, 2560, 1024, 151_936),
    "7b": Shape(7.62e9, 28, 3584, 512, 152_064),
    "8b": Shape(8.19e9, 36, 4096, 1024, 151_936),
}
"""SmolLM2-135M, Qwen3-1.7B, Qwen3-4B, Qwen2.5-Math-7B and Qwen3-8B, by the size in a recipe's or a model's name."""


def of_rl(recipe: Recipe, *, gpu: str, gpus: int = 1) -> tuple[dict[str, Any], list[str]]:
    """Figures by name, and the assumptions they rest on.

    Args:
        recipe: with a section rl.
        gpu: a name in `GPUS`.
        gpus: how many; each holds weights, gradients and moments (RL is not sharded), and takes its share of the updates. Sampling
            from a server counts as spread over them; the local engine samples on the first alone.

    Raises:
        RecipeError: no such GPU, or the model's size can't be told.
    """
    section = recipe.rl
    if section is None:
        raise RecipeError("the recipe has no section rl, so there is nothing to estimate")
    if gpu not in GPUS:
        raise RecipeError(f"--gpu {gpu}: not known; known: {', '.join(GPUS)}")
    card, shape = GPUS[gpu], _shape(recipe, section)
    figures: dict[str, Any] = {"gpu": gpu, "gpus": gpus, "parameters": shape.parameters}
    figures |= _work(section)
    figures |= _memory(section, shape, card, live=recipe.live)
    generate_s, train_s = _seconds(section, shape, card, batch=figures["sequences_at_once"])
    generate_s, train_s = generate_s / (1 if section.engine.name == "local" else gpus), train_s / gpus
    calls = sum(_blocks(stage.calls) * stage.steps for stage in section.stages) * _group(section)
    figures |= {
        "generate_hours": round(generate_s / 3600, 2),
        "train_hours": round(train_s / 3600, 2),
        "hours": round((generate_s + train_s) / 3600, 2),
        "interpreter_cores": math.ceil(calls * BLOCK_CPU_S / max(generate_s, 1e-9)),
        "interpreter_memory_gib": math.ceil(recipe.live * recipe.interpreter.limits.memory_mib / 1024),
        "disk_gib": round(_disk(section, shape, figures["tokens"]) / GIB, 1),
    }
    return figures, _assumptions(section, card)


def text(figures: Mapping[str, Any], assumptions: list[str]) -> str:
    """For a terminal."""
    rows = [
        ("model", f"{figures['parameters'] / 1e9:.3g} billion parameters"),
        ("steps", f"{figures['steps']:,} of {figures['rollouts_per_step']:,} rollouts"),
        ("rollouts", f"{figures['rollouts']:,}"),
        ("tokens", f"{figures['tokens'] / 1e9:.3g} billion, prompts and outputs included"),
        ("GPU memory", f"{figures['train_gib']:.0f} GiB to train + {figures['cache_gib']:.0f} GiB of KV cache for "
                       f"{figures['sequences_at_once']} sequences, of {figures['gpu_gib']:.0f} GiB"),
        ("hours", f"{figures['hours']:,.4g} on {figures['gpus']} × {figures['gpu']} "
                  f"({figures['generate_hours']:,.4g} sampling, {figures['train_hours']:,.4g} training)"),
        ("interpreter", f"{figures['interpreter_cores']} cores, at most {figures['interpreter_memory_gib']} GiB"),
        ("disk", f"{figures['disk_gib']:,.4g} GiB"),
    ]  # fmt: skip
    lacking = figures["train_gib"] > figures["gpu_gib"]
    crowded = figures["sequences_at_once"] < 8 and figures["rollouts_per_step"] >= 8
    advice = (
        "Training alone does not fit this GPU: take a larger one, a smaller model or a smaller policy.micro_tokens. Weights in "
        "pieces (FSDP, DeepSpeed) serve SFT only."
        if lacking
        else "Little room is left for sequences: sample from a server on GPUs of its own (rl.engine: vllm), or take larger GPUs."
    )
    warning = ["", advice] if lacking or crowded else []
    lines = [f"{name:<13}{value}" for name, value in rows]
    return "\n".join([*lines, *warning, "", "Assumed, not measured:", *(f"- {one}" for one in assumptions)])


def _shape(recipe: Recipe, section: RlSection) -> Shape:
    config = Path(section.model or "", "config.json")
    if section.model and config.is_file():
        return shape_of(json.loads(config.read_text(encoding="utf-8")))
    if section.model is None and recipe.sft is not None and recipe.sft.model.path is None:
        return shape_of_own(recipe.sft)
    found = shape_by_name(f"{section.model or ''} {recipe.sft.model.path if recipe.sft else ''} {recipe.name}")
    if found is not None:
        return found
    raise RecipeError(
        "rl.model: its size can't be told without the model's folder; name one that is there with --model DIR "
        f"(known by name: {', '.join(SHAPES)})"
    )


def shape_by_name(text: str) -> Shape | None:
    """The shape of the size that stands in a text, such as a model's or a recipe's name."""
    sizes = sorted(SHAPES, key=len, reverse=True)
    return next((SHAPES[size] for size in sizes if size in text.lower()), None)


def shape_of_own(section: SftSection) -> Shape:
    """The shape of a model that SFT builds from scratch."""
    own = section.model
    return shape_of(
        {
            "num_hidden_layers": own.layers,
            "hidden_size": own.hidden,
            "intermediate_size": own.intermediate,
            "num_attention_heads": own.heads,
            "num_key_value_heads": own.kv_heads,
            "head_dim": own.head_dim,
            "vocab_size": section.tokenizer_size,
        }
    )


def shape_of(config: Mapping[str, Any]) -> Shape:
    """The shape that a model's config.json tells."""
    layers, hidden, heads = (config[key] for key in ("num_hidden_layers", "hidden_size", "num_attention_heads"))
    width = config.get("head_dim") or hidden // heads
    kv_width = config.get("num_key_value_heads", heads) * width
    attention = hidden * (2 * heads * width + 2 * kv_width)
    mlp = 3 * hidden * config.get("intermediate_size", 4 * hidden)
    parameters = layers * (attention + mlp) + hidden * config["vocab_size"]
    return Shape(float(parameters), layers, hidden, kv_width, config["vocab_size"])


def _group(section: RlSection) -> int:
    return section.problems_per_step * section.samples


def _blocks(calls: int) -> float:
    return min(BLOCKS, calls)


def _work(section: RlSection) -> dict[str, Any]:
    steps = sum(stage.steps for stage in section.stages)
    each = _group(section)
    tokens = sum(stage.steps * each * CONTEXT_SHARE * stage.context_tokens for stage in section.stages)
    return {
        "steps": steps,
        "rollouts_per_step": each,
        "rollouts": steps * each,
        "updates": steps * section.updates_per_step,
        "tokens": round(tokens),
    }


def _memory(section: RlSection, shape: Shape, card: Gpu, *, live: int) -> dict[str, Any]:
    """Of each GPU."""
    weights = 16.0 * shape.parameters  # float32 weights, gradients and AdamW's two moments
    row = min(section.policy.micro_tokens, max(stage.context_tokens for stage in section.stages))
    kept = 1 if section.policy.activation_checkpointing else 14
    activations = 2.0 * row * shape.hidden * (shape.layers * kept + 14)
    head = 0.0 if section.policy.head is Head.FUSED else 8.0 * row * shape.vocabulary
    train = (weights + activations + head) / GIB
    longest = max(stage.context_tokens for stage in section.stages)
    per_sequence = _cache_per_token(shape) * CONTEXT_SHARE * longest / GIB
    room = max(0.92 * card.memory_gib - train, 0.0)
    batch = max(1, min(live, int(room / per_sequence)))
    return {
        "train_gib": round(train, 2),
        "cache_gib": round(batch * per_sequence, 2),
        "sequences_at_once": batch,
        "gpu_gib": round(card.memory_gib, 1),
    }


def _cache_per_token(shape: Shape) -> float:
    return 2.0 * 2.0 * shape.layers * shape.kv_width  # keys and values, two bytes


def _seconds(section: RlSection, shape: Shape, card: Gpu, *, batch: int) -> tuple[float, float]:
    """Of sampling and of training, on one GPU."""
    generate = train = 0.0
    for stage in section.stages:
        tokens = stage.steps * _group(section) * CONTEXT_SHARE * stage.context_tokens
        # A step of decoding reads all weights, and the cache of every sequence, half full on average.
        cache = batch * _cache_per_token(shape) * CONTEXT_SHARE * stage.context_tokens / 2
        step_s = (2.0 * shape.parameters + cache) / (DECODE_SHARE * card.bandwidth_gbps * 1e9)
        generate += tokens / batch * max(step_s, STEP_FLOOR_S)
        work = 8.0 if section.policy.activation_checkpointing else 6.0
        train += tokens * work * shape.parameters / (TRAIN_SHARE * card.peak_tflops * 1e12)
    return generate, train


def _disk(section: RlSection, shape: Shape, tokens: int) -> float:
    checkpoints = 3 * 12.0 * shape.parameters  # two are kept while a third is written: weights and moments
    models = (len(section.stages) + 1) * 4.0 * shape.parameters
    return checkpoints + models + tokens * (4.0 + (9.0 if section.keep_ids else 0.0))


def _assumptions(section: RlSection, card: Gpu) -> list[str]:
    return [
        f"a rollout uses {CONTEXT_SHARE:.0%} of its stage's context; no refills, no early stop, no validation",
        f"a rollout runs {BLOCKS:g} blocks, or its calls where those are fewer, at {BLOCK_CPU_S} CPU seconds each",
        f"decoding reads memory at {DECODE_SHARE:.0%} of {card.bandwidth_gbps:,.0f} GB/s, in batches as large as fit",
        f"training reaches {TRAIN_SHARE:.0%} of {card.peak_tflops:,.0f} TFLOP/s; weights, gradients and moments in float32, "
        "whole on every GPU",
        "4 bytes of text a token on disk" + (", 9 more for ids and log-probabilities" if section.keep_ids else ""),
    ]
