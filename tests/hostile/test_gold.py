"""Nothing about the gold answer is reachable from a session: not in files, descriptors, environment or its own memory."""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from typing import Any

import pytest

from thincode.engines import Context, Sampling
from thincode.engines.scripted import ScriptedEngine
from thincode.interpreter import Limits, open_interpreter
from thincode.problems import Problem
from thincode.rollout import Budget, Schedule
from thincode.rollout.crowd import Crowd, LoopThread
from thincode.rollout.episode import Ask, Setting
from thincode.runs.rollouts import Judge, Masks
from thincode.settings import kind
from thincode.trajectory import Address
from thincode.trajectory.formats import build

SEARCH = Path(__file__).with_name("search.py").read_text(encoding="utf-8")
FORMAT = build(kind("thincode.trajectory.formats", "thinc", instruction=""))


def halves(canary: str) -> str:
    """Source that knows the canary without holding it: the first half as it is, each character of the second one moved."""
    middle = len(canary) // 2
    moved = [ord(letter) ^ 1 for letter in canary[middle:]]
    return f"FIRST, MOVED = {canary[:middle].encode()!r}, {moved!r}\n"


def searched(canary: str, run_folder: Path, *, plant: str = "") -> dict[str, Any]:
    """What a block of a rollout finds whose problem has the canary as its answer, while a run folder beside it holds it too."""
    block = f"```python\n{plant}{halves(canary)}FOLDER = {str(run_folder)!r}\n{SEARCH}```\n"
    problem = Problem("p", "What is it?", canary, {})
    (run_folder / "trajectories.jsonl").write_text(json.dumps({"gold": canary}))

    def say(context: Context) -> str:
        return "done" if context.outputs else block

    backend = kind("thincode.interpreter.backends", "python", preload=[])
    limits = Limits(cpu_s=60.0, wall_s=120.0, output_chars=20_000)
    interpreter = open_interpreter(backend, limits=limits)
    with LoopThread() as loop, Judge([(kind("thincode.grading.rewards", "correct"), 1.0)], Masks()) as judge:
        crowd = Crowd(loop=loop, engine=ScriptedEngine(say), schedule=Schedule.OVERLAPPED)
        setting = Setting(interpreter, FORMAT, None, Budget(context_tokens=100_000, calls=2), Sampling())
        # The first rollout is graded before the second begins: by then everything of ours has seen the answer.
        asks = [Ask(Address(1, "rl-1", step, "p", 0), problem.question) for step in range(2)]
        found = [judge.roll(crowd, [ask], setting, {"p": problem}.__getitem__) for ask in asks]
        loop.call(interpreter.close())
    (scored,) = found[-1]
    result: dict[str, Any] = json.loads(scored.graded.trajectory.outputs[0].content)
    return result


@pytest.fixture
def canary() -> str:
    return "CANARY" + secrets.token_hex(13)


def test_a_session_finds_no_gold(canary: str, tmp_path: Path) -> None:
    found = searched(canary, tmp_path)
    assert found["looked"]["memory_bytes"] > 1_000_000
    assert found["looked"]["environment"] > 0
    assert found["looked"]["descriptors"] > 0
    assert found["looked"]["files"] > 0
    assert found["places"] == []


@pytest.mark.parametrize(
    ("plant", "place"),
    [
        ("held = 'CANARY'\n", "memory"),
        pytest.param("import os; os.environ['A'] = 'CANARY'\n", "environment", marks=pytest.mark.slow),
        pytest.param("open('left.txt', 'w').write('CANARY')\n", "file", marks=pytest.mark.slow),
        pytest.param("import os; r, w = os.pipe(); os.write(w, b'CANARY')\n", "descriptor", marks=pytest.mark.slow),
    ],
)
def test_the_search_finds_what_is_there(canary: str, tmp_path: Path, plant: str, place: str) -> None:
    found = searched(canary, tmp_path, plant=plant.replace("CANARY", canary))
    assert any(where.startswith(place) for where in found["places"]), found
