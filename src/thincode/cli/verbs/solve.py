"""One trajectory, live."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from .._verb import Verb


def add(parser: argparse.ArgumentParser) -> None:
    """The question, the model and the recipe."""
    parser.add_argument("question", metavar="QUESTION")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--run", type=Path, metavar="DIR", help="the last model of this run")
    which.add_argument("--model", metavar="DIR", help="model folder, or the id of a model on the hub")
    parser.add_argument(
        "--recipe",
        default="tiny/demo",
        help="whose format, limits and budget count (default: the run's, else tiny/demo)",
    )


def run(words: argparse.Namespace) -> int:
    """Stream the text, then print the answer."""
    from ...runs import solve
    from ...runs.pipeline import last_model
    from ...runs.recipe import Recipe
    from ...settings import load

    recipe: Any = words.recipe
    if words.run is not None and (words.run / "recipe.resolved.yaml").exists():
        recipe = words.run / "recipe.resolved.yaml"
    resolved = load(Recipe, recipe, words.overrides)
    model = str(last_model(words.run)) if words.run is not None else words.model
    trajectory = solve.run(resolved.value, question=words.question, model=model, watch=_write_live)
    print()
    print(f"answer: {trajectory.answer if trajectory.answer is not None else 'none'}  ({trajectory.end.value})")
    return 0


def _write_live(piece: str) -> None:
    sys.stdout.write(piece)
    sys.stdout.flush()


VERB = Verb(
    line="stream one trajectory for a question of yours",
    usage='"QUESTION" (--run DIR | --model DIR) [key.path=value …]',
    description="Streams one greedy trajectory: the model's text, its blocks, and what they really print.",
    add=add,
    run=run,
    overrides=True,
)
