"""Many sessions, a random hostile mix, a canary in each. `python soak.py SECONDS SESSIONS SEED` runs it and prints JSON.

A session may lose its names only where the result says so; nobody ever sees another's canary.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hostile.cases import CASES
from thincode.errors import InfrastructureError
from thincode.interpreter import Limits, Status
from thincode.interpreter._session import ForkedSession
from thincode.interpreter.backends import python

LIMITS = Limits(
    cpu_s=0.3, wall_s=6, memory_mib=128, output_chars=500, processes=8, disk_mib=4, files=64, grace_s=0.3,
    deterministic=True,
)  # fmt: skip
"""CPU time judges: a busy machine stops no block that only looks at its canary."""
CANARY = re.compile(r"canary-\d+-\d+")
AWAY = ("{secret", "{folder", "{port", "canary", "builtins", "os.write(1, b'x')")
MIX = [case.code for case in CASES.values() if not case.needs and not any(word in case.code for word in AWAY)]
"""All but what needs a file, a server or a package of this machine, and what spoils its own canary: by name, by `print`, or by a
thread that writes on while later blocks run."""
AT_ONCE = 12


@dataclass
class Tally:
    """What was seen."""

    blocks: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    restored: Counter[str] = field(default_factory=Counter)
    lost_names: int = 0
    branches: int = 0
    spent: int = 0
    """Looks at sessions whose own blocks left them no memory to print with."""
    wrong: list[str] = field(default_factory=list)
    """Each a session that saw another's canary, or lost its own without a word."""
    rss_mib: list[float] = field(default_factory=list)
    """Of supervisor and zygote together, now and then."""


@dataclass
class Tenant:
    """One session and what it must print."""

    session: ForkedSession
    canary: str

    async def settle(self) -> None:
        await self.session.run(f"canary = {self.canary!r}")


async def soak(*, seconds: float, sessions: int, seed: int) -> dict[str, Any]:
    """Run the mix; what was seen, as plain data."""
    tally, draw = Tally(), random.Random(seed)
    async with python.open(python.Settings(preload=(), pool=4), limits=LIMITS) as interpreter:
        idle = asyncio.Queue[Tenant]()
        for number in range(sessions):
            tenant = Tenant(await interpreter.session(seed=number), f"canary-{number}-{draw.randrange(10**9)}")
            await tenant.settle()
            idle.put_nowait(tenant)
        end = time.monotonic() + seconds
        await asyncio.gather(
            watch(interpreter, tally, end=end),
            *(live(interpreter, idle, tally, random.Random(draw.random()), end=end) for _ in range(AT_ONCE)),
        )
    return {**vars(tally), "statuses": dict(tally.statuses), "restored": dict(tally.restored)}


async def live(
    interpreter: python.PythonInterpreter, idle: asyncio.Queue[Tenant], tally: Tally, draw: random.Random, *, end: float
) -> None:
    """One after another: a session that is idle, a hostile block, and a look at its canary."""
    while time.monotonic() < end:
        tenant = await idle.get()
        result = await tenant.session.run(draw.choice(MIX).replace("{pid}", str(os.getpid())))
        look = await tenant.session.run("print(canary)")
        tally.blocks += 2
        tally.statuses[result.status] += 1
        tally.restored[result.restored] += 1
        spent = look.detail == "MemoryError"  # what its blocks left fills its memory: it can't even print
        tally.spent += spent
        kept = result.state_kept and result.status is not Status.LOST and not spent
        judged = kept and look.status in (Status.OK, Status.ERROR)
        if look.output != f"{tenant.canary}\n" and (judged or look.status is Status.OK):
            tally.wrong.append(f"{tenant.canary}: {result.detail} {result.output!r} then {look.output!r}")
        for seen in CANARY.findall(result.output + look.output):
            if seen != tenant.canary:
                tally.wrong.append(f"{tenant.canary} saw {seen}")
        if not (kept and look.state_kept):
            tally.lost_names += 1
            await tenant.settle()
        if spent or draw.random() < 0.05:
            await tenant.session.close()
            tenant.session = await interpreter.session(seed=draw.randrange(2**32))
            await tenant.settle()
        elif draw.random() < 0.05:
            await branch(tenant, tally)
        idle.put_nowait(tenant)


async def branch(tenant: Tenant, tally: Tally) -> None:
    """Two more of the same: what one writes the other does not read."""
    try:
        branches = await tenant.session.fork(2)
    except InfrastructureError:  # a thread lives, or there is no room
        return
    for number, one in enumerate(branches):
        await one.run(f"mark = {number}")
    marks = [(await one.run("print(mark, canary)")).output for one in branches]
    if marks != [f"0 {tenant.canary}\n", f"1 {tenant.canary}\n"]:
        tally.wrong.append(f"{tenant.canary}: branches printed {marks}")
    tally.branches += 2
    for one in branches:
        await one.close()


async def watch(interpreter: python.PythonInterpreter, tally: Tally, *, end: float) -> None:
    """Memory of supervisor and zygote, every second."""
    while time.monotonic() < end:
        await asyncio.sleep(1)
        supervisor = interpreter._supervisor
        if supervisor is not None and not supervisor.dead:
            tally.rss_mib.append(round(sum(rss_mib(pid) for pid in chain(supervisor.process.pid)), 2))


def chain(pid: int) -> list[int]:
    """The supervisor, what waits for the zygote, and the zygote."""
    found = [pid]
    for _ in range(2):
        children = Path(f"/proc/{found[-1]}/task/{found[-1]}/children").read_text().split()
        found += [int(child) for child in children[:1]]
    return found


def rss_mib(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") / 2**20


if __name__ == "__main__":
    given = [float(value) for value in sys.argv[1:4]]
    json.dump(asyncio.run(soak(seconds=given[0], sessions=int(given[1]), seed=int(given[2]))), sys.stdout)
