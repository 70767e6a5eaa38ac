"""Write an evaluation as a log that `inspect view` opens."""

from __future__ import annotations

import argparse
from pathlib import Path

from .._verb import Verb


def add(parser: argparse.ArgumentParser) -> None:
    """The run and the file."""
    parser.add_argument("folder", type=Path, metavar="RUN", help="an evaluation, or a pipeline's folder")
    parser.add_argument("--out", type=Path, metavar="FILE", help="where to write (default: inspect.json in the folder)")


def run(words: argparse.Namespace) -> int:
    """Print where the log is."""
    from ...runs import inspect

    print(inspect.run(words.folder, words.out))
    return 0


VERB = Verb(
    line="write an evaluation as a log for `inspect view`",
    usage="RUN [--out FILE]",
    description="Writes trajectories and grades in the log format of Inspect, which is not needed for it.",
    add=add,
    run=run,
)
