"""Measure transcripts that are there."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from .._steps import print_table
from .._verb import Verb


def add(parser: argparse.ArgumentParser) -> None:
    """The file, its format, and what to write."""
    parser.add_argument("path", type=Path, metavar="FILE", help="JSONL of transcripts, or a run folder")
    parser.add_argument("--format", metavar="NAME", help="wire format of a file, for example tora")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the scorecard as JSON")
    parser.add_argument("--as", dest="style", choices=("table", "csv", "markdown", "latex"), default="table")
    parser.add_argument("--processes", type=int, default=0, metavar="N", help="default: one a core")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    parser.add_argument("--json", action="store_true", help="the scorecard as one JSON line")


def run(words: argparse.Namespace) -> int:
    """Print the scorecard, and whom the file contradicts."""
    import dataclasses
    from functools import partial

    from ...evaluation.scorecard import write
    from ...runlog import Progress
    from ...runs import measure
    from ...runs.recipe import FORMATS, default_metrics
    from ...settings import kind

    format = kind(FORMATS, words.format) if words.format is not None else None
    progress = partial(Progress, quiet=words.quiet, json=words.json)
    found = measure.run(
        words.path, format=format, metrics=default_metrics(), progress=progress, processes=words.processes
    )
    if found.doubt:
        print(found.doubt, file=sys.stderr)
    if words.out is not None:
        write(found.card, words.out)
    if words.json:
        print(json.dumps({**dataclasses.asdict(found.card), "claimed": found.claimed, "disagree": found.disagree}))
        return 0
    print_table([found.card], words.style)
    if found.claimed and words.style == "table":
        names = f": {', '.join(found.disagree)}" if found.disagree else ""
        agree = found.claimed - len(found.disagree)
        print(f"\nthe file's own field `correct` agrees in {agree} of {found.claimed}{names}", file=sys.stderr)
    return 0


VERB = Verb(
    line="every metric over transcripts that are there",
    usage="FILE --format NAME | DIR  [--out FILE]",
    description="Grades and measures published transcripts of any known format, or the records of a run.",
    add=add,
    run=run,
)
