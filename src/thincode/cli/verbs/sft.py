"""Train on what a distillation kept."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from .._steps import USAGE, add_recipe, first_process, load, opened, print_line, print_plan, print_whole_plan
from .._verb import Verb


def add(parser: argparse.ArgumentParser) -> None:
    """The recipe and the data."""
    add_recipe(parser)
    words = "folder of a distillation (or sft.data in the recipe)"
    parser.add_argument("--data", type=Path, metavar="DIR", help=words)
    parser.add_argument("--gpu", metavar="NAME", default="h200", help="with --plan: memory and hours on such a GPU")
    parser.add_argument("--gpus", metavar="N", type=int, default=1, help="with --plan: how many")


def run(words: argparse.Namespace) -> int:
    """Print where the model lies."""
    if words.data is not None:
        words.overrides.append(f"sft.data={json.dumps(str(words.data))}")
    resolved = load(words)
    if words.plan:
        if resolved.value.sft is None:
            return print_plan(words, resolved)
        from ...runs import plan_sft

        return print_whole_plan(words, resolved, plan_sft.of_sft, plan_sft.text)
    from ...errors import RecipeError

    section = resolved.value.sft
    if section is not None and section.data is None and not section.mix:
        raise RecipeError("sft.data: name the run folder of a distillation with --data DIR, or several with sft.mix")
    with opened(words, resolved) as (work, out):
        model = work.sft(out, data=Path(section.data if section and section.data else ""))
    if first_process():
        print_line(words, f"model: {model}", model=str(model))
    return 0


VERB = Verb(
    line="train on what distillation kept",
    usage=USAGE,
    description="Trains on the trajectories that a distillation kept; writes DIR/model.",
    add=add,
    run=run,
    long=True,
)
