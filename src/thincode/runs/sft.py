"""SFT: next-token training on kept trajectories, token for token what the episode driver will hold.

rows ← every kept τ, encoded once as the driver would hold it        (over-long ones are left out and counted)
minimize  − Σ log π(token)  over the tokens the model wrote          (and the outputs', with train_outputs)

Of several processes (`accelerate launch`) the first one runs this loop, the others follow it: they get their share of each
update and write nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import DataError
from ..rollout import prompt
from ..runlog import RunFolder
from ..settings import load
from ..trajectory import Trajectory
from ..trajectory.formats import Format, build
from ..trajectory.tokenizer import Tokenizer
from ..trajectory.tokens import encode, loss_mask
from . import sieve
from ._sft_validation import Validation
from .recipe import Recipe, SftSection
from .workshop import ShowProgress, Workshop

if TYPE_CHECKING:
    from ..training.batch import Example
    from ..training.checkpoint import Checkpoint
    from ..training.on_accelerate.sft import SftResult


def run(
    section: SftSection,
    *,
    data: Path,
    folder: RunFolder,
    shop: Workshop,
    progress: ShowProgress,
    say: Callable[[str], None],
) -> SftResult:
    """Train a model on what a distillation kept.

    Args:
        section: model, data, training settings.
        data: run folder of the distillation; `section.mix` takes its place.
        folder: gets `metrics.jsonl`, `checkpoint/`, `base/` (the untrained model), `model/` and, with a validation, `best/`. A
            run that stopped goes on from its last checkpoint.
        shop: format and seed.
        progress: makes the line that shows how far it is.
        say: told of examples left out, and of a damaged checkpoint that was passed over.

    Returns:
        What was trained on.

    Raises:
        DataError: a distillation kept nothing.
    """
    from ..training import checkpoint, models
    from ..training.on_accelerate.processes import agree
    from ..training.on_accelerate.sft import train_sft

    corpus = list(_corpus(section, data, shop.format))
    base = folder.path / "base"
    if not base.exists():
        _save_base(section, corpus, shop, base)
    tokenizer = Tokenizer.load(base)
    examples, weights, held_out = _split(section, corpus, tokenizer, seed=shop.recipe.seed)
    found = checkpoint.latest(folder.path / "checkpoint", on_warning=say)
    agree(_Start(base, found))
    model = _load(section, base, seed=shop.recipe.seed)
    log = folder.log("metrics")
    log.truncate(found.state["logs"]["metrics"] if found else 0)
    validation = Validation(section, shop, tokenizer, model, held_out, log=log, best=folder.path / "best")
    validation.best_figure = found.state.get("best") if found else None
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
            weights=weights,
            settings=section.train,
            seed=shop.recipe.seed,
            folder=folder.path / "checkpoint",
            resume_from=found,
            on_log=on_log,
            on_begin=on_begin,
            on_validate=validation.measure,
            state=lambda: {"logs": folder.commit(), "best": validation.best_figure},
            tokenizer=tokenizer,
        )
    validation.close()
    if result.too_long:
        say(f"sft: {result.too_long} trajectories are longer than train.context_tokens and were left out")
    models.save(_plain(model), tokenizer, folder.path / "model")
    return result


@dataclass(frozen=True)
class _Start:
    """What the processes that follow must know of the first one's run."""

    base: Path
    found: Checkpoint | None


def follow(section: SftSection, *, shop: Workshop) -> None:
    """Take part in a run whose loop another process runs."""
    from ..training.on_accelerate.processes import agree
    from ..training.on_accelerate.sft import follow_sft

    start: Any = agree(None)  # a `_Start`; None where that run is over already
    if start is None:
        return
    seed = shop.recipe.seed
    model = _load(section, start.base, seed=seed)
    follow_sft(
        model, settings=section.train, seed=seed, folder=start.base.parent / "checkpoint", resume_from=start.found
    )


def _load(section: SftSection, base: Path, *, seed: int) -> Any:
    from ..training import lora, models

    model = models.load(str(base))
    return model if section.lora is None else lora.add(model, section.lora, seed=seed)


def _plain(model: Any) -> Any:
    from ..training import lora

    return lora.merged(model) if lora.is_lora(model) else model


# --- data ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Part:
    """What one distillation kept."""

    trajectories: Sequence[Trajectory]
    format: Format
    weight: float


def _corpus(section: SftSection, data: Path, format: Format) -> Iterator[_Part]:
    """The distillations of a run, each in the format it was written in."""
    places = [(Path(part.data), part.weight) for part in section.mix] or [(data, 1.0)]
    for place, weight in places:
        trajectories = sieve.kept(place)
        if not trajectories:
            raise DataError(f"{place}: the distillation kept no trajectory; see its funnel.json for the reasons")
        yield _Part(trajectories, format if not section.mix else _format_of(place), weight)


def _format_of(folder: Path) -> Format:
    """The format a distillation's recipe names."""
    return build(load(Recipe, folder / "recipe.resolved.yaml").value.format)


def _split(
    section: SftSection, corpus: Sequence[_Part], tokenizer: Tokenizer, *, seed: int
) -> tuple[list[Example], list[float] | None, list[Example]]:
    """Examples to train on, how often an epoch has each, and those held out for validation."""
    from ..training.batch import Example

    pairs = [
        (Example(*row(trajectory, part.format, tokenizer, train_outputs=section.train_outputs)), part.weight)
        for part in corpus
        for trajectory in part.trajectories
    ]
    holdout = section.validation.holdout if section.validation else 0
    if holdout >= len(pairs):
        raise DataError(
            f"sft.validation.holdout: {holdout} of {len(pairs)} trajectories leave none to train on; hold out fewer"
        )
    out = set(np.random.default_rng([seed, len(pairs)]).permutation(len(pairs))[:holdout].tolist())
    kept = [pair for index, pair in enumerate(pairs) if index not in out]
    weights = [weight for _, weight in kept] if section.mix else None
    return [example for example, _ in kept], weights, [pairs[index][0] for index in sorted(out)]


def row(trajectory: Trajectory, format: Format, tokenizer: Tokenizer, *, train_outputs: bool) -> tuple[Any, Any]:
    """The (T,) ids of one trajectory as the student will hold it, and the (T,) mask of those it is trained on."""
    rendered = prompt.render(trajectory.question, format=format, tokenizer=tokenizer)
    tokens = encode(replace(trajectory, prompt=rendered), format, tokenizer).tokens
    assert tokens is not None
    return tokens.ids, loss_mask(tokens, train_outputs=train_outputs)


def _save_base(section: SftSection, corpus: Sequence[_Part], shop: Workshop, base: Path) -> None:
    """The model that training starts from, with its tokenizer: a loaded one, or one built from scratch for this corpus."""
    from ..training import models

    if section.model.path is not None:
        folder = models.local_folder(section.model.path)
        tokenizer = Tokenizer.load(folder)
        model = models.load(str(folder))
        models.check_fits(model, tokenizer, folder)
        models.save(model, tokenizer, base)
        return
    texts = [part.format.user_message(trajectory.question) for part in corpus for trajectory in part.trajectories]
    texts += [trajectory.text for part in corpus for trajectory in part.trajectories]
    markers = dict.fromkeys(marker for part in corpus for marker in part.format.markers)
    tokenizer = Tokenizer.train(texts, vocab_size=section.tokenizer_size, markers=list(markers))
    model = models.build(
        section.model,
        vocabulary=tokenizer.vocab_size,
        eos_id=tokenizer.eos_ids[0],
        pad_id=tokenizer.pad_id,
        seed=shop.recipe.seed,
    )
    models.save(model, tokenizer, base)
