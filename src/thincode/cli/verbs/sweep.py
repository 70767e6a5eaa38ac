"""A recipe in several arms, each at several seeds."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from .._steps import USAGE, add_recipe, claim, console, load, print_line
from .._verb import Verb


def add(parser: argparse.ArgumentParser) -> None:
    """The recipe, and which of its arms."""
    add_recipe(parser)
    parser.add_argument("--arms", default="", metavar="ARM,…", help="some of the arms only")
    parser.add_argument("--seeds", default="", metavar="N,…", help="these seeds instead of the recipe's, any numbers")


def run(words: argparse.Namespace) -> int:
    """Print the table and where the page lies."""
    from ...errors import RecipeError
    from ...runs.recipe import Recipe
    from ...runs.sweep import choose, runs_of
    from ...settings import load as load_recipe

    section = load(words).value.sweep
    if section is None:
        raise RecipeError(
            f"{words.recipe} has no section sweep, so there are no arms to run; thincode run runs it once"
        )
    out = words.out or Path("runs", "sweep") if words.plan else claim(words)
    seeds = _numbers(words.seeds)
    every = runs_of(
        section,
        out=out.absolute(),
        load=lambda more: load_recipe(Recipe, words.recipe, [*words.overrides, *more]),
        seeds=seeds,
    )
    runs = choose(section, every, arms=[name for name in words.arms.split(",") if name], seeds=seeds)
    if words.plan:
        plan = {f"{one.arm}/seed-{one.seed}": list(section.arms[one.arm].set) for one in runs}
        for name, changed in plan.items():
            print_line(words, f"{name:<32}  {' '.join(changed)}", run=name, set=changed)
        print_line(words, f"{len(runs)} runs")
        return 0
    from ... import report
    from ...runs import sweep

    out.mkdir(parents=True, exist_ok=True)
    sweep.run(section, runs, every=every, out=out.absolute(), console=console(words))
    page = report.build(out, limit_bytes=4_000_000)
    print((out / "table.md").read_text(encoding="utf-8") if not words.json else json.dumps({"out": str(out)}))
    print_line(words, f"report: {page}")
    return 0


def _numbers(text: str) -> list[int]:
    from ...errors import RecipeError

    try:
        return [int(number) for number in text.split(",") if number]
    except ValueError:
        raise RecipeError(
            f"--seeds {text}: write whole numbers with commas between them, for example --seeds 1,2"
        ) from None


VERB = Verb(
    line="a recipe in several arms, at several seeds; one table",
    usage=USAGE,
    description="""\
Runs every arm of the recipe's section sweep at each seed, one run folder each, and
writes DIR/table.md, DIR/sweep.json and DIR/report.html. Killed, or given more seeds or
arms, it goes on with --resume; several processes may share one DIR.""",
    add=add,
    run=run,
    long=True,
)
