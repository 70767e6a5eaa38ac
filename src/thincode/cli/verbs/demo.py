"""The recipe tiny/demo, by one word."""

from __future__ import annotations

import argparse

from .._verb import Verb
from . import run as whole


def run(words: argparse.Namespace) -> int:
    """As `thincode run tiny/demo`."""
    words.recipe = "tiny/demo"
    return whole.run(words)


VERB = Verb(
    line="watch a tiny model learn to think in code on this machine",
    usage="[key.path=value …]",
    description="Runs the recipe tiny/demo, which needs no network and no GPU.",
    run=run,
    long=True,
)
