"""The scorecards of runs, side by side."""

from __future__ import annotations

import argparse

from .._steps import add_runs, print_cards
from .._verb import Verb


def add(parser: argparse.ArgumentParser) -> None:
    """The runs and the style."""
    add_runs(parser)


def run(words: argparse.Namespace) -> int:
    """Print every figure of every scorecard."""
    from ...runs import compare

    cards = compare.scorecards(words.runs)
    return print_cards(words, cards)


VERB = Verb(
    line="scorecards side by side: table, CSV, Markdown, LaTeX",
    usage="RUN … [--as csv|markdown|latex]",
    description="Prints the scorecards that stand in run folders, one column each.",
    add=add,
    run=run,
)
