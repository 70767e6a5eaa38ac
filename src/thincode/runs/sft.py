"""SFT: next-token training on kept trajectories, token for token what the episode driver will hold.

rows ← every kept τ, encoded once as the driver would hold it        (over-long ones are left out and counted)
minimize  − Σ log π(token)  over the tokens the model wrote          (and the outputs', with train_outputs)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import DataError
from ..rollout import prompt
from ..runlog import RunFolder
from ..trajectory import Trajectory
from ..trajectory.formats import Format
from ..trajectory.tokenizer import Tokenizer
from ..trajectory.tokens import encode, loss_mask
from . import sieve
from .recipe import SftSection
from .workshop import ShowProgress, Workshop


def run(
    section: SftSection,
    *,
    data: Path,
    folder: RunFolder,
    shop: Workshop,
    progress: ShowProgress,
    say: Callable[[str], None],
) -> Path:
    """Train a model on what a distillation kept.

    Args:
        section: model, data, training settings.
        data: run folder of the distillation.
        folder: gets `metrics.jsonl`, `checkpoint/`, `base/` (the untrained model) and `model/`. A run that stopped goes on
            from its last checkpoint.
        shop: format and seed.
        progress: makes the line that shows how far it is.
        say: told of examples left out, and of a damaged checkpoint that was passed over.

    Returns:
        The folder of the trained model.

    Raises:
        DataError: the distillation kept nothing.
    """
    from ..training import checkpoint, models
    from ..training.batch import Example
    from ..training.on_accelerate.sft import train_sft

    trajectories = sieve.kept(data)
    if not trajectories:
        raise DataError(f"{data}: the distillation kept no trajectory; see its funnel.json for the reasons")
    base = folder.path / "base"
    if not base.exists():
        _save_base(section, trajectories, shop, base)
    tokenizer = Tokenizer.load(base)
    examples = [
        Example(*row(trajectory, shop.format, tokenizer, train_outputs=section.train_outputs))
        for trajectory in trajectories
    ]
    model = models.load(str(base))
    found = checkpoint.latest(folder.path / "checkpoint", on_warning=say)
    log = folder.log("metrics")
    log.truncate(found.state["logs"]["metrics"] if found else 0)
    with progress("sft", total=None, unit="updates", done=found.step if found else 0) as line:

        def on_log(figures: dict[str, float]) -> None:
            step = int(figures["step"])
            log.append({"stage": "sft", **figures, "step": step})
            line.advance(step + 1 - line.done, loss=figures["loss"])

        def on_begin(steps: int) -> None:
            line.total = steps

        result = train_sft(
            model,
            examples,
            settings=section.train,
            seed=shop.recipe.seed,
            folder=folder.path / "checkpoint",
            resume_from=found,
            on_log=on_log,
            on_begin=on_begin,
            state=lambda: {"logs": folder.commit()},
            tokenizer=tokenizer,
        )
    if result.too_long:
        say(f"sft: {result.too_long} trajectories are longer than train.context_tokens and were left out")
    models.save(model, tokenizer, folder.path / "model")
    return folder.path / "model"


def _save_base(section: SftSection, trajectories: Sequence[Trajectory], shop: Workshop, base: Path) -> None:
    """The model that training starts from, with its tokenizer: a loaded one, or one built from scratch for this corpus."""
    from ..training import models

    if section.model.path is not None:
        folder = models.local_folder(section.model.path)
        models.save(models.load(str(folder)), Tokenizer.load(folder), base)
        return
    texts = [shop.format.user_message(trajectory.question) for trajectory in trajectories]
    texts += [trajectory.text for trajectory in trajectories]
    tokenizer = Tokenizer.train(texts, vocab_size=section.tokenizer_size, markers=shop.format.markers)
    model = models.build(
        section.model,
        vocabulary=tokenizer.vocab_size,
        eos_id=tokenizer.eos_ids[0],
        pad_id=tokenizer.pad_id,
        seed=shop.recipe.seed,
    )
    models.save(model, tokenizer, base)


def row(trajectory: Trajectory, format: Format, tokenizer: Tokenizer, *, train_outputs: bool) -> tuple[Any, Any]:
    """The (T,) ids of one trajectory as the student will hold it, and the (T,) mask of those it is trained on."""
    rendered = prompt.render(trajectory.question, format=format, tokenizer=tokenizer)
    tokens = encode(replace(trajectory, prompt=rendered), format, tokenizer).tokens
    assert tokens is not None
    return tokens.ids, loss_mask(tokens, train_outputs=train_outputs)
