"""SFT on ids and masks: next-token loss on the tokens the mask names, each of a batch weighing the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import DataError, RecipeError
from ...settings import PositiveInt, settings
from .. import Update
from ..algorithms import Loss
from ..batch import BatchSize, Example, Layout, collate, plan, supervised_batches, supervised_updates
from ..checkpoint import Checkpoint
from .loop import LoopSettings, Source, train
from .processes import agree

if TYPE_CHECKING:
    import torch
    from torch import nn

    from ...trajectory.tokenizer import Tokenizer


@settings
class SftSettings(LoopSettings):
    """How long, and in which batches. A step of SFT is one update."""

    epochs: int | None = 3
    max_steps: int | None = None
    max_tokens: int | None = None
    """The run ends at whichever of the three comes first."""
    batch_tokens: PositiveInt = 1_024
    """Tokens of one update, prompts and outputs counted."""
    batch_examples: PositiveInt | None = None
    """Examples of one update, whatever their length, in place of `batch_tokens`."""
    alike: int = 1
    """Examples of so many batches are sorted by length among themselves: 8 saves a sixth of the time where rows are
    padded, 1 leaves batches fully mixed."""
    context_tokens: int = 32_768
    """Longer examples are left out and counted, never cut."""
    validate_every: PositiveInt | None = None
    """Steps between validations; one also follows the last step."""
    checkpoint_every: int = 200
    log_every: int = 10


@dataclass(frozen=True)
class SftResult:
    """What was trained on."""

    examples: int
    too_long: int
    """Examples left out because they are longer than `context_tokens`."""
    nothing_to_train: int
    """Examples left out because their mask is empty."""
    steps: int
    seen: int
    """Examples seen, epochs counted."""
    tokens: int
    """Tokens seen, epochs and prompts counted."""


def train_sft(
    model: nn.Module,
    examples: Sequence[Example],
    *,
    settings: SftSettings,
    seed: int,
    folder: Path,
    resume_from: Checkpoint | None,
    on_log: Callable[[dict[str, float]], None],
    weights: Sequence[float] | None = None,
    on_begin: Callable[[int], None] | None = None,
    on_validate: Callable[[int], None] | None = None,
    state: Callable[[], Mapping[str, Any]] = dict,
    tokenizer: Tokenizer | None = None,
) -> SftResult:
    """Train `model`, in place, to write what the examples' masks name.

    Args:
        model: a causal language model.
        examples: ids and masks.
        settings: how long and how.
        seed: of order and dropout.
        folder: the run's `checkpoint/`.
        resume_from: from `checkpoint.latest`; the run goes on as if it had not been interrupted.
        on_log: gets `step`, `loss`, `grad_norm`, `learning_rate`, `tokens` every `log_every` updates.
        weights: how often an epoch has each example; None: each once.
        on_begin: told how many steps the run has.
        on_validate: called with the number of steps done, every `validate_every` steps and after the last one.
        state: what a checkpoint shall remember.
        tokenizer: saved into each checkpoint.

    Raises:
        DataError: nothing is left to train on.
        RecipeError: no limit is set.
        UserError: loss or gradient is not finite.
    """
    fitting = [index for index, example in enumerate(examples) if len(example.ids) <= settings.context_tokens]
    trained = [index for index in fitting if examples[index].mask[1:].any()]
    kept, too_long = [examples[index] for index in trained], len(examples) - len(fitting)
    shares = None if weights is None else [weights[index] for index in trained]
    batches = _batches(kept, settings, seed=seed, given=len(examples), too_long=too_long, weights=shares)
    if on_begin is not None:
        on_begin(len(batches))
    updates = partial(_updates, kept, batches, settings.validate_every, on_validate)
    train(
        model,
        source=Source(updates=updates, total=agree(len(batches)), state=state, on_update=on_log),
        loss=lambda update: likelihood,
        settings=settings,
        temperature=1.0,
        seed=seed,
        tokenizer=tokenizer,
        folder=folder,
        resume_from=resume_from,
    )
    seen = [len(kept[index].ids) for batch in batches for index in batch]
    return SftResult(
        len(kept), too_long, len(fitting) - len(kept), steps=len(batches), seen=len(seen), tokens=sum(seen)
    )


def follow_sft(
    model: nn.Module, *, settings: SftSettings, seed: int, folder: Path, resume_from: Checkpoint | None
) -> None:
    """Take part, in another process, in the `train_sft` of the first one: updates and the end come from there."""
    train(
        model,
        source=Source(updates=lambda first: iter(()), total=agree(None), state=dict, on_update=lambda record: None),
        loss=lambda update: likelihood,
        settings=settings,
        temperature=1.0,
        seed=seed,
        tokenizer=None,
        folder=folder,
        resume_from=resume_from,
    )


def mean_loss(model: Any, examples: Sequence[Example], *, settings: SftSettings) -> float:
    """− mean log π over the trained tokens of all examples, without dropout; the model's mode is left as it was."""
    import torch

    from ..logprobs import trained_logprobs

    rows = [row for update in supervised_updates(examples, [range(len(examples))], first_step=0) for row in update.rows]
    lengths = [len(row.ids) for row in rows]
    (batches,) = plan(lengths, micro_tokens=settings.micro_tokens, ranks=1, layout=Layout.PADDED)
    training, device = model.training, next(model.parameters()).device
    model.eval()
    total = 0.0
    with torch.no_grad():
        for indices in batches:
            micro = collate([rows[index] for index in indices], layout=Layout.PADDED)
            logprob_K = trained_logprobs(model, micro, temperature=1.0, device=device)
            total -= float((torch.from_numpy(micro.weight_K).to(device) * logprob_K).sum())
    model.train(training)
    return total


def _updates(
    kept: Sequence[Example],
    batches: Sequence[Sequence[int]],
    validate_every: int | None,
    on_validate: Callable[[int], None] | None,
    first_step: int,
) -> Iterator[Update]:
    def validate(steps: int) -> None:
        due = validate_every is not None and (steps % validate_every == 0 or steps == len(batches))
        if on_validate is not None and steps and due:
            on_validate(steps)

    validate(first_step)  # a checkpoint is written before its step's validation, so a resumed run makes that one again
    for update in supervised_updates(kept, batches, first_step=first_step):
        yield update
        validate(update.step + 1)


def _batches(
    kept: Sequence[Example],
    settings: SftSettings,
    *,
    seed: int,
    given: int,
    too_long: int,
    weights: Sequence[float] | None,
) -> list[list[int]]:
    if settings.epochs is None and settings.max_steps is None and settings.max_tokens is None:
        raise RecipeError("sft: set one of epochs, max_steps and max_tokens; without any the training never ends")
    if not kept:
        raise DataError(
            f"nothing to train on: of {given} examples, {too_long} are longer than "
            f"sft.context_tokens={settings.context_tokens} and {given - too_long} have no token to train"
        )
    return supervised_batches(
        [len(example.ids) for example in kept],
        size=batch_size(settings),
        seed=seed,
        epochs=settings.epochs,
        max_steps=settings.max_steps,
        max_tokens=settings.max_tokens,
        alike=settings.alike,
        weights=weights,
    )


def batch_size(settings: SftSettings) -> BatchSize:
    """What fills a batch."""
    if settings.batch_examples is not None:
        return BatchSize(examples=settings.batch_examples)
    return BatchSize(tokens=settings.batch_tokens)


def likelihood(
    *,
    logprob_BT: torch.Tensor,
    behavior_BT: torch.Tensor,
    advantage_BT: torch.Tensor,
    weight_BT: torch.Tensor,
    **more: torch.Tensor,
) -> Loss:
    """− Σ w · logprob."""
    total = -(weight_BT * logprob_BT).sum()
    return Loss(total=total, stats={"tokens": float((weight_BT > 0).sum())})
