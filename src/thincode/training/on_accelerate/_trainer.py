"""The one subclass of transformers' Trainer: it takes finished updates and calls a pure loss.

Trainer keeps devices, processes, precision, clipping, the order of steps, and the files of a checkpoint. What is ours: one
item of the loader is one optimizer update; `training_step` goes over its micro-batches; checkpoints are taken at the ends of
steps and sealed by `checkpoint`.

Relied upon beyond the documented overrides, and held by tests: the loop asks the loader for one item at a time and restores
random states before it opens the loader; a loader not prepared by accelerate is taken as it is.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.data import DataLoader, IterableDataset
from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments

from ...errors import AlarmError
from .. import Update, checkpoint, optimizer
from ..batch import MicroBatch, collate, plan
from ..logprobs import trained_logprobs
from ..models import quiet
from .loop import Head, LoopSettings, LossFunction, Precision, Source, close
from .processes import PATIENCE

if TYPE_CHECKING:
    from ...trajectory.tokenizer import Tokenizer

ENDLESS = 10**9
"""Nominal number of updates: the source decides when a run ends."""


class _Stream(IterableDataset[dict[str, Update]]):
    """The source's updates: made in the first process, sent to all."""

    def __init__(self, trainer: UpdateTrainer) -> None:
        self._trainer = trainer

    def __iter__(self) -> Iterator[dict[str, Update]]:
        trainer = self._trainer
        first = trainer.accelerator.process_index == 0
        source = trainer.open() if first else None
        while True:
            # Asked for only now: what stands behind the source's `yield` must see the weights after that update.
            update = trainer.agree(next(source, None) if source is not None else None)
            if update is None:
                break
            yield {"update": update}
        trainer.ended = True
        trainer.control.should_training_stop = True


class UpdateTrainer(Trainer):  # type: ignore[misc]
    """See the module; made and run by `loop.train`."""

    loss_is_scaled_for_ga = True
    optimizer: Any
    lr_scheduler: Any

    def __init__(
        self,
        model: Any,
        *,
        source: Source,
        loss: Callable[[Update], LossFunction],
        settings: LoopSettings,
        temperature: float,
        seed: int,
        tokenizer: Tokenizer | None,
        folder: Path,
        writing: Path,
        resume_from: checkpoint.Checkpoint | None,
    ) -> None:
        quiet()
        if settings.head is Head.FUSED:
            from trl.trainer.utils import add_fused_lm_head

            add_fused_lm_head(model, temperature=temperature)
        super().__init__(model, args=_arguments(settings, seed=seed, writing=writing))
        self.remove_callback(PrinterCallback)
        self.add_callback(_StepEnd(self))
        self.source = source
        self.loss_of = loss
        self.settings = settings
        self.temperature = temperature
        self.tokenizer_to_save = tokenizer
        self.folder = folder
        self.sealed = resume_from
        self.ended = False
        self.update: Update | None = None
        self._updates: Iterator[Update] | None = None
        self._stats: dict[str, float] = {}

    # --- updates in ---

    def open(self) -> Iterator[Update]:
        """Begin the source behind the steps already done."""
        self._updates = self.source.updates(self.sealed.step if self.sealed else 0)
        return self._updates

    def close(self) -> None:
        """End the source, whether or not it is exhausted."""
        if self._updates is not None:
            close(self._updates)

    def agree(self, update: Update | None) -> Update | None:
        """What the first process says, in every process."""
        if self.accelerator.num_processes == 1:
            return update
        from accelerate.utils import broadcast_object_list

        box = [update]
        broadcast_object_list(box)
        return box[0]

    def get_train_dataloader(self) -> Any:
        """One item an update. An own generator, because opening a loader draws from the global one otherwise."""
        return DataLoader(
            _Stream(self), batch_size=None, num_workers=0, collate_fn=lambda item: item, generator=torch.Generator()
        )

    def create_optimizer(self, model: Any = None) -> Any:
        """Ours."""
        if self.optimizer is None:
            self.optimizer = optimizer.build(self.settings.optimizer, model if model is not None else self.model)
        return self.optimizer

    def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> Any:
        """Ours; counts updates, also those without rows."""
        if self.lr_scheduler is None:
            self.lr_scheduler = _schedule(self.settings, optimizer or self.optimizer, total=self.source.total)
            self._created_lr_scheduler = True
        return self.lr_scheduler

    def floating_point_ops(self, inputs: Any) -> int:
        """Not estimated."""
        return 0

    def _issue_warnings_after_load(self, load_result: Any) -> None:
        # Hashes vouch for a checkpoint's files; what Trainer misses in them is a head tied to the embeddings.
        return

    # --- one update ---

    def training_step(self, model: Any, inputs: Any, num_items_in_batch: Any = None) -> torch.Tensor:
        """Forward and backward of this process's share; gradients are exchanged at the last micro-batch only."""
        self.update = update = inputs["update"]
        if update.fresh_optimizer:
            self._forget()
        ranks, rank = self.accelerator.num_processes, self.accelerator.process_index
        lengths = [len(row.ids) for row in update.rows]
        shares = plan(lengths, micro_tokens=self.settings.micro_tokens, ranks=ranks, layout=self.settings.layout)
        model.train()
        total = torch.zeros((), device=self.args.device)
        for number, indices in enumerate(shares[rank], start=1):
            last = number == len(shares[rank])
            self.accelerator.sync_gradients = last
            micro = collate([update.rows[index] for index in indices], layout=self.settings.layout)
            with contextlib.nullcontext() if last else self.accelerator.no_sync(model):
                with self.compute_loss_context_manager():
                    loss = self.compute_loss(model, micro)
                self.accelerator.backward(loss, **self._backward_options())
            total += loss.detach()
        self._stop_unless_finite("loss", float(total))
        return total

    def _forget(self) -> None:
        """Moments of the optimizer, and where the schedule of the learning rate stands."""
        getattr(self.optimizer, "optimizer", self.optimizer).state.clear()
        schedule = getattr(self.lr_scheduler, "scheduler", self.lr_scheduler)
        schedule.last_epoch = -1
        schedule.step()

    def _backward_options(self) -> dict[str, Any]:
        return {"scale_wrt_gas": False} if self.is_deepspeed_enabled else {}

    def compute_loss(
        self, model: Any, inputs: MicroBatch, return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """The pure loss of one micro-batch, times the number of processes, because their gradients are averaged."""

        def line(values: Any) -> torch.Tensor:
            return torch.from_numpy(values).to(self.args.device).unsqueeze(0)

        assert self.update is not None
        more = {"old_BT": inputs.old_K, "reference_BT": inputs.reference_K}
        result = self.loss_of(self.update)(
            logprob_BT=self._logprob(model, inputs).unsqueeze(0),
            behavior_BT=line(inputs.behavior_K),
            advantage_BT=line(inputs.advantage_K),
            weight_BT=line(inputs.weight_K),
            **{name: line(values) for name, values in more.items() if values is not None},
        )
        for name, value in result.stats.items():
            self._stats[name] = self._stats.get(name, 0.0) + value
        return result.total * self.accelerator.num_processes

    def _logprob(self, model: Any, micro: MicroBatch) -> torch.Tensor:
        assert self.update is not None
        heat = self.temperature if self.update.temperature is None else self.update.temperature
        fused = self.settings.head is Head.FUSED  # it was told its temperature when it was made
        return trained_logprobs(model, micro, temperature=heat, fused=fused, device=self.args.device)

    def _stop_unless_finite(self, what: str, value: float) -> None:
        if math.isfinite(value):
            return
        step = self.update.step if self.update is not None else 0
        last = f"the checkpoint after step {self.sealed.step} is good" if self.sealed else "there is no checkpoint yet"
        raise AlarmError(
            f"step {step}: the {what} is {value}; stopped before a checkpoint could hold it ({last}). "
            "Go on with a lower optimizer.lr or a lower max_grad_norm"
        )

    # --- records and checkpoints out ---

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """One record: Trainer's figures, and means over the trained tokens of the loss's own."""
        if "train_runtime" in logs:  # Trainer's summary of the whole run
            return
        stats = self._summed_stats()
        self._stop_unless_finite("gradient norm", float(logs.get("grad_norm", 0.0)))
        weight = stats.pop("weight", 0.0)
        record = {
            "step": float(self.update.step if self.update else 0),
            "update": float(self.state.global_step),
            **logs,
        }
        record["tokens"] = stats.pop("tokens", 0.0)
        record |= {name: value / weight for name, value in stats.items() if weight > 0}
        if self.accelerator.process_index == 0:
            self.source.on_update(dict(record))
        super().log(logs | record, start_time)
        self.state.log_history.clear()  # it would grow into every checkpoint

    def _summed_stats(self) -> dict[str, float]:
        """Sums over micro-batches, and processes, since the last record."""
        stats, self._stats = self._stats, {}
        if self.accelerator.num_processes == 1 or not stats:
            return stats
        names = sorted(stats)
        values = torch.tensor([stats[name] for name in names], dtype=torch.float64, device=self.args.device)
        return dict(zip(names, self.accelerator.reduce(values, reduction="sum").tolist(), strict=True))

    def seal(self) -> None:
        """Make what Trainer has just written a checkpoint; all processes have written their part."""
        assert self.update is not None
        self.accelerator.wait_for_everyone()
        step, state = self.update.step + 1, {}
        path = self.folder / checkpoint.name_of(step)
        if self.accelerator.process_index == 0:
            written = Path(str(self.args.output_dir)) / f"checkpoint-{self.state.global_step}"
            if self.tokenizer_to_save is not None:
                self.tokenizer_to_save.save(written)
            state = dict(self.source.state())
            finished = self.ended and self.source.finished()
            checkpoint.seal(written, self.folder, step=step, state=state, finished=finished)
        self.accelerator.wait_for_everyone()
        self.sealed = checkpoint.Checkpoint(path, step, state, self.ended)

    def end(self) -> bool:
        """Mark the run's end in its last checkpoint; True if the last step has none yet and one must be written."""
        if self.update is not None and (self.sealed is None or self.sealed.step != self.update.step + 1):
            return True
        if self.sealed is not None and self.accelerator.process_index == 0 and self.source.finished():
            checkpoint.finish(self.sealed.path, state=self.source.state())
        return False


class _StepEnd(TrainerCallback):  # type: ignore[misc]
    """Takes checkpoints at the ends of steps."""

    def __init__(self, trainer: UpdateTrainer) -> None:
        self._trainer = trainer

    def on_train_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        control.should_training_stop = False  # a resumed control remembers how its run ended

    def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        update = self._trainer.update
        if update is not None and update.last and (update.step + 1) % self._trainer.settings.checkpoint_every == 0:
            control.should_log = control.should_save = True

    def on_save(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._trainer.seal()

    def on_epoch_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        if self._trainer.ended and self._trainer.end():
            control.should_log = control.should_save = True


def _schedule(settings: LoopSettings, found: Any, *, total: int | None) -> Any:
    # AcceleratedOptimizer is no torch optimizer by class in every version; the one inside is.
    return optimizer.schedule(settings.schedule, getattr(found, "optimizer", found), total=total)


def _arguments(settings: LoopSettings, *, seed: int, writing: Path) -> TrainingArguments:
    return TrainingArguments(
        output_dir=str(writing),
        seed=seed,
        use_cpu=not torch.cuda.is_available(),
        bf16=settings.precision is Precision.BFLOAT16,
        max_steps=ENDLESS,
        per_device_train_batch_size=1,  # nominal, like max_steps
        gradient_accumulation_steps=1,
        max_grad_norm=settings.max_grad_norm,
        activation_checkpointing=settings.activation_checkpointing,
        logging_steps=settings.log_every,
        logging_nan_inf_filter=False,
        save_strategy="no",
        ignore_data_skip=True,
        remove_unused_columns=False,
        use_cache=True,  # of the model's configuration, which an engine and the checkpoint share; our forward uses none
        ddp_find_unused_parameters=False,
        ddp_timeout=int(PATIENCE.total_seconds()),
        report_to=settings.report_to,
        disable_tqdm=True,
    )
