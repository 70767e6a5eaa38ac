"""What this machine has and lacks."""

from __future__ import annotations

import argparse
import json

from .._verb import Verb


def add(parser: argparse.ArgumentParser) -> None:
    """How to print it."""
    parser.add_argument("--json", action="store_true", help="as JSON")


def run(words: argparse.Namespace) -> int:
    """Print versions, device and layers."""
    from ... import doctor

    found = doctor.report()
    print(json.dumps(found, indent=2) if words.json else "\n".join(doctor.lines(found)))
    return 0


VERB = Verb(
    line="what this machine has and lacks",
    usage="[--json]",
    description="Prints versions, device, and which layers isolate the interpreter here.",
    add=add,
    run=run,
)
