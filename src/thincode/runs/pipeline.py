"""All steps of a recipe in one run folder: distill, SFT, RL, evaluation, report. Each step's folder is a run folder itself.

OUT/distill  OUT/sft  OUT/rl  OUT/evaluate/0-base  1-sft  2-rl-1 …   OUT/timing.json  OUT/comparison.json  OUT/report.html
"""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import atomic
from ..errors import RecipeError, RunFolderError, UserError, require
from ..evaluation import Scorecard
from ..evaluation.paired import compare
from ..evaluation.scorecard import read
from ..grading import records
from ..runlog import RunFolder
from ..settings import Resolved
from ..training import models
from ..training.on_accelerate import processes
from ..trajectory.store import Store
from . import distill, evaluate, policy, rl, sft
from .evaluate import Subject
from .recipe import Recipe
from .speakers import ready
from .workshop import ShowProgress, Workshop


@dataclass(frozen=True)
class Console:
    """How a run talks to the person in front of it."""

    progress: ShowProgress
    say: Callable[[str], None]


class Pipeline:
    """The steps of one recipe over one folder, each done once."""

    def __init__(self, resolved: Resolved[Recipe], *, out: Path, shop: Workshop, console: Console) -> None:
        """Bind a recipe to a folder."""
        self.recipe = resolved.value
        self.resolved = resolved
        self.out = out
        self.shop = shop
        self.console = console

    def distill(self, folder: Path) -> dict[str, Any]:
        """The funnel of the recipe's distillation."""
        section = _section(self.recipe.distill, "distill")
        with self._step(folder) as (run, done):
            if done is None:
                done = distill.run(
                    section, folder=run, shop=self.shop, progress=self.console.progress, say=self.console.say
                )
                run.finish(done)
            return done

    def sft(self, folder: Path, *, data: Path) -> Path:
        """The folder of the model that SFT makes."""
        section = _section(self.recipe.sft, "sft")
        _require_training("SFT")
        if processes.rank() > 0:
            sft.follow(section, shop=self.shop)
            return folder / "model"
        with self._step(folder) as (run, done):
            if done is None:
                result = sft.run(
                    section, data=data, folder=run, shop=self.shop, progress=self.console.progress, say=self.console.say
                )
                run.finish({"model": "model", **dataclasses.asdict(result)})
            else:
                processes.agree(None)
        return folder / "model"

    def rl(self, folder: Path, *, start: Path) -> Path:
        """The folder of the model that RL makes."""
        section = _section(self.recipe.rl, "rl")
        _require_training("RL")
        if processes.rank() > 0:
            policy.follow(section, start=start, shop=self.shop)
            return folder / "model"
        with self._step(folder) as (run, done):
            if done is None:
                rl.run(
                    section,
                    start=start,
                    folder=run,
                    shop=self.shop,
                    progress=self.console.progress,
                    say=self.console.say,
                )
                run.finish({"model": "model"})
            else:
                processes.agree(None)
        return folder / "model"

    def evaluate(
        self, folder: Path, *, name: str | None, model: Path | None, limit: int | None = None, all_arms: bool = True
    ) -> Scorecard:
        """The scorecard of one model, or of the recipe's own engine where `model` is None.

        Args:
            folder: the evaluation's run folder.
            name: of the subject, in tables; None takes the engine's.
            model: its folder.
            limit: only so many of the problems.
            all_arms: False samples the main arm only, not greedy and not with swapped outputs.
        """
        section = _section(self.recipe.evaluate, "evaluate")
        if not all_arms:
            section = dataclasses.replace(
                section, greedy=False, temperatures=(), swap_outputs=False, injected_failures=0
            )
        with self._step(folder) as (run, done):
            if done is None or done.get("lost"):
                parts = evaluate.parts_of(section, limit=limit)
                problems = [problem for part in parts for problem in part.problems]
                folder_of_model = models.local_folder(str(model)) if model is not None else None
                speaker = ready(
                    section.engine,
                    shop=self.shop,
                    say=self.console.say,
                    place="evaluate.engine",
                    script=lambda: evaluate.gold_script(problems, self.shop.format),
                    model=folder_of_model,
                    shots=section.prompt,
                )
                subject = Subject(name or speaker.engine.name, speaker)
                lost = evaluate.run(
                    section,
                    parts=parts,
                    subject=subject,
                    folder=run,
                    shop=self.shop,
                    progress=self.console.progress,
                )
                self.shop.close_engine(speaker.engine)
                if lost:
                    self.console.say(f"{folder}: {lost} trajectories are lost; --resume runs them again")
                run.finish({"problems": len(problems), "lost": lost})
        return read(folder / "scorecard.json")

    @contextmanager
    def _step(self, folder: Path) -> Iterator[tuple[RunFolder, dict[str, Any] | None]]:
        """A step's run folder and, when it was finished before, its summary; its seconds are added to `timing.json`."""
        with RunFolder.create(
            folder,
            resolved=self.resolved.resolved,
            resume=folder.exists(),
            tier=self.shop.tier,
            interpreter=self.shop.in_effect,
        ) as run:
            done = run.done
            began = time.monotonic()
            name = folder.name if folder == self.out else str(folder.relative_to(self.out))
            untouched = False
            try:
                yield run, done
            except UserError:
                untouched = run.take_back()
                if untouched and folder != self.out:
                    folder.rmdir()
                raise
            finally:
                if done is None and not untouched:
                    _add_time(self.out, name, time.monotonic() - began)


def run(pipeline: Pipeline) -> list[Scorecard]:
    """All steps there are in the recipe, in order; returns the scorecards, one for each model there is."""
    recipe, out = pipeline.recipe, pipeline.out
    if processes.count() > 1:
        raise RecipeError(
            f"run was launched in {processes.count()} processes, and most of its steps use one; launch the training alone: "
            "thincode sft RECIPE --data DIR, thincode rl RECIPE --model DIR"
        )
    if recipe.distill is None and recipe.sft is None and recipe.rl is None:
        raise RecipeError(
            "the recipe has no section distill, sft or rl, so there is nothing to run; a model that is there is measured "
            "with thincode eval"
        )
    if recipe.rl is not None and recipe.sft is None and not recipe.rl.model:
        raise RecipeError("rl.model: no model to start from; name a model folder, or add a section sft")
    if recipe.sft is not None or recipe.rl is not None:
        _require_training("training")
    with RunFolder.create(
        out,
        resolved=pipeline.resolved.resolved,
        resume=out.exists(),
        tier=pipeline.shop.tier,
        interpreter=pipeline.shop.in_effect,
    ) as root:
        try:
            cards = _run_steps(pipeline)
        except UserError:
            root.take_back()
            raise
        if root.done is None:
            root.finish({"scorecards": [card.name for card in cards]})
    return cards


def _run_steps(pipeline: Pipeline) -> list[Scorecard]:
    recipe, out = pipeline.recipe, pipeline.out
    folders: dict[str, Path] = {}
    cards: list[Scorecard] = []

    def measure(name: str, limit: int | None = None, *, all_arms: bool = True) -> None:
        if recipe.evaluate is not None:
            folder = out / "evaluate" / f"{len(cards)}-{name}"
            cards.append(pipeline.evaluate(folder, name=name, model=folders[name], limit=limit, all_arms=all_arms))

    if recipe.distill is not None:
        pipeline.distill(out / "distill")
    if recipe.sft is not None:
        data = Path(recipe.sft.data) if recipe.sft.data else out / "distill"  # without effect where there is a mix
        folders["sft"] = pipeline.sft(out / "sft", data=data)
        folders["base"] = out / "sft" / "base"
        if recipe.evaluate is not None and recipe.evaluate.base_problems:
            measure("base", recipe.evaluate.base_problems, all_arms=False)
        measure("sft")
    if recipe.rl is not None:
        start = Path(recipe.rl.model) if recipe.rl.model else folders["sft"]
        pipeline.rl(out / "rl", start=start)
        stages = len(recipe.rl.stages)
        for number in range(1, stages + 1):
            folders[f"rl-{number}"] = out / "rl" / f"model-rl-{number}"
            measure(f"rl-{number}", all_arms=number == stages)
    if recipe.evaluate is not None and len(cards) > 1:
        _write_comparison(out, pipeline)
    return cards


def _write_comparison(out: Path, pipeline: Pipeline) -> None:
    """Paired gains of the last model over SFT, on the same problems."""
    folders = sorted((out / "evaluate").iterdir(), key=lambda path: int(path.name.split("-")[0]))
    by_name = {folder.name.partition("-")[2]: folder for folder in folders}
    last = folders[-1]
    if "sft" not in by_name or last == by_name["sft"]:
        return
    assert pipeline.recipe.evaluate is not None
    found = []
    for arm in ("", "greedy"):
        before, after = (_rows(folder / arm) for folder in (by_name["sft"], last))
        if before and after:
            gains = compare(before, after, groups=pipeline.recipe.evaluate.groups, seed=pipeline.recipe.seed)
            prefix = f"{arm}/" if arm else ""
            found += [{**dataclasses.asdict(gain), "name": f"{prefix}{gain.name}"} for gain in gains]
    atomic.write_json(out / "comparison.json", found)


def _rows(folder: Path) -> list[Any]:
    if not (folder / "trajectories.jsonl").exists():
        return []
    with Store(folder, keep_ids=False) as store:
        return [records.graded_from_record(record.trajectory, record.annotations) for record in store.records()]


def last_model(folder: Path) -> Path:
    """The last model that a run made: RL's, else SFT's.

    Raises:
        RunFolderError: the folder holds no model.
    """
    for candidate in (folder / "rl" / "model", folder / "sft" / "model", folder / "model"):
        if candidate.is_dir():
            return candidate
    raise RunFolderError(f"{folder}: no model there (looked for rl/model, sft/model and model); is the run finished?")


def _section(section: Any, name: str) -> Any:
    if section is None:
        raise RecipeError(
            f"the recipe has no section {name}; add one, or choose another recipe (thincode recipes list)"
        )
    return section


def _require_training(step: str) -> None:
    for package in ("torch", "transformers", "accelerate", "trl"):
        require(package, extra="train", needed_for=step)


def _add_time(out: Path, name: str, seconds: float) -> None:
    path = out / "timing.json"
    try:
        times: dict[str, float] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        times = {}
    times[name] = round(times.get(name, 0.0) + seconds, 1)
    atomic.write_json(path, times)


def split_of_time(out: Path) -> Mapping[str, float]:
    """Seconds by step, as far as they were written."""
    path = out / "timing.json"
    found: dict[str, float] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found
