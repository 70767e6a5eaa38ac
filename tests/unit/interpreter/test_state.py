"""Names outlive whatever a block does: in place, from a sleeping copy, from blocks run again; or the output says what is lost."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager

import pytest

from thincode.errors import InfrastructureError
from thincode.interpreter import BlockResult, Limits, Status
from thincode.interpreter._session import ForkedSession
from thincode.interpreter.backends import python

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="copies of processes are Linux's")
LIMITS = Limits(cpu_s=0.4, wall_s=5, memory_mib=256, processes=16, grace_s=0.3, deterministic=True)
HEAVY = "import time\nwork = time.process_time() + 0.2\nwhile time.process_time() < work: pass"
"""Enough for a checkpoint to follow, on fast machines too, and half of the limit."""
SETUP = "import random, itertools\nkept = [41]\ncounter = itertools.count()\nnext(counter)\nrandom.random()"
LOOK = "kept, next(counter), random.random()"
HERE = "([41], 1, 0.8474337369372327)\n"

IN_PLACE = {
    "an exception": "1 / 0",
    "a syntax error": "def f(:",
    "no memory": "'a' * 10**11",
    "recursion": "def f(): f()\nf()",
    "exit": "raise SystemExit(2)",
    "an endless loop": "while True: pass",
    "a loop that catches once": "while True:\n    try:\n        while True: pass\n    except BaseException: break",
    "an endless finally": "try:\n    while True: pass\nfinally:\n    while True: pass",
    "a backtracking expression": "import re; re.match(r'(a+)+$', 'a' * 40 + 'b')",
    "a huge power": "10**10**8",
    "a repr that loops": "class A:\n    def __repr__(self):\n        while True: pass\nA()",
    "closed streams": "import os\nfor fd in (0, 1, 2): os.close(fd)",
    "cleared modules": "import sys; sys.modules.clear()",
    "children left behind": "import os\nif os.fork() == 0:\n    while True: pass",
}
FATAL = {
    "os._exit": ("import os; os._exit(0)", "died"),
    "a segmentation fault": ("import ctypes; ctypes.string_at(0)", "died"),
    "abort": ("import os; os.abort()", "died"),
    "kills itself": ("import os; os.kill(os.getpid(), 9)", "died"),
    "kills its group": ("import os; os.killpg(0, 9)", "died"),
    # Down the C stack: calls between Python functions use none, and might meet the limit of time first.
    "a crash in the depth": (
        "import sys\nsys.setrecursionlimit(10**9)\ndeep = ()\nfor _ in range(10**6): deep = (deep,)\nhash(deep)", "died",
    ),
    "a loop in C": ("sum(range(10**12))", "time"),
    "interrupts ignored": ("import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass", "time"),
    "all signals blocked": ("import signal; signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\nwhile True: pass", "time"),
    "a forged answer": (
        "import os, struct\nframe = struct.pack('!I16sQB', 27, bytes(16), 2, 10) + b'0 '\nfor fd in range(3, 300):\n"
        "    try: os.write(fd, frame)\n    except OSError: pass", "tampered",
    ),
    "children that hold everything open": (
        "import os\nfor _ in range(4):\n    if os.fork() == 0:\n        while True: pass\nos._exit(1)", "died",
    ),
}  # fmt: skip


class Bench:
    """One bare interpreter on a loop of its own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.interpreter = python.open(python.Settings(preload=(), pool=2), limits=LIMITS)

    def use(self, work: Callable[[ForkedSession], Awaitable[list[BlockResult]]], *, seed: int = 1) -> list[BlockResult]:
        async def opened() -> list[BlockResult]:
            async with await self.interpreter.session(seed=seed) as session:
                return await work(session)

        return self.loop.run_until_complete(opened())

    def run(self, *blocks: str) -> list[BlockResult]:
        async def work(session: ForkedSession) -> list[BlockResult]:
            return [await session.run(block) for block in blocks]

        return self.use(work)


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.loop.run_until_complete(made.interpreter.close())
    made.loop.run_until_complete(made.loop.shutdown_default_executor())
    made.loop.close()


@pytest.mark.parametrize("name", IN_PLACE)
def test_state_stays_in_place(name: str, bench: Bench) -> None:
    _, block, look = bench.run(SETUP, IN_PLACE[name], LOOK)
    assert (block.state_kept, block.restored) == (True, "")
    assert "Names" not in block.output
    assert look.output == HERE


@pytest.mark.parametrize("first", [SETUP, f"{SETUP}\n{HEAVY}"], ids=["run again", "checkpoint"])
@pytest.mark.parametrize("name", FATAL)
def test_state_comes_back(name: str, first: str, bench: Bench) -> None:
    code, detail = FATAL[name]
    _, block, look, again, last = bench.run(first, code, LOOK, code, "kept, next(counter), random.random()")
    assert (block.status, block.state_kept) == (Status.LIMIT, True)
    assert block.detail == detail or not detail
    assert ("checkpoint" if "work" in first else "replay") in block.restored
    assert block.output.endswith(" Names are as they were before this block.\n")
    assert look.output == HERE
    # And a second time: whatever woke has a checkpoint of its own.
    assert again.state_kept
    assert last.output.startswith("([41], 2, ")


def test_the_same_blocks_give_the_same_bytes_through_deaths_and_time_outs(bench: Bench) -> None:
    blocks = [SETUP, "while True: pass", "import os; os._exit(3)", "1 / 0", HEAVY, "sum(range(10**12))", LOOK]
    first, second = bench.run(*blocks), bench.run(*blocks)
    assert first == second
    assert [block.output for block in first] == [block.output for block in second]
    assert first[-1].output == HERE


def test_what_can_not_be_repeated_is_named(bench: Bench) -> None:
    _, _, _, died, old, new = bench.run(
        "a = 1", "import os\nb = os.urandom(8)\nb", "c = 3", "os._exit(1)", "a", "b"
    )  # fmt: skip
    assert not died.state_kept
    assert died.output == (
        "The process died (exit status 1). What blocks 2 to 3 defined is gone; names from before are as they were.\n"
    )
    assert (old.output, new.detail) == ("1\n", "NameError")


def test_a_checkpoint_keeps_what_can_not_be_repeated(bench: Bench) -> None:
    blocks = (f"import os, threading\nonce = os.urandom(8)\nlock = threading.Lock()\n{HEAVY}\nonce", "os._exit(1)")
    before, _, after = bench.run(*blocks, "lock.locked()\nonce")
    assert before.output == after.output


def test_code_that_kills_its_checkpoint_loses_only_what_can_not_be_repeated(bench: Bench) -> None:
    kill = "import os\ntry:\n    os.kill(-1, 9)\nexcept (ProcessLookupError, PermissionError): pass"
    _, _, died, after = bench.run("kept = 1", kill, "os._exit(1)", "kept")
    assert died.state_kept
    assert after.output == "1\n"
    _, _, died, after = bench.run("kept = 1", "while True: pass", kill + "\nos._exit(1)", "kept")
    assert ("gone" in died.output) is not died.state_kept
    assert (after.output == "1\n") is died.state_kept


def test_a_thread_that_lives_on_has_no_copy_but_its_blocks_are_run_again(bench: Bench) -> None:
    thread = (
        "import threading\nstop = threading.Event()\nt = threading.Thread(target=stop.wait, daemon=True)\nt.start()"
    )
    _, died, after, _ = bench.run(
        f"kept = 1\n{thread}\n{HEAVY}", "import os; os._exit(1)", "kept, t.is_alive()", "stop.set()"
    )
    assert died.restored == "replay"
    assert after.output == "(1, True)\n"


def test_a_block_given_up_half_way_leaves_no_trace(bench: Bench) -> None:
    async def work(session: ForkedSession) -> list[BlockResult]:
        await session.run(f"kept = [1]\n{HEAVY}")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(session.run("kept.append(2)\nimport time; time.sleep(60)"), 0.2)
        return [await session.run("kept")]

    assert bench.use(work)[0].output == "[1]\n"


def test_a_block_given_up_half_way_after_one_that_can_not_be_repeated_names_the_loss(bench: Bench) -> None:
    async def work(session: ForkedSession) -> list[BlockResult]:
        await session.run("a = 1")
        await session.run("import os; b = os.urandom(8); b")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(session.run("import time; time.sleep(60)"), 0.2)
        return [await session.run("a"), await session.run("a")]

    first, second = bench.use(work)
    assert (first.state_kept, second.state_kept) == (False, True)
    assert first.output == "What block 2 defined is gone; names from before are as they were.\n1\n"
    assert second.output == "1\n"


@asynccontextmanager
async def branches(session: ForkedSession, n: int) -> AsyncIterator[list[ForkedSession]]:
    made = await session.fork(n)
    try:
        yield made
    finally:
        for branch in made:
            await branch.close()


def test_branches_die_and_come_back_each_by_itself(bench: Bench) -> None:
    async def work(session: ForkedSession) -> list[BlockResult]:
        await session.run(f"import os\nkept = [os.urandom(8)]\n{HEAVY}")
        seen = []
        async with branches(session, 3) as made:
            for number, branch in enumerate(made):
                seen.append(await branch.run(f"kept.append({number})\nkept[1:]"))
            seen.append(await made[0].run("os._exit(1)"))
            seen.append(await made[1].run("if os.fork() == 0:\n    while True: pass"))
            async with branches(made[1], 2) as twigs:
                seen += [await twig.run("kept[1:]") for twig in twigs]
            seen += [await branch.run("kept[1:]") for branch in made]
        return [*seen, await session.run("os._exit(1)"), await session.run("kept[1:]")]

    results = bench.use(work)
    shown = [result.output for result in results if result.status is Status.OK and result.output]
    assert shown == ["[0]\n", "[1]\n", "[2]\n", "[1]\n", "[1]\n", "[0]\n", "[1]\n", "[2]\n", "[]\n"]
    assert all(result.state_kept for result in results)


@pytest.mark.parametrize(
    ("before", "n", "error", "says"),
    [
        ("1", 0, ValueError, "n is 0"),
        ("1", 30, InfrastructureError, "no 30 copies"),
        ("import threading, time\nthreading.Thread(target=time.sleep, args=(30,), daemon=True).start()", 1,
         InfrastructureError, "live threads"),
    ],
)  # fmt: skip
def test_branches_that_can_not_be_made_say_why(
    before: str, n: int, error: type[Exception], says: str, bench: Bench
) -> None:
    async def work(session: ForkedSession) -> list[BlockResult]:
        await session.run(before)
        with pytest.raises(error, match=says):
            await session.fork(n)
        return [await session.run("'still here'")]

    assert bench.use(work)[0].output == "'still here'\n"
