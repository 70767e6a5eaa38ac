"""What every interpreter backend promises, whatever runs the blocks."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from serving import Server
from thincode.errors import InfrastructureError, MissingExtraError
from thincode.interpreter import BlockResult, Interpreter, Limits, Status, language_of
from thincode.settings import kind, kinds

ROOM = "thincode.interpreter.backends"
LIMITS = Limits(cpu_s=0.5, wall_s=5, memory_mib=256, output_chars=200, grace_s=0.2)
# The quickest settings a backend has.
LIGHT: dict[str, dict[str, Any]] = {"python": {"preload": [], "pool": 1}}
SLOW = {"jupyter"}
"""Seconds a session: whole in `make slow`, sampled in the unit tests."""
OF_PYTHON = [name for name in kinds(ROOM) if language_of(kind(ROOM, name)) == "python"]
"""The same is asked of PARI/GP in its own words: `tests/unit/interpreter/test_gp.py`."""


class Bench:
    """One interpreter on a loop of its own."""

    def __init__(self, name: str, **settings: Any) -> None:
        self.loop = asyncio.new_event_loop()
        self.plug = kind(ROOM, name, **LIGHT.get(name, {}), **settings)
        self.interpreter: Interpreter = self.plug.module.open(self.plug.settings, limits=LIMITS)

    def run(self, *blocks: str, seed: int = 0) -> list[BlockResult]:
        async def all_blocks() -> list[BlockResult]:
            async with await self.interpreter.session(seed=seed) as session:
                return [await session.run(block) for block in blocks]

        return self.loop.run_until_complete(all_blocks())

    def close(self) -> None:
        self.loop.run_until_complete(self.interpreter.close())
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in OF_PYTHON],
)
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    with ExitStack() as stack:
        settings = {}
        if request.param == "remote":
            pytest.importorskip("aiohttp", reason="needs the extra: pip install 'thincode[remote]'")
            settings["url"] = stack.enter_context(Server()).url
        try:
            made = Bench(request.param, **settings)
        except MissingExtraError as error:
            pytest.skip(str(error))
        yield made
        made.close()


def test_names_persist_from_block_to_block(bench: Bench) -> None:
    first, second, third = bench.run("x = 6 * 7", "def f(): return x + 1", "f()")
    assert (first.status, first.output) == (Status.OK, "")
    assert (second.status, second.output) == (Status.OK, "")
    assert (third.status, third.output, third.state_kept) == (Status.OK, "43\n", True)


def test_sessions_share_no_names(bench: Bench) -> None:
    bench.run("secret = 1")
    (result,) = bench.run("secret")
    assert (result.status, result.detail) == (Status.ERROR, "NameError")


@pytest.mark.parametrize(
    ("code", "output"),
    [
        ("1 + 1", "2\n"),
        ("None", ""),
        ("print('a'); 'b'", "a\n'b'\n"),
        ("x = 1; x", "1\n"),
        ("for i in range(2): i", ""),
        ("import sys; print('out'); print('err', file=sys.stderr); print('out')", "out\nerr\nout\n"),
    ],
)
def test_what_is_printed_and_what_a_last_expression_shows(bench: Bench, code: str, output: str) -> None:
    (result,) = bench.run(code)
    assert (result.status, result.output) == (Status.OK, output)


@pytest.mark.parametrize(
    ("code", "detail", "output"),
    [
        ("1/0", "ZeroDivisionError", "ZeroDivisionError: division by zero\n"),
        ("def f(:\n", "SyntaxError", "SyntaxError: invalid syntax\n"),
        ("nope", "NameError", "NameError: name 'nope' is not defined\n"),
        ("print('before')\nraise ValueError('why')", "ValueError", "ValueError: why\n"),
        ("input()", "EOFError", "EOFError: EOF when reading a line\n"),
    ],
)
def test_an_error_keeps_the_session_and_its_text_is_stable(bench: Bench, code: str, detail: str, output: str) -> None:
    _, first, after = bench.run("kept = 5", code, "kept")
    assert (first.status, first.detail, first.state_kept) == (Status.ERROR, detail, True)
    assert first.output.endswith(output)
    assert "/" not in first.output.replace("1/0", "")  # no path of the machine
    assert len(first.output.splitlines()) <= 12
    assert after.output == "5\n"
    assert bench.run("kept = 5", code)[1].output == first.output


@pytest.mark.parametrize("code", ["while True: pass", "import time; time.sleep(60)"])
def test_time_runs_out_and_the_names_stay(bench: Bench, code: str) -> None:
    _, stopped, after = bench.run("kept = 5", f"print('so far')\n{code}", "kept")
    assert (stopped.status, stopped.detail, stopped.state_kept) == (Status.LIMIT, "time", True)
    assert stopped.output.startswith("so far\nStopped: ")
    assert after.output == "5\n"


@pytest.mark.parametrize("code", ["sum(range(10**12))", "import os; os._exit(0)"])
def test_a_lost_process_leaves_its_names_or_says_that_they_are_gone(bench: Bench, code: str) -> None:
    _, stopped, after = bench.run("kept = 5", code, "kept")
    assert (stopped.status, stopped.detail in ("time", "died")) == (Status.LIMIT, True)
    assert ("gone" in stopped.output) is not stopped.state_kept
    assert bool(stopped.restored) is stopped.state_kept
    assert after.output == "5\n" if stopped.state_kept else after.detail == "NameError"


def test_branches_share_what_was_executed_and_nothing_later(bench: Bench) -> None:
    async def run() -> list[str]:
        async with await bench.interpreter.session(seed=3) as trunk:
            await trunk.run("import os, random\nonce = os.urandom(8)\nx = [1]")
            try:
                branches = await trunk.fork(2)
            except InfrastructureError as error:
                pytest.skip(str(error))
            here = await trunk.run("x.append(random.random()); (once, x)")
            there = [await branch.run("x.append(random.random()); (once, x)") for branch in branches]
            await trunk.close()
            later = [await branch.run("len(x)") for branch in branches]
            for branch in branches:
                await branch.close()
            return [result.output for result in (here, *there, *later)]

    here, *rest = bench.loop.run_until_complete(run())
    assert rest == [here, here, "2\n", "2\n"]


def test_output_is_cut_in_the_middle_counted_and_still_ok(bench: Bench) -> None:
    (result,) = bench.run("print('a' * 1000 + 'z' * 1000)")
    assert (result.status, result.cut_chars) == (Status.OK, 1801)
    assert result.output == f"{'a' * 100}\n[... 1801 characters cut ...]\n{'z' * 99}\n"


def test_memory_runs_out_as_an_error_of_the_block(bench: Bench) -> None:
    result, after = bench.run("x = 'a' * 10**10", "1")
    assert (result.status, result.detail) == (Status.ERROR, "MemoryError")
    assert after.output == "1\n"


def test_the_same_seed_gives_the_same_text(bench: Bench) -> None:
    blocks = ("import random\nrandom.random()", "hash('a'), list({'x', 'y', 'z'})", "import numpy\nnumpy.random.rand()")
    texts = [[result.output for result in bench.run(*blocks, seed=seed)] for seed in (1, 1, 2)]
    assert texts[0] == texts[1]
    assert texts[0][0] != texts[2][0]
    assert texts[0][2] != texts[2][2]


def test_a_block_after_close_is_lost(bench: Bench) -> None:
    async def run() -> BlockResult:
        session = await bench.interpreter.session()
        await session.close()
        return await session.run("1")

    assert bench.loop.run_until_complete(run()).status is Status.LOST
