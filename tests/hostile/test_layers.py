"""Every layer is needed: for each there is something that it refuses, and that goes through when it alone is off."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import pytest

from thincode.interpreter import Limits, Status
from thincode.interpreter.backends import python
from thincode.interpreter.tiers import NEEDS, Tier

LIMITS = Limits(cpu_s=2, wall_s=20, memory_mib=256, processes=16, disk_mib=8, files=64)
LIBC = "import ctypes; libc = ctypes.CDLL(None, use_errno=True); "
BOMB = "import os, time\nfor _ in range(60):\n    if os.fork() == 0: time.sleep(9)\n"


class Held(NamedTuple):
    """What a layer does."""

    code: str
    """Ends `ok` only while the layer is on, or where `refuses` only while it is off."""
    refuses: bool = True
    without: tuple[str, ...] = ()
    """Other layers that would do the same, and are off in both trials."""
    as_root: bool = False


LAYERS = {
    "namespaces": Held("import os; os.getsid({pid})"),
    "file system": Held("import os; os.stat({secret!r})"),
    "ordinary user": Held(BOMB, as_root=True),
    "own namespaces": Held("open('note', 'w').close()", refuses=False),
    "disk quota": Held("open('note', 'w').close()", refuses=False),
    "process group": Held("import os; assert os.getsid(0) == os.getpid()", refuses=False),
    "dies with parent": Held(
        LIBC + "found = ctypes.c_int(); libc.prctl(2, ctypes.byref(found)); assert found.value == 9", refuses=False
    ),
    "adopts orphans": Held(
        LIBC + "found = ctypes.c_int(); libc.prctl(37, ctypes.byref(found)); assert found.value", refuses=False
    ),
    "process limit": Held(BOMB),
    "rlimits": Held("import mmap; mmap.mmap(-1, 512 << 20)"),
    "no capabilities": Held(
        LIBC + "held = (ctypes.c_uint32 * 6)()\n"
        "libc.capget(ctypes.byref((ctypes.c_uint32 * 2)(0x20080522, 0)), held)\nassert any(held)"
    ),
    "no new privileges": Held(LIBC + "assert libc.prctl(39, 0, 0, 0, 0) == 1", refuses=False),
    "not dumpable": Held(LIBC + "assert libc.prctl(3, 0, 0, 0, 0) == 0", refuses=False),
    "landlock": Held("import os; os.listdir('/')"),
    "seccomp": Held("import socket; socket.socket()"),
    "own signals": Held("import os; os.kill({pid}, 0)", without=("namespaces", "landlock", "ordinary user")),
}


def ends_well(held: Held, off: tuple[str, ...]) -> bool:
    """Whether the block ends `ok` with these layers off."""

    async def run() -> bool:
        settings = python.Settings(preload=(), pool=0, tier=Tier.T0)
        interpreter = python.PythonInterpreter(settings, limits=LIMITS, off=off)
        with tempfile.NamedTemporaryFile() as secret:
            async with interpreter, await interpreter.session() as session:
                code = held.code.format(secret=secret.name, pid=os.getpid())
                return (await session.run(code)).status is Status.OK

    return asyncio.run(run())


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has these layers")


def test_no_layer_of_a_tier_is_left_out() -> None:
    assert set(LAYERS) == {layer for layers in NEEDS.values() for layer in layers}


@pytest.mark.parametrize("layer", LAYERS)
def test_only_this_layer_holds_it(layer: str) -> None:
    held = LAYERS[layer]
    if held.as_root and os.geteuid() != 0:
        pytest.skip("only root has what this layer gives up")
    assert ends_well(held, held.without) is not held.refuses
    assert ends_well(held, (*held.without, layer)) is held.refuses


def test_a_session_goes_before_anything_of_ours_when_memory_runs_short() -> None:
    async def look(off: tuple[str, ...]) -> str:
        settings = python.Settings(preload=(), pool=0)
        async with (
            python.PythonInterpreter(settings, limits=LIMITS, off=off) as interpreter,
            await interpreter.session() as session,
        ):
            await session.run("1")
            assert session._process is not None
            return Path(f"/proc/{session._process.pid}/oom_score_adj").read_text().strip()

    assert asyncio.run(look(())) == "1000"
    assert asyncio.run(look(("goes first",))) != "1000"
