"""The interpreter as a service."""

from __future__ import annotations

import argparse
import asyncio
import os

from .._verb import Verb


def add(parser: argparse.ArgumentParser) -> None:
    """What to do with it."""
    parser.add_argument("action", choices=("serve",), help="serve: offer sessions to other programs and machines")
    parser.add_argument("--plan", action="store_true", help="print every setting and where it came from; serve nothing")


def run(words: argparse.Namespace) -> int:
    """Serve until told to stop; not at all where sessions are isolated less than `backend.tier` says."""
    from ...errors import require
    from ...settings import apply_overrides, dump, origins, parse

    require("aiohttp", extra="remote", needed_for="thincode interpreter serve")
    from ...interpreter import doctor, service

    settings = parse(service.Settings, apply_overrides(dump(service.Settings()), words.overrides))
    token = os.environ.get("THINCODE_TOKEN") or None
    if words.plan:
        for path, value, origin in origins(dump(settings), {}, words.overrides):
            print(f"{path:<20}  {value!s:<20}  {origin}")
        return 0
    service.check_token(settings, token)
    tier = doctor.require(settings.backend.settings) if settings.backend.name == "python" else "none of its own"

    def ready(url: str) -> None:
        secret = "with a token" if token else "without a token, for this machine"
        print(f"serving at {url} ({secret}; isolation {tier}; Ctrl-C ends it)", flush=True)

    asyncio.run(service.serve(settings, token=token, ready=ready))
    return 0


VERB = Verb(
    line="serve the interpreter to other programs and machines",
    usage="serve [--plan] [key.path=value …]",
    description="Serves sessions over HTTP, to the backend `remote` on any machine, and to whatever\n"
    "speaks SandboxFusion's POST /run_code. THINCODE_TOKEN is the secret they must send.",
    add=add,
    run=run,
    overrides=True,
)
