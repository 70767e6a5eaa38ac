"""A transformers model in this process: all live episodes in one ragged batch, KV caches kept between blocks.

One thread owns torch: this engine starts none. `voice.generate` is awaited on the event-loop thread and only asks; the work
is done in `LocalEngine.drive(until)`, called by the thread that owns torch, which also calls the sinks. Nothing is
generated while nobody drives. The model may be a live `nn.Module` that a trainer updates in place between drives; say
`weights_changed()` after each update.

    engine = local.open(Settings(), tokenizer=tokenizer, model=model)
    work = asyncio.run_coroutine_threadsafe(episodes(engine), loop)   # the loop runs in its own thread
    engine.drive(work)
    results = work.result()
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from ..errors import RecipeError, require
from ..settings import settings

if TYPE_CHECKING:
    from torch import nn

    from ._local_engine import LocalEngine
    from ._local_model import Ends


@settings
class Settings:
    """Where the model is and how much of the machine it takes."""

    model: str | None = None
    """Folder with config and weights; none in RL, where the engine speaks with the model in training."""
    rows: int = 128
    """Most episodes that hold a cache at once; others wait. Memory is rows x longest context."""
    context_tokens: int | None = None
    """Longest context that may be asked for; none: the model's own `max_position_embeddings`."""
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """Of a loaded model; auto: as saved. A given model is taken as it is."""
    device: str = "auto"
    """Of a loaded model; auto: the first CUDA device, else the CPU."""
    threads: int | None = None
    """Torch's CPU threads while driving; none: as they are. Two beside a busy process are much slower than one."""


def open(
    settings: Settings,
    *,
    tokenizer: Ends | None = None,
    model: nn.Module | None = None,
    schedule: str = "overlapped",
) -> LocalEngine:
    """An engine ready to be driven.

    Args:
        settings: see `Settings`.
        tokenizer: only asked for its end-of-sequence ids, beside those of the model's configs.
        model: a live model; else the one in `settings.model` is loaded.
        schedule: `overlapped` takes whatever waits; `deterministic` makes a step only when every open voice waits in
            `generate`, and orders rows by address. Then open all voices of a wave before one of them generates, and open a
            successor before its predecessor is closed; batch membership is then a function of the seeds alone.

    Raises:
        MissingExtraError: torch is not installed.
        ModelError: no usable weights; or the model is sharded, or of a kind this engine would get wrong.
        RecipeError: a setting is impossible, or neither a model nor a folder is given.
    """
    require("torch", extra="train", needed_for="the engine local")
    from . import _local_model
    from ._local_engine import LocalEngine

    for name in ("rows", "context_tokens", "threads"):
        value = getattr(settings, name)
        if value is not None and value < 1:
            raise RecipeError(f"engine local: {name}: {value} is below 1")
    if schedule not in ("overlapped", "deterministic"):
        raise RecipeError(f"engine local: schedule: {schedule!r} is neither overlapped nor deterministic")
    if model is None:
        if settings.model is None:
            raise RecipeError(
                "engine local: model: missing; name a folder with weights, for example the checkpoint of a run"
            )
        model = _local_model.load(settings.model, dtype=settings.dtype, device=settings.device)
    _local_model.check(model)
    return LocalEngine(
        model=model,
        name=settings.model or "local",
        ends=_local_model.ends(model, tokenizer),
        rows=settings.rows,
        context_tokens=settings.context_tokens,
        threads=settings.threads,
        deterministic=schedule == "deterministic",
    )
