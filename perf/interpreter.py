"""Our interpreter beside the ways others run blocks, in one run on one machine; isolation and checkpoints are on.

    python perf/interpreter.py --out interpreter.json --data DIR     # about eight minutes; DIR holds published trajectories
    python perf/interpreter.py --quick                               # a minute, fewer of everything
    python perf/interpreter.py --only ours ipykernel                 # some of the sides

Each side is measured in a process of its own, one after the other, ours first and last. The peers come with
`pip install 'thincode[perf]'`; those that are missing are named. Run it as root, or CPU time is that of the whole machine.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib.util
import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from _bars import bars, table
from _sides import DIED, LIMIT_S, SIDES, Side
from _usage import Cpu, remove_groups, returned_mib, settled_mib

from thincode import _environment

FIRST = "from sympy import *\nx = symbols('x')\nprint(solve(x**2 - 3*x + 2, x))"
TINY = "print(1 + 1)"
LONG = "import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass"
"""Work enough for a checkpoint after it."""
COLD = {
    "thincode": "import asyncio\nfrom thincode.interpreter import open_interpreter\nasync def main():\n"
    "    async with open_interpreter() as interpreter, await interpreter.session() as session:\n"
    f"        print((await session.run({FIRST!r})).output, end='', flush=True)\n        return\nasyncio.run(main())",
    "python -c": f"{FIRST}\nimport sys; sys.stdout.flush()",
}
COUNTS = {
    "ours": {
        "first": 20,
        "tiny": 2000,
        "solve": 100,
        "cycles": 96,
        "at_once": 8,
        "live": 256,
        "memory": (32, 256, 1000),
        "copied": 32,
        "paired": 100,
    },
    "pool": {"first": 20},
    "ipykernel": {"first": 6, "tiny": 200, "solve": 50, "cycles": 4, "memory": (32,)},
    "ipython": {"first": 10, "tiny": 1000, "solve": 100, "cycles": 30, "memory": (32,)},
    "spawned": {"first": 10, "tiny": 1000, "solve": 100, "cycles": 30, "memory": (32,)},
    "replay": {"first": 5, "tiny": 4, "solve": 4, "cycles": 20},
    "smolagents": {"first": 10, "tiny": 300, "solve": 50, "cycles": 200},
}
"""How often each thing is done. Memory counts are sessions alive; a peer that takes tens of MiB each is asked for 32."""
QUICK = {"first": 3, "tiny": 50, "solve": 10, "cycles": 8, "live": 8, "memory": (8,), "copied": 4, "paired": 10}


def ms(seconds: float) -> float:
    return 1e3 * seconds


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of all do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-int(share * 1000) * len(ordered) // 1000) - 1)]


def spread(values: Sequence[float]) -> dict[str, float]:
    """Milliseconds from seconds."""
    return {
        "p50": ms(statistics.median(values)), "p99": ms(percentile(values, 0.99)), "least": ms(min(values)), "n": len(values)
    }  # fmt: skip


async def timed(session: Any, code: str, wanted: str | None = None) -> float:
    """Seconds that a block takes; its output is checked, so that nothing fast and wrong is measured."""
    began = time.perf_counter()
    output = await session.run(code)
    took = time.perf_counter() - began
    if wanted is not None and output.strip() != wanted:
        raise RuntimeError(f"{code!r} gave {output!r}, not {wanted!r}")
    return took


# --- the figures, of any side --------------------------------------------------------------------------------------


async def first_result(side: Side, count: int) -> dict[str, float]:
    """From asking for a session to its first result with sympy."""
    found = []
    for _ in range(count):
        began = time.perf_counter()
        session = await side.session()
        await timed(session, FIRST, "[1, 2]")
        found.append(time.perf_counter() - began)
        await session.close()
        await asyncio.sleep(0.15)  # a pool fills again
    return spread(found)


async def warm_blocks(side: Side, counts: Mapping[str, Any]) -> dict[str, Any]:
    """A tiny block and a solve in a session that has worked before."""
    session = await side.session()
    await timed(session, FIRST, "[1, 2]")
    for _ in range(min(counts["tiny"], 20)):
        await timed(session, TINY, "2")
    tiny = [await timed(session, TINY, "2") for _ in range(counts["tiny"])]
    found: dict[str, Any] = {"tiny": spread(tiny)}
    if "solve" in counts:
        found["solve"] = spread([await timed(session, solve(n)) for n in range(counts["solve"])])
    await session.close()
    return found


async def solve_beside_bare(side: Side, count: int) -> dict[str, Any]:
    """The same solves in a session and in this very process, in alternating order: nobody can beat the latter."""
    names: dict[str, Any] = {}
    found: dict[str, list[float]] = {"session": [], "bare": []}
    session = await side.session()
    await timed(session, FIRST, "[1, 2]")
    with Path(os.devnull).open("w") as null, contextlib.redirect_stdout(null):
        exec(FIRST, names)
        for number in range(count):
            for name in sorted(found, reverse=bool(number % 2)):
                began = time.perf_counter()
                if name == "bare":
                    exec(compile(solve(number), "<block>", "exec"), names)
                else:
                    await session.run(solve(number))
                found[name].append(time.perf_counter() - began)
    await session.close()
    return {name: spread(values) for name, values in found.items()}


def solve(number: int) -> str:
    """A quadratic nobody has solved before in this session."""
    return f"print(solve(x**2 - {2 * number + 5}*x + {number + 3}, x))"


async def cycles(side: Side, count: int, at_once: int, cpu: Cpu) -> dict[str, float]:
    """Sessions made, used once and ended, per second; and their CPU."""

    async def one() -> None:
        session = await side.session()
        await timed(session, TINY, "2")
        await session.close()

    found: dict[str, float] = {}
    began = time.perf_counter()
    with cpu.of(found):
        for _ in range(count // at_once):
            await asyncio.gather(*(one() for _ in range(at_once)))
    done = count // at_once * at_once
    return {"per_s": done / (time.perf_counter() - began), "cpu_ms": ms(found["cpu_s"]) / done, "n": done}


async def memory(side: Side, count: int, *, live_tiny: int = 0, block: str = "") -> dict[str, float]:
    """What the system has less for each live session after a block of sympy (and one more); a tiny block among so many."""
    before = settled_mib()
    sessions = []
    for start in range(0, count, 8):
        made = await asyncio.gather(*(side.session() for _ in range(min(8, count - start))))
        await asyncio.gather(*(session.run(FIRST) for session in made))
        if block:
            await asyncio.gather(*(session.run(block) for session in made))
        sessions += made
    found: dict[str, Any] = {"mib": (before - settled_mib()) / count}
    if live_tiny:
        draw = random.Random(1)
        found["tiny"] = spread([await timed(draw.choice(sessions), TINY, "2") for _ in range(live_tiny)])
    await asyncio.gather(*(session.close() for session in sessions))
    returned_mib(before)  # what comes next is measured on a machine as it was
    return found


async def recovery(side: Side) -> dict[str, Any]:
    """Until the next block is answered: after an endless loop, beyond its limit; after the process left."""
    found: dict[str, Any] = {}
    for name, block, limit_s in (("loop", "while True: pass", LIMIT_S), ("exit", "import os; os._exit(0)", 0.0)):
        session = await side.session()
        await timed(session, "kept = 40 + 2\nprint(kept)", "42")
        began = time.perf_counter()
        await session.run(block, LIMIT_S)
        after = await session.run("print(globals().get('kept', 'gone'))")
        if after == DIED:
            after = await session.run("print('gone')")
        found[name] = {"ms": ms(time.perf_counter() - began - limit_s), "kept": after.strip() == "42"}
        await session.close()
    return found


async def measure(name: str, counts: Mapping[str, Any]) -> dict[str, Any]:
    """All figures of one side."""
    side = SIDES[name]()
    cpu = Cpu()
    await side.open()
    found: dict[str, Any] = {"cpu": cpu.how, "first": await first_result(side, counts["first"])}
    if "tiny" in counts:
        found |= await warm_blocks(side, counts)
    if "cycles" in counts:
        found["cycles"] = await cycles(side, counts["cycles"], counts.get("at_once", 1), cpu)
    if "solve" in counts:
        found["recovery"] = await recovery(side)
    if "paired" in counts:
        found["paired"] = await solve_beside_bare(side, counts["paired"])
    if "copied" in counts:
        found["copied"] = await memory(side, counts["copied"], block=LONG)
    if "memory" in counts:  # last: the kernel takes a minute to clear away a thousand sessions
        found["memory"] = {
            n: await memory(side, n, live_tiny=300 * (n == counts.get("live"))) for n in counts["memory"]
        }
    await side.close()
    return found


# --- figures of their own ------------------------------------------------------------------------------------------


def cold_start(rounds: int) -> dict[str, dict[str, float]]:
    """From starting a Python to the first result in its output, in alternating order."""
    found: dict[str, list[float]] = {name: [] for name in COLD}
    for number in range(rounds):
        for name in sorted(COLD, reverse=bool(number % 2)):
            began = time.perf_counter()
            with subprocess.Popen([sys.executable, "-c", COLD[name]], stdout=subprocess.PIPE, text=True) as started:
                assert started.stdout is not None
                if started.stdout.readline().strip() != "[1, 2]":
                    raise RuntimeError(f"{name}: no first result")
                found[name].append(time.perf_counter() - began)
    return {name: spread(values) for name, values in found.items()}


async def isolation(counts: Mapping[str, Any]) -> dict[str, Any]:
    """What the layers cost: our sides with them and without, in alternating order in one process."""
    sides, cpu = {name: SIDES[name]() for name in ("ours", "unisolated")}, Cpu()
    for side in sides.values():
        await side.open()
        await first_result(side, 2)  # its modules are there
    spent: dict[str, float] = dict.fromkeys(sides, 0.0)
    batches = counts["cycles"] // counts["at_once"]
    for number in range(batches):
        for name in sorted(sides, reverse=bool(number % 2)):
            done = await cycles(sides[name], counts["at_once"], counts["at_once"], cpu)
            await asyncio.sleep(0.1)  # what it began has ended
            spent[name] += done["cpu_ms"]
    tiny: dict[str, list[float]] = {name: [] for name in sides}
    pairs = 20  # a process stays long on the core it began on, and cores differ
    for _ in range(pairs):
        sessions = {name: await side.session() for name, side in sides.items()}
        for number in range(-10, counts["tiny"] // pairs):
            for name in sorted(sides, reverse=bool(number % 2)):
                took = await timed(sessions[name], TINY, "2")
                tiny[name] += [took] * (number >= 0)
        for session in sessions.values():
            await session.close()
    for side in sides.values():
        await side.close()
    return {name: {"cpu_ms": spent[name] / batches, "tiny": spread(tiny[name])} for name in sides}


def trajectories(folder: Path) -> list[list[str]]:
    """The code blocks of published trajectories, those of one problem together."""
    rows = [json.loads(line) for line in (folder / "traj_mathcoder.jsonl").read_text(encoding="utf-8").splitlines()]
    blocks = [[part["content"] for part in row["segments"] if part["role"] == "code"] for row in rows]
    return [one for one in blocks if one]


UNCOPIED = "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()"
"""A session with a live thread is never copied, so it has no checkpoints."""


async def checkpoints(folder: Path, most: int) -> dict[str, float]:
    """CPU of real trajectories with checkpoints and without, in alternating order; the share that checkpoints add."""
    side, cpu = SIDES["ours"](), Cpu()
    await side.open()
    found: dict[str, float] = {"with": 0.0, "without": 0.0}
    for number, blocks in enumerate(trajectories(folder)[:most]):
        for name in sorted(found, reverse=bool(number % 2)):
            session = await side.session()
            await session.run(UNCOPIED if name == "without" else "import threading")
            spent: dict[str, float] = {}
            with cpu.of(spent):
                for block in blocks:
                    await session.run(block)
            found[name] += spent["cpu_s"]
            await session.close()
    await side.close()
    return {
        **found,
        "share": found["with"] / found["without"] - 1,
        "trajectories": min(most, len(trajectories(folder))),
    }


# --- the run -------------------------------------------------------------------------------------------------------


def missing(name: str) -> list[str]:
    return [package for package in SIDES[name].needs if importlib.util.find_spec(package) is None]


def in_own_process(*words: str) -> Any:
    """Run this script for one part; what it found."""
    with subprocess.Popen([sys.executable, __file__, *words], stdout=subprocess.PIPE, text=True) as ran:
        told, _ = ran.communicate()
    remove_groups(ran.pid)
    return json.loads(told.splitlines()[-1]) if ran.returncode == 0 else {"failed": f"exit status {ran.returncode}"}


def run(words: argparse.Namespace) -> dict[str, Any]:
    """Every side, then the figures of their own."""
    about = {**_environment.environment(), "load_before": os.getloadavg()[0]}
    print(f"{about['cpus']} CPUs, load {about['load_before']:.1f}, {about['platform']}", flush=True)
    found: dict[str, Any] = {"machine": about, "sides": {}, "absent": {}}
    quick = ["--quick"] if words.quick else []
    for name in words.only or COUNTS:
        if absent := missing(name):
            found["absent"][name] = absent
            print(f"{SIDES[name].name}: absent, needs {', '.join(absent)}: pip install 'thincode[perf]'", flush=True)
            continue
        found["sides"][name] = in_own_process("--part", name, *quick)
        print(f"{SIDES[name].name}: {json.dumps(found['sides'][name])[:160]} …", flush=True)
    found["cold"] = in_own_process("--part", "cold", *quick)
    found["isolation"] = in_own_process("--part", "isolation", *quick)
    if words.data is not None:
        found["checkpoints"] = in_own_process("--part", "checkpoints", "--data", str(words.data), *quick)
    return found


def part(words: argparse.Namespace) -> Any:
    """One part, in a process of its own."""
    if words.part == "cold":
        return cold_start(2 if words.quick else 6)
    if words.part == "checkpoints":
        return asyncio.run(checkpoints(words.data, 5 if words.quick else 100))
    counts: dict[str, Any] = COUNTS["ours" if words.part == "isolation" else words.part]
    if words.quick:
        counts = {name: QUICK.get(name, value) for name, value in counts.items()}
    return asyncio.run(isolation(counts) if words.part == "isolation" else measure(words.part, counts))


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Our interpreter beside the ways others run blocks.")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write everything measured as JSON")
    parser.add_argument(
        "--data", type=Path, metavar="DIR", help="folder with traj_mathcoder.jsonl; without it no such figure"
    )
    parser.add_argument("--quick", action="store_true", help="few of everything, to see that it works")
    parser.add_argument("--only", nargs="+", choices=COUNTS, help="these sides")
    parser.add_argument("--part", help=argparse.SUPPRESS)
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> Any:
    """Measure, print, write."""
    words = arguments(argv)
    if words.part is not None:
        print(json.dumps(part(words)))
        return None
    found = run(words)
    found["bars"] = [bar.__dict__ for bar in bars(found)]
    print(table(found))
    if words.out is not None:
        words.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return found


if __name__ == "__main__":
    main()
