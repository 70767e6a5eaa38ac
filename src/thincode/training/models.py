"""Models as plain transformers folders: build one from scratch, load one, save one."""

from __future__ import annotations

import os
import shutil
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..atomic import sync_folder
from ..errors import ModelError, require
from ..settings import settings

if TYPE_CHECKING:
    from torch import nn

    from ..trajectory.tokenizer import Tokenizer


@settings
class ModelSettings:
    """Where a model comes from: a `path`, or from scratch (Qwen3's architecture; the defaults are the tiny model's)."""

    path: str | None = None
    """A folder, or the id of a model on the hub; the other fields are then without effect."""
    layers: int = 2
    hidden: int = 128
    heads: int = 4
    head_dim: int = 32
    kv_heads: int = 4
    intermediate: int = 384
    context_tokens: int = 4_096
    rope_theta: float = 10_000.0
    tied_head: bool = True
    dropout: float = 0.0
    """Of the attention."""


def quiet() -> None:
    """Keep transformers' progress bars off the terminal, and what its trainer guesses about our endless loader."""
    import logging as standard

    from transformers.utils import logging

    logging.disable_progress_bar()
    standard.getLogger("transformers.trainer").setLevel(standard.ERROR)


def build(settings: ModelSettings, *, vocabulary: int, eos_id: int, pad_id: int, seed: int) -> nn.Module:
    """A model with random float32 weights drawn from `seed`; the global random state is left as it was."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    config = Qwen3Config(
        vocab_size=vocabulary,
        hidden_size=settings.hidden,
        intermediate_size=settings.intermediate,
        num_hidden_layers=settings.layers,
        num_attention_heads=settings.heads,
        num_key_value_heads=settings.kv_heads,
        head_dim=settings.head_dim,
        max_position_embeddings=settings.context_tokens,
        rope_parameters={"rope_type": "default", "rope_theta": settings.rope_theta},
        tie_word_embeddings=settings.tied_head,
        attention_dropout=settings.dropout,
        eos_token_id=eos_id,
        pad_token_id=pad_id,
        bos_token_id=None,
        dtype="float32",
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model: nn.Module = Qwen3ForCausalLM(config)
    return model


def local_folder(path: str) -> Path:
    """The folder of a model: `path` itself, or the copy of a hub's files in the local cache, downloaded where missing.

    Raises:
        ModelError: no such folder or id, or no configuration or weights in it.
    """
    folder = Path(path).expanduser()
    if folder.exists():
        _check_folder(folder)
        return folder
    if path.count("/") != 1 or path.startswith(("/", ".", "~")):
        raise ModelError(
            f"model.path: {path!r} is no folder; give a folder with config.json and weights, "
            "or a hub id such as Qwen/Qwen3-1.7B"
        )
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(path, allow_patterns=["*.json", "*.safetensors", "*.jinja"]))
    except (OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        raise ModelError(
            f"model.path: {path!r} can't be loaded ({reason}); check the spelling, download it first "
            f"(hf download {path}) where this machine has no network, or give a folder"
        ) from None


def load(path: str, *, dtype: str = "float32") -> nn.Module:
    """The model of a folder that `save` or a trainer wrote, or of a hub id.

    Raises:
        ModelError: no such folder or id, no configuration or weights in it, or they can't be read.
    """
    from transformers import AutoModelForCausalLM

    quiet()
    folder = local_folder(path)
    try:
        model: nn.Module = AutoModelForCausalLM.from_pretrained(str(folder), dtype=dtype)
    except (OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        raise ModelError(f"model.path: {folder} can't be loaded ({reason}); fetch or copy the folder again") from None
    return model


def convert(file: Path, folder: Path) -> Path:
    """Write a GGUF file as a model folder: float32 weights as they are dequantized, tokenizer, chat template.

    Done once, because reading a GGUF takes a minute for each hundred million parameters and a folder a second.

    Raises:
        ModelError: no such file, no GGUF, an architecture that transformers can't read from one; or the folder exists.
        MissingExtraError: the package gguf is missing.
    """
    require("torch", extra="train", needed_for="thincode model convert")
    require("gguf", extra="train", needed_for="thincode model convert")
    if folder.exists() and any(folder.iterdir()):
        raise ModelError(f"{folder}: exists already; name another folder")
    if not file.is_file():
        raise ModelError(f"{file}: no such file; name the .gguf file of a model")
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from ..trajectory.tokenizer import Tokenizer

    quiet()
    place = {"pretrained_model_name_or_path": str(file.parent), "gguf_file": file.name}
    try:
        words = AutoTokenizer.from_pretrained(**place)
        model: Any = AutoModelForCausalLM.from_pretrained(**place, dtype="float32")
    except (OSError, ValueError, KeyError, struct.error) as error:
        reason = (str(error).strip() or repr(error)).splitlines()[0]
        raise ModelError(f"{file}: can't be read as a GGUF model ({reason}); fetch it again, or another one") from None
    # The weights are plain ones now; transformers still takes them for quantized, and would not save them.
    del model.config.quantization_config
    model.hf_quantizer, model.is_quantized = None, False
    beside = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        words.save_pretrained(beside)
        model.save_pretrained(beside)
        check_fits(model, Tokenizer.load(beside), beside)
        put_in_place(beside, folder)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return folder


def check_fits(model: Any, tokenizer: Tokenizer, folder: Path) -> None:
    """Refuse a tokenizer that is not the model's own.

    Raises:
        ModelError: it has ids the model has no embedding for, or no chat template to ask a question in.
    """
    rows = model.get_input_embeddings().weight.shape[0]
    if tokenizer.vocab_size > rows:
        raise ModelError(
            f"{folder}: tokenizer.json has {tokenizer.vocab_size} ids, the model {rows} embeddings, so they don't belong "
            "together; copy tokenizer.json and tokenizer_config.json from the model's own folder"
        )
    if not tokenizer.has_template:
        raise ModelError(
            f"{folder}: no chat template (chat_template.jinja, or chat_template in tokenizer_config.json), so no question "
            "could be put; copy it from the instruct version of this model"
        )


def _check_folder(folder: Path) -> None:
    adapter = (folder / "adapter_config.json").exists()
    if not (folder / "config.json").exists() and not adapter:
        raise ModelError(
            f"model.path: {folder} has no config.json; give the folder of a saved model, for example "
            "RUN/checkpoint/step-000100, not the run's own"
        )
    weights = [*folder.glob("*.safetensors"), *folder.glob("pytorch_model*.bin")]
    if not weights:
        raise ModelError(
            f"model.path: {folder} has no weights (*.safetensors); the copy or download is incomplete: fetch it again"
        )


def save(model: Any, tokenizer: Tokenizer | None, folder: Path) -> None:
    """Write model and tokenizer as a folder that plain transformers loads; written beside, synced, renamed.

    A folder that is there already is replaced. A crash leaves the old one or the new one; in the instant between two
    renames the old one is called `.NAME.old`.
    """
    quiet()
    folder.parent.mkdir(parents=True, exist_ok=True)
    beside = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
    shutil.rmtree(beside, ignore_errors=True)
    try:
        beside.mkdir()
        model.save_pretrained(beside)
        if tokenizer is not None:
            tokenizer.save(beside)
        put_in_place(beside, folder)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def put_in_place(beside: Path, folder: Path) -> None:
    """Make `beside` durable and give it the name `folder`, replacing what has that name.

    Who may read the folder may read its files: safetensors keeps weights to this user, and a server may be another's.
    """
    readable = beside.stat().st_mode & 0o666
    for path in sorted(beside.rglob("*")):
        if path.is_file():
            path.chmod(readable)
            with path.open("rb") as file:
                os.fsync(file.fileno())
        else:
            sync_folder(path)
    sync_folder(beside)
    old = folder.with_name(f".{folder.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if folder.exists():
        folder.rename(old)  # a folder can't be renamed over a full one
    beside.rename(folder)
    sync_folder(folder.parent)
    shutil.rmtree(old, ignore_errors=True)
