"""What SFT measures while it trains, and the best model it has seen."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..grading import Graded, Reward
from ..grading.answers import Grader
from ..rollout.episode import Ask
from ..runlog import Log
from ..settings import kind
from ..trajectory import Address
from ..trajectory.tokenizer import Tokenizer
from . import health
from .recipe import SftSection
from .workshop import Workshop, load_problems

if TYPE_CHECKING:
    from ..training.batch import Example

STAGE = "sft/validation"


class Validation:
    """Held-out loss and answers of the model in training; keeps the best model in a folder."""

    def __init__(
        self,
        section: SftSection,
        shop: Workshop,
        tokenizer: Tokenizer,
        model: Any,
        held_out: Sequence[Example],
        *,
        log: Log,
        best: Path,
    ) -> None:
        """Open what the section asks for.

        Args:
            section: what is measured; nothing without `validation`.
            shop: interpreter, event loop, format.
            tokenizer: of the model.
            model: in training.
            held_out: examples that are not trained on.
            log: gets a line for each measurement.
            best: folder of the best model.
        """
        self._section = section
        self._shop = shop
        self._tokenizer = tokenizer
        self._model = model
        self._held_out = held_out
        self._log = log
        self._best = best
        self.best_figure: float | None = None
        """The highest accuracy so far, or, without problems, the lowest loss with its sign turned; set it on resume."""
        self._engine: Any = None

    def measure(self, step: int) -> None:
        """Measure the model as it is after `step` steps, and keep it if it is the best one."""
        settings = self._section.validation
        if settings is None:
            return
        from ..training.on_accelerate.sft import mean_loss

        found: dict[str, Any] = {}
        if self._held_out:
            found["loss"] = mean_loss(self._model, self._held_out, settings=self._section.train)
        if settings.problems is not None:
            found |= self._answers(step)
        self._log.append({"stage": "sft", "step": step, "validation": found})
        figure = found["accuracy"] if settings.problems is not None else -found["loss"]
        if self.best_figure is None or figure > self.best_figure:
            self.best_figure = figure
            self._keep()

    def close(self) -> None:
        """Free the engine."""
        if self._engine is not None:
            self._shop.close_engine(self._engine)

    def _answers(self, step: int) -> dict[str, Any]:
        settings = self._section.validation
        assert settings is not None
        assert settings.problems is not None
        problems = {problem.id: problem for problem in load_problems(settings.problems)}
        setting = self._shop.setting(tokenizer=self._tokenizer, budget=settings.budget, sampling=settings.sampling)
        seed = self._shop.recipe.seed
        asks = [Ask(Address(seed, STAGE, step, name, 0), problem.question) for name, problem in problems.items()]
        rows = []
        with Grader() as grader:
            for trajectory in self._shop.crowd(self._opened()).roll(asks, setting):
                problem = problems[trajectory.address.problem]
                graded = Graded(problem, trajectory, grader.grade(trajectory.answer, problem.answer))
                rows.append((graded, Reward(float(graded.grade.correct))))
        self._engine.weights_changed()
        return health.of_validation(rows)

    def _opened(self) -> Any:
        if self._engine is None:
            recipe = self._shop.recipe
            local = kind("thincode.engines", "local", rows=recipe.live)
            # With LoRA: the model inside, whose layers hold the additions.
            model = self._model.get_base_model() if hasattr(self._model, "get_base_model") else self._model
            self._engine = local.module.open(
                local.settings, tokenizer=self._tokenizer, model=model, schedule=recipe.schedule.value
            )
        return self._engine

    def _keep(self) -> None:
        from ..training import lora, models

        if lora.is_lora(self._model):
            self._model.save_pretrained(self._best)
            self._tokenizer.save(self._best)
        else:
            models.save(self._model, self._tokenizer, self._best)
