"""Train a model by reward."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from .._steps import USAGE, add_recipe, first_process, load, opened, print_line, print_plan, print_whole_plan
from .._verb import Verb


def add(parser: argparse.ArgumentParser) -> None:
    """The recipe and the model to start from."""
    add_recipe(parser)
    parser.add_argument("--model", metavar="DIR", help="model folder, or the id of a model on the hub")
    parser.add_argument("--gpu", metavar="NAME", help="with --plan: also memory, hours, cores and disk on such a GPU")
    parser.add_argument("--gpus", metavar="N", type=int, default=1, help="with --gpu: how many")


def run(words: argparse.Namespace) -> int:
    """Print where the model lies."""
    if words.model is not None:
        words.overrides.append(f"rl.model={json.dumps(words.model)}")
    resolved = load(words)
    if words.plan:
        if words.gpu is None:
            return print_plan(words, resolved)
        from ...runs import plan

        return print_whole_plan(words, resolved, plan.of_rl, plan.text)
    from ...errors import RecipeError

    start = resolved.value.rl.model if resolved.value.rl else None
    if start is None:
        raise RecipeError("rl.model: name the model folder to start from with --model DIR")
    with opened(words, resolved) as (work, out):
        model = work.rl(out, start=Path(start))
    if first_process():
        print_line(words, f"model: {model}", model=str(model))
    return 0


VERB = Verb(
    line="reinforcement learning in stages",
    usage=USAGE,
    description="Trains a model by reward, stage after stage; writes DIR/model and a model for each stage.",
    add=add,
    run=run,
    long=True,
)
