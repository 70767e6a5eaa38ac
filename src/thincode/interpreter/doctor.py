"""What keeps a session apart from this machine: the layers that came up, and what a session could still do when it tried."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import IsolationError
from . import Limits, Status, tiers
from .backends import gp, python
from .tiers import Tier

LIMITS = Limits(cpu_s=5, wall_s=10, memory_mib=256, processes=16, disk_mib=8, files=64)

LIBC = "import ctypes; libc = ctypes.CDLL(None); "
ATTEMPTS: dict[Tier, dict[str, str]] = {
    Tier.T1: {
        "use more memory than allowed": "import mmap; mmap.mmap(-1, 512 << 20)",
        "open more files than allowed": "held = [open('/dev/null') for _ in range(80)]",
        "write a larger file than allowed": "open('large', 'wb').write(bytes(9 << 20))",
        "read your environment": "import os; assert 'PATH' in os.environ",
    },
    Tier.T2: {
        "read a file of yours": "open({secret!r}).read()",
        "list your home folder": "import os; assert len(os.listdir({home!r})) == {entries}",
        "write outside its scratch folder": "open({folder!r} + '/written', 'w').close()",
        "change the mode of a file of yours": "import os; os.chmod({secret!r}, 0o640); assert os.stat({secret!r}).st_mode & 0o40",
        "read another process's environment": "open('/proc/{pid}/environ', 'rb').read()",
        "signal another process of yours": "import os; os.kill({pid}, 0)",
        # Looking at address 0 of a process fails with EFAULT for those who may look at it at all.
        "look into another process's memory": "import ctypes; libc = ctypes.CDLL(None, use_errno=True); "
        "place = (ctypes.c_size_t * 2)(0, 8); libc.process_vm_readv({pid}, (ctypes.c_size_t * 2)(id(place), 8), 1, place, 1, 0); "
        "assert ctypes.get_errno() == 14",
        "reach a network": "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(('192.0.2.1', 9))",
        "reach a service on this machine": "import socket; socket.create_connection(('127.0.0.1', {port}), 2)",
        "run a program": "import os; assert os.spawnv(os.P_WAIT, '/bin/true', ['true']) == 0",
        "start more processes than allowed": "import os, time\nfor _ in range(300):\n    if os.fork() == 0: time.sleep(9)",
        "hold memory that no limit counts": LIBC + "assert libc.memfd_create(b'hidden', 0) >= 0",
        # Who may mount hears ENODEV of a file system that there is none of.
        "mount": "import ctypes; libc = ctypes.CDLL(None, use_errno=True); libc.mount(b'none', b'/', b'no-such-kind', 0, None); "
        "assert ctypes.get_errno() == 19",
        "hand work to the kernel unseen (io_uring)": LIBC + "assert libc.syscall(425, 1, ctypes.create_string_buffer(120)) >= 0",
        "be root": "import os; assert os.getuid() == 0",
        "have a capability": LIBC + "held = (ctypes.c_uint32 * 6)(); "
        "libc.capget(ctypes.byref((ctypes.c_uint32 * 2)(0x20080522, 0)), held); assert any(held)",
        "make namespaces": LIBC + "assert libc.unshare(0x10000000) == 0",
    },
    Tier.T3: {
        "see that a file of yours exists": "import os; os.stat({secret!r})",
        "see that a process of yours exists": "import os; os.getsid({pid})",
        "fill the disk with many files": "for n in range(4): open(f'part{{n}}', 'wb').write(bytes(4 << 20))",
    },
}  # fmt: skip
"""By the tier that promises to refuse it: what a session must not be able to do. Each is a block that ends `ok` where it can.

Each must do no harm where nothing refuses it: as root and without isolation, it is the machine itself that they are tried on.
"""


def probe(settings: python.Settings | None = None, *, off: tuple[str, ...] | None = None) -> dict[str, Any]:
    """Start a bare interpreter and look.

    Args:
        settings: whose `tier` is obeyed where it is T0.
        off: layers to do without, see `PythonInterpreter`.

    Returns:
        `tier`, by layers and by what was refused; `layers` (name → `on`, or why not); `attempts` (name →
        `refused`, with the exception, or `open`); `open`, the names of those; `advice`, what to do for a better tier;
        `error`, where there is no session at all.
    """
    wanted = settings.tier if settings else None
    light = python.Settings(preload=(), pool=0, tier=wanted if wanted is Tier.T0 else Tier.T1)
    try:
        layers, attempts = asyncio.run(_look(light, off))
    except Exception as error:
        layers, attempts, failed = {}, {}, {"error": str(error)}
    else:
        failed = {}
    tier = judge(layers, attempts)
    return {
        "tier": str(tier),
        "layers": layers,
        "attempts": attempts,
        "open": [name for name, came in attempts.items() if came == "open"],
        "advice": tiers.advice(layers, Tier.T3),
        **failed,
    }


def probe_gp() -> dict[str, str]:
    """Ask PARI/GP for its version, in a session.

    Returns:
        `library` (its path) and `version`; or `error`.
    """

    async def ask() -> str:
        async with gp.open(gp.Settings(pool=0), limits=LIMITS) as interpreter, await interpreter.session() as session:
            result = await session.run("version()")
            return ".".join(re.findall(r"\d+", result.output)[:3]) if result.status is Status.OK else result.output

    try:
        return {"library": gp.find(), "version": asyncio.run(ask())}
    except Exception as error:
        return {"error": str(error)}


def require(settings: python.Settings) -> Tier:
    """Look before a long run, which must not find out at its first block.

    Returns:
        The tier that sessions have here.

    Raises:
        IsolationError: it is not the one that the settings ask for.
    """
    found = probe(settings)
    tier = Tier(found["tier"])
    if "error" not in found:
        tiers.demand(found["layers"], settings.tier)
        if settings.tier and tier < settings.tier:
            raise IsolationError(
                f"every layer of tier {settings.tier} is there, and yet a session could {', '.join(found['open'])}; "
                f"`thincode doctor` shows more. To accept it: interpreter.backend.tier={tier}"
            )
    return tier


def judge(layers: Mapping[str, str], attempts: Mapping[str, str]) -> Tier:
    """The tier that the layers make up, or the one below the first that let through what it promises to refuse."""
    found = tiers.reached(layers)
    below = Tier.T0
    for tier, tried in ATTEMPTS.items():
        if any(attempts.get(name) == "open" for name in tried):
            return min(found, below)
        below = tier
    return found


async def _look(settings: python.Settings, off: tuple[str, ...] | None) -> tuple[dict[str, str], dict[str, str]]:
    """Layers and attempts of one session."""
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0, family=socket.AF_INET)
    interpreter = python.PythonInterpreter(settings, limits=LIMITS, off=off)
    async with server, interpreter, await interpreter.session() as session:
        layers = {**interpreter.isolation.get("layers", {}), **session.layers}
        with tempfile.TemporaryDirectory() as folder, tempfile.NamedTemporaryFile() as secret:
            home = Path(os.environ.get("HOME", "/"))
            names = {
                "secret": secret.name, "folder": folder, "pid": os.getpid(), "home": str(home),
                "entries": len(list(home.iterdir())) if os.access(home, os.R_OK) else -1,
                "port": server.sockets[0].getsockname()[1],
            }  # fmt: skip
            attempts = {}
            for tried in ATTEMPTS.values():
                for name, code in tried.items():
                    result = await session.run(code.format(**names))
                    told = "" if result.detail == "AssertionError" else f" ({result.detail})"
                    attempts[name] = "open" if result.status is Status.OK else f"refused{told}"
    return layers, attempts
