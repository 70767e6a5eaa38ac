"""Looking at records."""

from __future__ import annotations

import argparse
import json
from itertools import islice
from pathlib import Path

from .._verb import Verb


def add(parser: argparse.ArgumentParser) -> None:
    """What to look at, and how."""
    parser.add_argument("action", choices=("stats", "head", "diff"))
    parser.add_argument("places", type=Path, nargs="+", metavar="PLACE", help="run folder, or JSONL of transcripts")
    parser.add_argument("--format", default="thinc", metavar="NAME", help="of a JSONL file (default: thinc)")
    parser.add_argument("-n", type=int, default=3, metavar="N", help="trajectories of head (default: 3)")
    parser.add_argument("--json", action="store_true", help="stats and diff as JSON")


def run(words: argparse.Namespace) -> int:
    """Print what was asked for."""
    from ...errors import RecipeError
    from ...runs import data
    from ...settings import kind
    from ...trajectory.formats import build

    wanted = 2 if words.action == "diff" else 1
    if len(words.places) != wanted:
        raise RecipeError(f"data {words.action}: takes {wanted} place{'s' * (wanted > 1)}, not {len(words.places)}")
    format = build(kind("thincode.trajectory.formats", words.format))
    items = [data.items(place, format=format) for place in words.places]
    if words.action == "head":
        for item in islice(items[0], words.n):
            print("\n".join(data.head_lines(item)), end="\n\n")
        return 0
    if words.action == "stats":
        found, lines = data.stats(list(items[0])), data.stat_lines
    else:
        found, lines = data.diff(list(items[0]), list(items[1])), data.diff_lines
    print(json.dumps(found, ensure_ascii=False) if words.json else "\n".join(lines(found)))
    return 0


VERB = Verb(
    line="look at records: stats, head, diff",
    usage="stats PLACE | head PLACE [-n N] | diff PLACE PLACE",
    description="Figures of records, the first of them, or what differs between two places.",
    add=add,
    run=run,
)
