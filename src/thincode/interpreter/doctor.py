"""What keeps a session apart from this machine: the layers that came up, and what a session could still do when it tried."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from . import Limits, Status
from .backends import python

LATER = {
    "landlock": "not built yet: files are hidden by the file system layer alone",
    "seccomp": "not built yet: a session may make any system call that needs no privilege",
}
"""Layers that tier T3 asks for and that no version has yet."""

# Each is a block that ends `ok` when what it tries is possible.
ATTEMPTS = {
    "read a file of yours": "open({secret!r}).read()",
    "list your home folder": "import os; assert len(os.listdir({home!r})) == {entries}",
    "read your environment": "import os; assert os.environ.get('PATH') or b'PATH=' in open('/proc/self/environ','rb').read()",
    "read another process's environment": "open('/proc/{pid}/environ', 'rb').read()",
    "signal another process of yours": "import os; os.kill({pid}, 0)",
    "reach a network": "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect(('192.0.2.1', 9))",
    "write outside its scratch folder": "open({folder!r} + '/written', 'w').close()",
    "run a program": "import os; assert os.spawnv(os.P_WAIT, '/bin/true', ['true']) == 0",
    "be root": "import os; assert os.getuid() == 0",
}


def probe() -> dict[str, Any]:
    """Start a bare interpreter and look.

    Returns:
        `platform`; `layers` (name → `on`, or why not); `open` (what a session managed to do though it should not);
        `tier`: T3 needs every layer, T1 is less, T0 stands for no session at all; `error` with T0.
    """
    try:
        found = asyncio.run(_look())
    except Exception as error:
        return {"platform": sys.platform, "tier": "T0", "layers": {}, "open": [], "error": str(error)}
    layers = {**found["layers"], **LATER}
    tier = "T3" if all(state == "on" for state in layers.values()) and not found["open"] else "T1"
    return {"platform": sys.platform, "tier": tier, "layers": layers, "open": found["open"]}


async def _look() -> dict[str, Any]:
    async with python.open(python.Settings(preload=(), pool=0), limits=Limits(cpu_s=5, wall_s=10)) as interpreter:
        session = await interpreter.session()
        async with session:
            layers = {**interpreter.isolation.get("layers", {}), **session.layers}
            with tempfile.TemporaryDirectory() as folder, tempfile.NamedTemporaryFile() as secret:
                home = Path.home()
                names = {
                    "secret": secret.name, "folder": folder, "pid": os.getpid(), "home": str(home),
                    "entries": len(list(home.iterdir())) if os.access(home, os.R_OK) else -1,
                }  # fmt: skip
                done = [
                    name
                    for name, code in ATTEMPTS.items()
                    if (await session.run(code.format(**names))).status is Status.OK
                ]
    return {"layers": layers, "open": done}
