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
    parser.add_argument(
        "--limit-mb",
        type=float,
        default=45.0,
        metavar="N",
        help="megabytes of trajectories on the page, beyond which they are sampled (default: 45; 0: none)",
    )


def run(words: argparse.Namespace) -> int:
    """Print where the page lies."""
    from ... import report
    from ...errors import RecipeError

    if not 0 <= words.limit_mb < 1e6:
        raise RecipeError(f"--limit-mb {words.limit_mb:g}: write a number of megabytes from 0, for example 4")
    print(report.build(words.folders, words.out, limit_bytes=int(words.limit_mb * 1e6)))
    return 0


VERB = Verb(
    line="write the page of a run folder",
    usage="DIR… [--out FILE] [--limit-mb N]",
    description="Writes one HTML file of a run folder, or of several: it opens from disk, without a server.",
    add=add,
    run=run,
)
