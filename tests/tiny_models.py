"""Tiny models with random weights, of several architectures."""

from __future__ import annotations

from typing import Any

ARCHITECTURES = ("qwen3", "qwen2", "llama", "gpt2")


def tiny_model(architecture: str, *, vocabulary: int, positions: int = 512, attention: str = "sdpa") -> Any:
    """Two layers, hidden 32; qwen3, qwen2 and llama with grouped key/value heads; large weights, so that draws differ."""
    import torch
    import transformers

    shared = {
        "vocab_size": vocabulary,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": positions,
        "initializer_range": 0.2,
        "bos_token_id": None,
        "eos_token_id": None,
        "pad_token_id": None,
        "attn_implementation": attention,
    }
    gpt2 = {
        **{
            key: shared[key]
            for key in ("vocab_size", "initializer_range", "bos_token_id", "eos_token_id", "attn_implementation")
        },
        "n_embd": 32,
        "n_layer": 2,
        "n_head": 4,
        "n_positions": positions,
    }
    config, values = {
        "qwen3": ("Qwen3", {**shared, "head_dim": 8}),
        "qwen2": ("Qwen2", shared),
        "llama": ("Llama", shared),
        "gpt2": ("GPT2", gpt2),
    }[architecture]
    state = torch.random.get_rng_state()
    torch.manual_seed(0)
    try:
        model_class = {"GPT2": "GPT2LMHeadModel"}.get(config, f"{config}ForCausalLM")
        return getattr(transformers, model_class)(getattr(transformers, f"{config}Config")(**values))
    finally:
        torch.random.set_rng_state(state)
