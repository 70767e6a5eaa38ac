"""All steps of a recipe."""

from __future__ import annotations

import argparse

from .._steps import USAGE, add_recipe, load, opened, print_line, print_plan, print_result
from .._verb import Verb


def run(words: argparse.Namespace) -> int:
    """Every step, then the page."""
    resolved = load(words)
    if words.plan:
        return print_plan(words, resolved)
    from ... import report
    from ...runs import pipeline

    with opened(words, resolved) as (work, out):
        cards = pipeline.run(work)
        page = report.build(out)
    print_result(words, cards, out)
    print_line(words, f"report: {page}")
    return 0


VERB = Verb(
    line="all steps of a recipe: distill, sft, rl, evaluate, report",
    usage=USAGE,
    description="Does every step the recipe has a section for, in one folder, and writes the report.",
    add=add_recipe,
    run=run,
    long=True,
)
