"""Sample, grade and measure a model."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from .._steps import USAGE, add_recipe, load, opened, print_plan, print_result
from .._verb import Verb

if TYPE_CHECKING:
    from ...runs.recipe import Recipe
    from ...settings import Resolved


def add(parser: argparse.ArgumentParser) -> None:
    """The recipe and the model to measure."""
    add_recipe(parser)
    parser.add_argument("--model", metavar="DIR", help="model folder, or the id of a model on the hub")
    parser.add_argument(
        "--add-samples",
        type=int,
        metavar="N",
        help="N samples a problem more than the recipe says, in the run of --out",
    )
    parser.add_argument("--run", type=Path, metavar="DIR", help="the last model of this run instead")


def run(words: argparse.Namespace) -> int:
    """Print the headlines of the scorecard."""
    from ...runs.pipeline import last_model

    model = last_model(words.run) if words.run is not None else Path(words.model) if words.model else None
    if model is not None:
        words.overrides.append(f"evaluate.model={json.dumps(str(model))}")
    resolved = load(words)
    if words.add_samples is not None:
        resolved = _grown(words, resolved)
    if words.plan:
        return print_plan(words, resolved)
    section = resolved.value.evaluate
    with opened(words, resolved) as (work, out):
        folder = Path(section.model) if section is not None and section.model else None
        card = work.evaluate(out, name=_name_of(words.run, folder), model=folder)
    print_result(words, [card], out)
    return 0


def _grown(words: argparse.Namespace, resolved: Resolved[Recipe]) -> Resolved[Recipe]:
    """The recipe with more samples; the run that stands in --out takes it over."""
    from ...errors import RecipeError
    from ...runs.evaluate import grow, samples_key

    if words.out is None or words.add_samples < 1 or resolved.value.evaluate is None:
        raise RecipeError("--add-samples N: a number from 1 on, and the finished run's folder with --out DIR")
    key, samples = samples_key(resolved.value.evaluate)
    words.overrides.append(f"{key}={samples + words.add_samples}")
    grown = load(words)
    if not words.plan:
        grow(words.out, grown, key=key)
        words.resume = True
    return grown


def _name_of(run: Path | None, model: Path | None) -> str | None:
    if run is not None:
        return run.name
    return model.name if model is not None else None


VERB = Verb(
    line="sample, grade and measure a model",
    usage=USAGE,
    description="Samples a model, grades the answers and writes DIR/scorecard.json.",
    add=add,
    run=run,
    long=True,
)
