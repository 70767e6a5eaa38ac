"""What a client asks of an interpreter's processes, and how it starts them; light, for it stands before all that takes time."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

QUIET = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMEXPR_NUM_THREADS": "1",
    "VECLIB_MAXIMUM_THREADS": "1",
    "MPLBACKEND": "Agg",
    "HOME": "/tmp",
    "LANG": "C.UTF-8",
}
"""All a session finds in its environment."""

CLOSED = "Python stands in a folder that other users may not enter"
"""Why a layer is missing, as the processes report it and the client knows what to do about it."""


@dataclass(frozen=True)
class Orders:
    """What the client asks of a zygote, as JSON in the supervisor's command line."""

    preload: tuple[str, ...]
    pool: int
    limits: dict[str, int]
    output_chars: int
    control: int
    scratch: str
    """An empty folder, removed at the end."""
    first_at_once: bool = False
    """Give out the first session when the first module is there, before the rest of the preload."""
    off: tuple[str, ...] = ()
    """Layers of isolation not to try: by tests, or all of them where the user wants none."""
    library: str = ""
    """The libpari that blocks are given to; empty: blocks are Python."""


# The package is entered without its `__init__` files: a small process forks fast.
BOOT = """
import sys, types
for name, folder in {packages!r}:
    sys.modules[name] = module = types.ModuleType(name)
    module.__path__ = [folder]
from thincode.interpreter._supervisor import main
main()
"""


def command(orders: Orders) -> list[str]:
    """What to exec."""
    here = Path(__file__).parent
    packages = [("thincode", str(here.parent)), ("thincode.interpreter", str(here))]
    values = json.dumps({field: getattr(orders, field) for field in orders.__dataclass_fields__})
    return [sys.executable, "-P", "-X", "utf8", "-c", BOOT.format(packages=packages), values]


def environment() -> dict[str, str]:
    """All that the supervisor inherits: no secret of the client, a fixed hash seed, one thread in every library."""
    kept = {name: os.environ[name] for name in ("LD_LIBRARY_PATH", "PYTHONHOME") if name in os.environ}
    # A container's user may have no home at all.
    return {**QUIET, **kept, "HOME": os.environ.get("HOME", "/"), "PYTHONHASHSEED": "0"}
