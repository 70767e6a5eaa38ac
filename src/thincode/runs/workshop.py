"""What every loop needs open: the interpreter, the event loop, the format; opened in the one right order, closed in reverse."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, Self

from ..engines import Engine, Sampling
from ..interpreter import Interpreter, open_interpreter
from ..interpreter.doctor import require
from ..problems import Problem
from ..rollout import Budget, Schedule
from ..rollout.crowd import Crowd, LoopThread, LostCount
from ..rollout.episode import Setting
from ..rollout.prompt import Shots
from ..runlog import Progress
from ..settings import Kind
from ..trajectory.formats import Format, build
from .recipe import Recipe

if TYPE_CHECKING:
    from ..trajectory.tokenizer import Tokenizer


class ShowProgress(Protocol):
    """Makes the line that shows how far a piece of work is."""

    def __call__(self, name: str, *, total: int | None, unit: str, done: int = 0) -> Progress:
        """Nothing is shown before `with`."""


def load_problems(source: Kind) -> Sequence[Problem]:
    """The problems of the source a recipe names."""
    problems: Sequence[Problem] = source.module.load(source.settings)
    return problems


class Workshop:
    """Opens the interpreter before anything imports torch, and shares it between the steps of a run."""

    def __init__(self, recipe: Recipe) -> None:
        """Start the interpreter's supervisor and the event loop.

        Raises:
            IsolationError: this machine isolates sessions less than the recipe demands.
        """
        self.recipe = recipe
        self.deterministic = recipe.schedule is Schedule.DETERMINISTIC
        self.format: Format = build(recipe.format)
        self.lost = LostCount(limit_share=recipe.lost_share_limit)
        self._stack = ExitStack()
        # The supervisor is started by exec from a process that has no torch threads yet.
        backend = recipe.interpreter.backend
        self.tier = str(require(backend.settings)) if backend.name == "python" else "unknown"
        """The isolation that sessions have on this machine; see `thincode doctor`."""
        self.in_effect = recipe.interpreter.in_effect(recipe.format)
        """What holds for a block in the end."""
        limits = replace(recipe.interpreter.limits, deterministic=self.deterministic)
        self.interpreter: Interpreter = open_interpreter(
            backend,
            limits=limits,
            preset=recipe.interpreter.preset_of(recipe.format),
            keeps=recipe.interpreter.keeps,
            last_line=recipe.interpreter.last_line,
        )
        self.loop = self._stack.enter_context(LoopThread())
        self._stack.callback(lambda: self.loop.call(self.interpreter.close()))
        self._engines: list[Engine] = []
        self._stack.callback(self._close_engines)
        _set_threads(recipe.threads)

    def crowd(self, engine: Engine) -> Crowd:
        """A crowd that speaks through `engine`; the engine is closed with the workshop."""
        self._engines.append(engine)
        live = min(self.recipe.live, engine.most_at_once or self.recipe.live)
        return Crowd(loop=self.loop, engine=engine, schedule=self.recipe.schedule, live=live, lost=self.lost)

    def setting(
        self,
        *,
        tokenizer: Tokenizer | None,
        budget: Budget,
        sampling: Sampling,
        shots: Shots | None = None,
        executes: bool = True,
    ) -> Setting:
        """What the episodes of one roll share."""
        return Setting(
            interpreter=self.interpreter,
            format=self.format,
            tokenizer=tokenizer,
            budget=budget,
            sampling=sampling,
            shots=shots,
            executes=executes,
            timed=not self.deterministic,
            answer_without_interpreter=self.recipe.answer_without_interpreter,
        )

    def close_engine(self, engine: Engine) -> None:
        """Free an engine."""
        self._engines = [other for other in self._engines if other is not engine]
        self.loop.call(engine.close())

    def _close_engines(self) -> None:
        """What an interrupt or an error left open."""
        for engine in list(self._engines):
            self.close_engine(engine)

    def close(self) -> None:
        """End all sessions and the event loop."""
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: Any) -> None:
        self.close()


def _set_threads(threads: int) -> None:
    """Tell torch's thread pools their size before torch is imported; idle threads sleep instead of spinning."""
    if threads:
        os.environ["OMP_NUM_THREADS"] = str(threads)
    else:
        os.environ.setdefault("OMP_NUM_THREADS", str(os.cpu_count() or 1))
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
