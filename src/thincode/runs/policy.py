"""The model that learns, between its users: the engine that samples from it, the trainer that updates it, and its reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..settings import Kind, kind
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
        local = kind("thincode.engines", "local", rows=shop.recipe.live)
        self.engine: Any = local.module.open(
            local.settings, tokenizer=self.tokenizer, model=self.model, schedule=shop.recipe.schedule.value
        )
        self.crowd = shop.crowd(self.engine)

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
