"""The page of a run folder."""

from __future__ import annotations

import argparse
from pathlib import Path

from .._verb import Verb


def add(parser: argparse.ArgumentParser) -> None:
    """The folder and where the page goes."""
    parser.add_argument("folder", type=Path, metavar="DIR", help="run folder")
    parser.add_argument("--out", type=Path, metavar="FILE", help="where to write (default: report.html in the folder)")


def run(words: argparse.Namespace) -> int:
    """Print where the page lies."""
    from ... import report

    print(report.build(words.folder, words.out))
    return 0


VERB = Verb(
    line="write the page of a run folder",
    usage="DIR",
    description="Writes one HTML file of a run folder: it opens from disk, without a server.",
    add=add,
    run=run,
)
