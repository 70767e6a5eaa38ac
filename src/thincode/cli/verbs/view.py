"""Run folders as a local web page."""

from __future__ import annotations

import argparse
from pathlib import Path

from .._verb import Verb


def add(parser: argparse.ArgumentParser) -> None:
    """The folders and where to listen."""
    parser.add_argument(
        "folders", type=Path, nargs="+", metavar="DIR", help="run folder; several stand beside each other"
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: this machine only)")
    parser.add_argument("--port", type=int, default=8421, help="port (default: 8421; 0 takes a free one)")


def run(words: argparse.Namespace) -> int:
    """Print the address and serve until Ctrl-C."""
    from ... import report

    try:
        report.view(words.folders, host=words.host, port=words.port, say=lambda line: print(line, flush=True))
    except KeyboardInterrupt:
        print()
    return 0


VERB = Verb(
    line="read run folders in a browser, also while they grow",
    usage="DIR… [--host ADDRESS] [--port N]",
    description=(
        "Serves the report of run folders, with every trajectory, and follows them as they\n"
        "grow. Only this machine can read it unless --host says otherwise; it has no login.\n"
        "Ctrl-C stops it."
    ),
    add=add,
    run=run,
)
