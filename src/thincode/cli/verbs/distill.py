"""Sample a teacher and keep what passes the filters."""

from __future__ import annotations

import argparse
import json

from .._steps import USAGE, add_recipe, load, opened, print_plan
from .._verb import Verb


def run(words: argparse.Namespace) -> int:
    """Print the funnel."""
    resolved = load(words)
    if words.plan:
        return print_plan(words, resolved)
    from ...runs.sieve import lines

    with opened(words, resolved) as (work, out):
        funnel = work.distill(out)
    if words.json:
        print(json.dumps(funnel))
        return 0
    print("\n".join(lines(funnel)))
    print(f"\n{out}")
    return 0


VERB = Verb(
    line="sample a teacher with the interpreter in the loop and filter",
    usage=USAGE,
    description="Samples the teacher with the interpreter in the loop; keeps what passes the filters.",
    add=add_recipe,
    run=run,
    long=True,
)
