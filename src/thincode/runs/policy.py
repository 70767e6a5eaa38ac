"""The model that learns, between its users: the engine that samples from it, the trainer that updates it, and its reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import RecipeError
from ..settings import Kind
from ..training import Rollout
from ..trajectory.tokenizer import Tokenizer
from .recipe import RlSection
from .workshop import Workshop

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Policy:
    """One set of weights, live in the engine."""

    def __init__(self, section: RlSection, start: Path, shop: Workshop) -> None:
        """Load the model in `start` and open an engine on it."""
        from ..training import models

        self.tokenizer = Tokenizer.load(start)
        self.model = models.load(str(start))
        self._start = start
        self._reference: Any = None
        self._micro_tokens = section.policy.micro_tokens
        self._loop = shop.loop
        self._served_from = None if section.engine.name == "local" else _weights_folder(section.engine)
        self.engine: Any = _open(section.engine, self.model, self.tokenizer, shop)
        self.crowd = shop.crowd(self.engine)
        if self._served_from is not None:
            self.publish()
            _check_logprobs(shop.loop.call(self.engine.prepare()))

    def publish(self) -> None:
        """Let the engine speak with the weights as they are now."""
        from ..training import models

        if self._served_from is None:
            self.engine.weights_changed()
            return
        models.save(self.model, self.tokenizer, self._served_from)
        self._loop.call(self.engine.read_weights_again())

    def complete(self, rollouts: list[Rollout], algorithm: Kind, *, heat: float) -> list[Rollout]:
        """Fill in the log-probabilities that the algorithm's loss needs besides the sampler's."""
        settings = algorithm.settings
        if getattr(settings, "importance_cap", None) is not None:
            values = self._logprobs(self.model, rollouts, heat)
            rollouts = [replace(one, old=value) for one, value in zip(rollouts, values, strict=True)]
        if getattr(settings, "uses_reference", False):
            if self._reference is None:
                from ..training import models

                self._reference = models.load(str(self._start)).to(next(self.model.parameters()).device)
            values = self._logprobs(self._reference, rollouts, heat)
            rollouts = [replace(one, reference=value) for one, value in zip(rollouts, values, strict=True)]
        return rollouts

    def _logprobs(self, model: Any, rollouts: Sequence[Rollout], heat: float) -> list[NDArray[np.float32]]:
        from ..training.logprobs import logprobs

        return logprobs(model, rollouts, temperature=heat, micro_tokens=self._micro_tokens)


def follow(section: RlSection, *, start: Path, shop: Workshop) -> None:
    """Take part in a run whose loop another process runs: it makes the rollouts, all make the updates."""
    from ..training import models
    from ..training.on_accelerate.processes import agree
    from ..training.on_accelerate.rl import follow_policy

    told: Any = agree(None)  # as in `rl.run`; None where that run is over already
    if told is None:
        return
    folder, found = told
    follow_policy(
        models.load(str(start)),
        settings=section.policy,
        temperature=section.sampling.temperature,
        seed=shop.recipe.seed,
        folder=folder / "checkpoint",
        resume_from=found,
    )


def _open(chosen: Kind, model: Any, tokenizer: Tokenizer, shop: Workshop) -> Any:
    if chosen.name != "local":
        return chosen.module.open(chosen.settings, tokenizer=tokenizer)
    settings = replace(chosen.settings, rows=shop.recipe.live)
    return chosen.module.open(settings, tokenizer=tokenizer, model=model, schedule=shop.recipe.schedule.value)


def _weights_folder(chosen: Kind) -> Path:
    """Where an engine behind a server has its weights from."""
    folder: Path | None = getattr(chosen.settings, "weights", None)
    if folder is None:
        raise RecipeError(
            f"rl.engine: {chosen.name!r} can't be used: RL needs token ids with their log-probabilities, and an engine that "
            "takes new weights; choose local, or vllm with `weights`, the folder that its server serves"
        )
    return folder


def _check_logprobs(facts: Mapping[str, str]) -> None:
    if facts.get("logprobs") != "processed":
        raise RecipeError(
            "rl.engine: the server gives log-probabilities of temperature 1, not of the distribution it draws from; start it "
            "with --logprobs-mode processed_logprobs"
        )
