"""PARI/GP, for number theory: a block is what one would type at gp's prompt, in the same isolated sessions that Python has.

    system    PARI/GP, https://pari.math.u-bordeaux.fr, GPL-2.0 or later; 2.15.2 and 2.15.4 were tried
    carrier   its library, loaded into a session's process and nowhere else: the wheel `cypari` (pip install 'thincode[gp]'),
              Debian's libpari-gmp-tls8, or any shared libpari of version 2.15 that `library` names
    shown     the value of each line that no `;` ends, as gp prints it but without `%N =`; what is printed; of an error the
              one line that says what PARI has against it
    state     names, functions and the history `%` persist; as in gp, variables that a failed line assigned lose their
              values; a block that was stopped for time leaves the names as they were before it
    differs   no threads, no `input`, no data packages, and gp's secure mode for good: `system`, `extern`, `install` and
              `write` are refused; what it lets through (`read`) meets the session's isolation

Half of `memory_mib` is the most that PARI's stack may grow to. Seeds go to `setrand`.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from ...errors import MissingExtraError
from ...settings import settings
from .. import Limits
from .._forked import ForkedInterpreter
from ..tiers import Tier

LANGUAGE = "gp"
"""What the blocks are written in."""

FOLDERS = ("/usr/lib", "/usr/lib64", "/usr/local/lib", "/opt/homebrew/lib")
"""Where systems keep shared libraries; Debian one level further down."""


@settings
class Settings:
    """How sessions are made."""

    library: str = ""
    """Path of a shared libpari; empty: the one of the wheel `cypari`, or else the system's."""
    pool: int = 2
    """Sessions forked ahead of need."""
    tier: Tier | None = None
    """As for Python; None: the best there is."""


def open(settings: Settings, *, limits: Limits) -> ForkedInterpreter:
    """Start the supervisor.

    Raises:
        MissingExtraError: there is no libpari.
        InfrastructureError: the supervisor can't be started.
    """
    library = settings.library or find()
    if not library:
        raise MissingExtraError("PARI's library", extra="gp", needed_for="interpreter.backend=gp")
    return ForkedInterpreter(limits=limits, tier=settings.tier, pool=settings.pool, library=library)


def find() -> str:
    """The path of a libpari; empty where there is none. Nothing is loaded."""
    wheel = importlib.util.find_spec("cypari")
    inside = wheel.submodule_search_locations if wheel else None
    places = [(Path(folder), "_pari*.so") for folder in inside or ()]
    ending = "dylib" if sys.platform == "darwin" else "so"
    for folder in map(Path, FOLDERS):
        places += [(folder, f"libpari*.{ending}*"), (folder, f"*/libpari*.{ending}*")]
    return next((str(path) for folder, pattern in places for path in sorted(folder.glob(pattern))), "")
