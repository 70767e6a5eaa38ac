"""Compare runs on the same problems."""

from __future__ import annotations

import argparse

from .._steps import add_runs, print_cards
from .._verb import Verb


def add(parser: argparse.ArgumentParser) -> None:
    """The runs, and how to split and write."""
    add_runs(parser)
    parser.add_argument("--groups", default="", metavar="TAG,…", help="problem tags to split by, for example subject")


def run(words: argparse.Namespace) -> int:
    """Print the paired figures, the first run being what the others are compared with."""
    from ...runs import compare

    cards = compare.run(words.runs, groups=[tag for tag in words.groups.split(",") if tag])
    return print_cards(words, cards)


VERB = Verb(
    line="paired difference of runs on the same problems",
    usage="RUN RUN … [--groups TAG,…]",
    description="Paired differences of runs over the first: interval, bootstrap, McNemar's test, ratios.",
    add=add,
    run=run,
)
