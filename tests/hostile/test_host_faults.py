"""What fails on our side (category 51): it is never taken for the block's doing, and nothing is left of it."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hostile.cases import OFF
from hostile.test_hostile import MODULES, ORDINARY, public_python
from thincode.interpreter import BlockResult, Limits, Status, doctor
from thincode.interpreter.backends import python
from thincode.interpreter.tiers import Tier

LIMITS = Limits(cpu_s=5, wall_s=20, memory_mib=256, grace_s=0.2)
BARE = python.Settings(preload=(), pool=0, tier=Tier.T1)
ORPHANS = (
    "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0: time.sleep(60)\n    os._exit(0)\n"
    "if os.fork() == 0: time.sleep(60)\ntime.sleep(60)"
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def below(pid: int) -> list[int]:
    """All processes below one, the nearest first."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, task.read_text().split()):
            found += [child, *below(child)]
    return found


def running(pids: list[int]) -> list[int]:
    def runs(pid: int) -> bool:
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
        except OSError:
            return False

    return [pid for pid in pids if runs(pid)]


def comes_true(condition: Callable[[], bool]) -> bool:
    end = time.monotonic() + 20
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


def opened(tier: Tier) -> python.PythonInterpreter:
    return python.PythonInterpreter(BARE, limits=LIMITS, off=OFF[tier])


def supervisor(interpreter: python.PythonInterpreter) -> int:
    assert interpreter._supervisor is not None
    return interpreter._supervisor.process.pid


def struck(tier: Tier, which: Callable[[list[int]], int]) -> tuple[BlockResult, BlockResult, list[int]]:
    """A session whose block runs while one of our processes is killed: that block, the next, and what was there."""

    async def run() -> tuple[BlockResult, BlockResult, list[int]]:
        async with opened(tier) as interpreter, await interpreter.session() as session:
            await session.run("kept = 5")
            pending = asyncio.create_task(session.run(ORPHANS))
            await asyncio.sleep(0.3)
            chain = [supervisor(interpreter), *below(supervisor(interpreter))]
            os.kill(which(chain), signal.SIGKILL)
            return await pending, await session.run("kept"), chain

    return asyncio.run(run())


@pytest.mark.parametrize("tier", [Tier.T3, Tier.T2])
@pytest.mark.parametrize("level", range(3))
def test_a_process_of_ours_is_killed_and_all_below_it_end(tier: Tier, level: int) -> None:
    """The supervisor, what holds the zygote's namespaces, the zygote."""
    lost, after, chain = struck(tier, lambda found: found[level])
    assert (lost.status, lost.state_kept) == (Status.LOST, False)
    assert (after.status, after.detail) == (Status.ERROR, "NameError")
    assert comes_true(lambda: not running(chain))


@pytest.mark.parametrize("tier", [Tier.T3, Tier.T2])
def test_a_worker_that_the_kernel_kills_for_memory_is_a_limit_and_keeps_its_names(tier: Tier) -> None:
    def worker(chain: list[int]) -> int:
        return next(pid for pid in chain if len(below(pid)) >= 1 and pid not in chain[:4])

    died, after, _ = struck(tier, worker)
    assert (died.status, died.detail) == (Status.LIMIT, "died")
    assert after.output == "5\n"


def test_where_sessions_have_no_file_system_of_their_own_their_folders_go_with_them() -> None:
    async def run() -> None:
        async with opened(Tier.T2) as interpreter:
            assert interpreter._supervisor is not None
            room = Path(interpreter._supervisor.scratch)
            async with await interpreter.session() as session:
                await session.run("import os\nos.makedirs('a/b')\nopen('a/b/c', 'w').close()")
                assert len(list(room.iterdir())) == 1
            assert await asyncio.to_thread(comes_true, lambda: not list(room.iterdir()))

    asyncio.run(run())


def test_no_room_for_a_session_is_ours_to_answer_for() -> None:
    async def run() -> BlockResult:
        async with opened(Tier.T2) as interpreter, await interpreter.session() as session:
            await session.run("kept = 5")
            assert interpreter._supervisor is not None
            shutil.rmtree(interpreter._supervisor.scratch)
            session._forget()
            return await session.run("kept")

    result = asyncio.run(run())
    assert (result.status, result.state_kept) == (Status.LOST, False)


@pytest.fixture
def closed_python(tmp_path: Path) -> str:
    """An environment in a folder that its owner alone may enter."""
    tmp_path.chmod(0o700)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "env")], check=True)
    return str(tmp_path / "env/bin/python")


def tier_of(python_: str, code: str) -> str:
    environment = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run([python_, "-c", code], env=environment, capture_output=True, text=True)
    return done.stdout + done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="another user's folder is closed to us anyway")
def test_a_python_in_a_closed_folder_works_in_t3_and_is_refused_in_t2_with_the_fix(closed_python: str) -> None:
    look = "from thincode.interpreter import doctor; print(doctor.probe()['tier'])"
    assert tier_of(closed_python, look).startswith("T3")
    script = (
        "import asyncio\nfrom hostile.cases import OFF\nfrom thincode.interpreter import Limits\n"
        "from thincode.interpreter.backends import python\n"
        "i = python.PythonInterpreter(python.Settings(preload=()), limits=Limits(), off=OFF['T2'])\n"
        "asyncio.run(i.session())"
    )
    assert "IsolationError" in tier_of(closed_python, script)
    assert "chmod o+x '" in tier_of(closed_python, script)


def test_a_kernel_without_namespaces_gives_t2() -> None:
    """As a plain container does: the machine itself refuses, no layer is turned off by us."""
    as_root = os.geteuid() == 0
    python_ = public_python() if as_root else sys.executable
    if python_ is None:
        pytest.skip("no Python that an ordinary user can start")
    inner = (
        f"echo 1 > /proc/sys/user/max_user_namespaces && exec unshare -U --map-user=1000 --map-group=1000 '{python_}'"
    )
    look = "from thincode.interpreter import doctor; found = doctor.probe(); print(found['tier'], found['open'])"
    ordinary = ORDINARY if as_root else ()
    if subprocess.run([*ordinary, "unshare", "-Ur", "true"], capture_output=True).returncode != 0:
        pytest.skip("can't make the namespace in which namespaces are forbidden")
    done = subprocess.run(
        [*ordinary, "unshare", "-Ur", "sh", "-c", f'{inner} "$@"', "sh", "-c", look],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": MODULES}, capture_output=True, text=True,
    )  # fmt: skip
    # What T3 alone promises is open there.
    assert done.stdout.strip() == f"T2 {list(doctor.ATTEMPTS[Tier.T3])}", done.stdout + done.stderr
