"""The scorecards of runs, side by side."""

from __future__ import annotations

import argparse
import dataclasses
import json
from pathlib import Path

from .._steps import print_table
from .._verb import Verb


def add(parser: argparse.ArgumentParser) -> None:
    """The runs and the style."""
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="an evaluation, or a pipeline's folder")
    parser.add_argument("--as", dest="style", choices=("table", "csv", "markdown", "latex"), default="table")
    parser.add_argument("--json", action="store_true", help="as JSON")


def run(words: argparse.Namespace) -> int:
    """Print every figure of every scorecard."""
    from ...runs import compare

    cards = compare.scorecards(words.runs)
    if words.json:
        print(json.dumps([dataclasses.asdict(card) for card in cards]))
    else:
        print_table(cards, words.style)
    return 0


VERB = Verb(
    line="scorecards side by side: table, CSV, Markdown, LaTeX",
    usage="RUN … [--as csv|markdown|latex]",
    description="Prints the scorecards that stand in run folders, one column each.",
    add=add,
    run=run,
)
