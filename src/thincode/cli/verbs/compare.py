"""Compare runs on the same problems."""

from __future__ import annotations

import argparse
import dataclasses
import json
from pathlib import Path

from .._steps import print_table
from .._verb import Verb


def add(parser: argparse.ArgumentParser) -> None:
    """The runs, and how to split and write."""
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="an evaluation, or a pipeline's folder")
    parser.add_argument("--groups", default="", metavar="TAG,…", help="problem tags to split by, for example subject")
    parser.add_argument("--as", dest="style", choices=("table", "csv", "markdown", "latex"), default="table")
    parser.add_argument("--json", action="store_true", help="as JSON")


def run(words: argparse.Namespace) -> int:
    """Print the paired figures, the first run being what the others are compared with."""
    from ...runs import compare

    cards = compare.run(words.runs, groups=[tag for tag in words.groups.split(",") if tag])
    if words.json:
        print(json.dumps([dataclasses.asdict(card) for card in cards]))
    else:
        print_table(cards, words.style)
    return 0


VERB = Verb(
    line="paired difference of runs on the same problems",
    usage="RUN RUN … [--groups TAG,…]",
    description="Paired differences of runs over the first: interval, bootstrap, McNemar's test, ratios.",
    add=add,
    run=run,
)
