"""Processes come and go: nothing is left, nothing answers for another, the dead are replaced."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from thincode.errors import InfrastructureError
from thincode.interpreter import BlockResult, Limits, Status
from thincode.interpreter.backends import python

LIMITS = Limits(cpu_s=5, wall_s=20, memory_mib=256, grace_s=0.2)
BARE = python.Settings(preload=(), pool=1)


def descendants(pid: int) -> set[int]:
    """All processes below `pid`."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (FileNotFoundError, ProcessLookupError):
                continue
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {pid}


def alive(pids: set[int]) -> set[int]:
    """Those that still run; a zombie does not."""
    found = set()
    for pid in pids:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
                found.add(pid)
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def comes_true(condition: Callable[[], bool], within_s: float = 10) -> bool:
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return condition()


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the supervisor puts its folder."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def test_close_leaves_no_process_no_file_and_no_descriptor(scratch: Path) -> None:
    before, mine = len(os.listdir("/proc/self/fd")), descendants(os.getpid())  # noqa: PTH208

    async def use() -> set[int]:
        async with python.open(BARE, limits=LIMITS) as interpreter:
            sessions = [await interpreter.session() for _ in range(3)]
            await sessions[0].run("import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(60)")
            started = descendants(os.getpid()) - mine
            assert len(started) >= 3 + 2 * 3
            return started

    started = asyncio.run(use())
    assert comes_true(lambda: not alive(started))
    assert not list(scratch.iterdir())
    assert len(os.listdir("/proc/self/fd")) <= before  # noqa: PTH208


def test_a_closed_session_is_gone_while_its_block_still_runs() -> None:
    async def use() -> None:
        async with python.open(python.Settings(preload=(), pool=0), limits=LIMITS) as interpreter:
            keep = await interpreter.session()
            await keep.run("1")
            before = descendants(os.getpid())
            session = await interpreter.session()
            running = asyncio.create_task(session.run("while True: pass"))
            await asyncio.sleep(0.1)
            started = descendants(os.getpid()) - before
            assert started
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            await session.close()
            assert await asyncio.to_thread(comes_true, lambda: not alive(started))
            assert (await keep.run("2")).output == "2\n"

    asyncio.run(use())


def test_a_canceled_block_never_answers_for_the_next() -> None:
    async def use() -> BlockResult:
        async with python.open(BARE, limits=LIMITS) as interpreter, await interpreter.session() as session:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(session.run("import time; time.sleep(0.3); 'late'"), 0.1)
            await asyncio.sleep(0.4)
            return await session.run("'next'")

    assert asyncio.run(use()).output == "'next'\n"


@pytest.mark.parametrize("how", [signal.SIGSTOP, signal.SIGKILL])
@pytest.mark.parametrize("checkpointed", [True, False])
def test_a_block_too_long_for_the_socket_ends_though_nobody_reads_it(how: signal.Signals, checkpointed: bool) -> None:
    async def scenario() -> tuple[BlockResult, BlockResult]:
        limits = Limits(cpu_s=5, wall_s=1, memory_mib=256, grace_s=0.2)
        async with python.PythonInterpreter(BARE, limits=limits) as interpreter, await interpreter.session() as session:
            await session.run("kept = 6 * 7")
            if checkpointed:
                await session.run("while True: pass")  # a copy always follows a block that was stopped
            assert session._process is not None
            os.kill(session._process.pid, how)
            return await asyncio.wait_for(session.run("x = '" + "9" * 4_000_000 + "'"), 10), await session.run("kept")

    ended, after = asyncio.run(scenario())
    assert ended.status is Status.LIMIT
    assert after.output == "42\n"


def test_a_block_under_way_is_lost_when_its_session_is_closed() -> None:
    async def use() -> list[BlockResult]:
        async with python.open(BARE, limits=LIMITS) as interpreter:
            sessions = [await interpreter.session() for _ in range(2)]
            running = [asyncio.create_task(session.run("while True: pass")) for session in sessions]
            await asyncio.sleep(0.1)
            await sessions[0].close()
            first = await running[0]
        return [first, await running[1]]

    assert [result.status for result in asyncio.run(use())] == [Status.LOST, Status.LOST]


def test_the_supervisor_dies_and_the_next_session_has_a_new_one(scratch: Path) -> None:
    async def use() -> None:
        async with python.open(BARE, limits=LIMITS) as interpreter:
            session = await interpreter.session()
            await session.run("1")
            supervisor = interpreter._supervisor
            assert supervisor is not None
            below = descendants(supervisor.process.pid)
            pending = asyncio.create_task(session.run("import time; time.sleep(60)"))
            await asyncio.sleep(0.1)
            supervisor.process.kill()
            lost = await pending
            assert (lost.status, lost.state_kept) == (Status.LOST, False)
            assert await asyncio.to_thread(comes_true, lambda: not alive(below))
            again = await session.run("2")
            assert (again.status, again.output) == (Status.OK, "2\n")
            async with await interpreter.session() as fresh:
                assert (await fresh.run("3")).output == "3\n"

    asyncio.run(use())
    assert not list(scratch.iterdir())


def test_the_client_dies_and_everything_goes_with_it(scratch: Path) -> None:
    program = (
        "import asyncio, os\nfrom thincode.interpreter import Limits\nfrom thincode.interpreter.backends import python\n"
        "async def main():\n    interpreter = python.open(python.Settings(preload=(), pool=1), limits=Limits())\n"
        "    session = await interpreter.session()\n    task = asyncio.create_task(session.run('while True: pass'))\n"
        "    await asyncio.sleep(0.2)\n    print('running', flush=True)\n    await task\nasyncio.run(main())\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": "src"}
    ) as client:
        assert client.stdout is not None
        assert client.stdout.readline() == b"running\n"
        below = descendants(client.pid)
        assert len(below) >= 5
        client.kill()
    assert comes_true(lambda: not alive(below))
    assert comes_true(lambda: not list(scratch.iterdir()))


def test_a_supervisor_that_can_not_start_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(InfrastructureError, match="supervisor can't be started"):
        python.open(BARE, limits=LIMITS)


def test_a_closed_interpreter_says_so() -> None:
    async def use() -> None:
        interpreter = python.open(BARE, limits=LIMITS)
        await interpreter.close()
        with pytest.raises(InfrastructureError, match="closed"):
            await interpreter.session()

    asyncio.run(use())


def test_made_in_one_thread_and_used_on_the_loop_of_another() -> None:
    interpreter = python.open(BARE, limits=LIMITS)
    outputs: list[str] = []

    async def use() -> None:
        async with interpreter, await interpreter.session() as session:
            outputs.append((await session.run("6 * 7")).output)

    thread = threading.Thread(target=lambda: asyncio.run(use()))
    thread.start()
    thread.join()
    assert outputs == ["42\n"]


def test_many_sessions_at_once_keep_apart() -> None:
    count = 256

    async def use() -> list[str]:
        async with python.open(BARE, limits=LIMITS) as interpreter:
            sessions = await asyncio.gather(*(interpreter.session(seed=n) for n in range(count)))
            await asyncio.gather(*(session.run(f"mine = {n}") for n, session in enumerate(sessions)))
            return [result.output for result in await asyncio.gather(*(session.run("mine") for session in sessions))]

    assert asyncio.run(use()) == [f"{n}\n" for n in range(count)]


def test_preloaded_modules_are_there_and_the_zygote_reports_them() -> None:
    async def use() -> None:
        settings = python.Settings(preload=("numpy", "no_such_module"), first_at_once=False)
        async with python.open(settings, limits=LIMITS) as interpreter, await interpreter.session(seed=3) as session:
            assert (await session.run("import sys; 'numpy' in sys.modules")).output == "True\n"
            first = (await session.run("import numpy\nnumpy.random.rand()")).output
            assert interpreter.isolation["preload"]["numpy"] == "on"
            assert "ModuleNotFoundError" in interpreter.isolation["preload"]["no_such_module"]
        async with python.open(settings, limits=LIMITS) as interpreter, await interpreter.session(seed=3) as session:
            assert (await session.run("import numpy\nnumpy.random.rand()")).output == first

    asyncio.run(use())


def test_an_interrupt_of_the_terminal_reaches_no_session() -> None:
    async def use() -> BlockResult:
        async with python.open(BARE, limits=LIMITS) as interpreter, await interpreter.session() as session:
            for pid in descendants(os.getpid()):
                if "_supervisor" in Path(f"/proc/{pid}/cmdline").read_text() and Path(f"/proc/{pid}/stat").exists():
                    os.kill(pid, signal.SIGINT)
            return await session.run("5")

    assert asyncio.run(use()).output == "5\n"


def test_deterministic_limits_leave_no_trace_of_timing() -> None:
    limits = Limits(cpu_s=0.2, wall_s=0.5, grace_s=0.2, deterministic=True)

    async def use() -> list[BlockResult]:
        async with python.open(BARE, limits=limits) as interpreter, await interpreter.session() as session:
            slow = await session.run("import time; time.sleep(0.6); 'slept past wall_s'")
            return [slow, *[await session.run("n = 0\nwhile True:\n    n += 1\n    print(n)") for _ in range(2)]]

    slow, first, second = asyncio.run(use())
    assert (slow.status, slow.output) == (Status.OK, "'slept past wall_s'\n")
    assert first == second
    assert (first.status, first.output) == (Status.LIMIT, "Stopped: the block used up its 0.2 s of CPU time.\n")


def test_what_no_one_imported_before_can_still_be_imported() -> None:
    """Python may stand in a folder that the session's user could not enter on the machine itself."""

    async def use() -> BlockResult:
        async with python.open(BARE, limits=LIMITS) as interpreter, await interpreter.session() as session:
            return await session.run("import statistics, xml.dom.minidom, sqlite3, sympy\nsympy.Rational(1, 3)")

    result = asyncio.run(use())
    assert (result.status, result.output) == (Status.OK, "1/3\n")


def test_the_first_session_waits_for_the_first_module_only_and_the_others_find_all() -> None:
    async def use() -> list[str]:
        settings = python.Settings(preload=("fractions", "sympy"), pool=0)
        async with python.open(settings, limits=LIMITS) as interpreter:
            look = "import sys; 'fractions' in sys.modules, 'sympy' in sys.modules"
            sessions = [await interpreter.session() for _ in range(2)]
            assert interpreter.isolation["preload"] == {"fractions": "on", "sympy": "on"}
            return [(await session.run(look)).output for session in sessions]

    assert asyncio.run(use()) == ["(True, False)\n", "(True, True)\n"]


def test_a_warning_of_what_an_earlier_block_left_names_no_file_of_ours() -> None:
    """A coroutine nobody awaited is found when the collector runs, by then in the frames of the worker itself."""
    left = "import gc\ngc.disable()\nasync def f(): pass\nring = [f()]\nring.append(ring)"
    drop = "import threading\ndel ring\ngc.set_threshold(1)\ngc.enable()"

    async def use() -> list[str]:
        async with python.open(BARE, limits=LIMITS) as interpreter, await interpreter.session() as session:
            return [(await session.run(block)).output for block in (left, drop, "1", "2")]

    assert not [output for output in asyncio.run(use()) if "/" in output]
