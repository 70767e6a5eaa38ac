"""The page of a run folder, or of several."""

from __future__ import annotations

import argparse
from pathlib import Path

from .._verb import Verb


def add(parser: argparse.ArgumentParser) -> None:
    """The folders and where the page goes."""
    parser.add_argument(
        "folders", type=Path, nargs="+", metavar="DIR", help="run folder; several stand beside each other"
    )
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="where to write (default: report.html in the first folder)"
    )


def run(words: argparse.Namespace) -> int:
    """Print where the page lies."""
    from ... import report

    print(report.build(words.folders, words.out))
    return 0


VERB = Verb(
    line="write the page of a run folder",
    usage="DIR… [--out FILE]",
    description="Writes one HTML file of a run folder, or of several: it opens from disk, without a server.",
    add=add,
    run=run,
)
