"""What this machine has and lacks."""

from __future__ import annotations

import argparse
import json

from .._verb import Verb

TIERS = ("T1", "T2", "T3")


def add(parser: argparse.ArgumentParser) -> None:
    """How to print it."""
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.add_argument("--tier", choices=TIERS, help="exit with 1 where the interpreter's isolation is weaker")


def run(words: argparse.Namespace) -> int:
    """Print versions, device, layers, and what a session could do when it tried; 1 below the tier that is asked for."""
    from ... import doctor

    found = doctor.report()
    print(json.dumps(found, indent=2) if words.json else "\n".join(doctor.lines(found)))
    return int(words.tier is not None and found["tier"] < words.tier)


VERB = Verb(
    line="what this machine has and lacks",
    usage="[--json] [--tier T2]",
    description="Prints versions, device, and what isolates the interpreter here, by trying to break out.",
    add=add,
    run=run,
)
