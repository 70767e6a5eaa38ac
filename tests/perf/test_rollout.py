"""The speed script runs end to end on a minute model; its figures are judged on an idle machine, not here."""

from __future__ import annotations

import asyncio
import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from thincode.interpreter import Limits
from thincode.interpreter.backends import python

pytestmark = pytest.mark.train
PERF = Path(__file__).parents[2] / "perf"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(PERF)
    return importlib.import_module("rollout")


def test_the_chosen_block_sleeps_in_its_own_session(script: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async def use() -> list[Any]:
        async with python.open(python.Settings(preload=(), pool=0), limits=Limits()) as interpreter:
            session = await script.Sleepy(interpreter, {7: 1}).session(seed=7)
            async with session:
                codes = ("print('napped' in dir())", "print('napped' in dir())", "napped")
                return [await session.run(code) for code in codes]

    monkeypatch.setattr(script, "NAP", "napped = 1")
    assert [one.output for one in asyncio.run(use())] == ["False\n", "True\n", "1\n"]


def test_both_loops_write_the_same_and_everything_is_written_down(script: Any, tmp_path: Path) -> None:
    small = "--train-problems 40 --train-tokens 2000 --context-tokens 80 --problems 8 --live 4 --rows 4"
    fewer = "--episodes 4 --rounds 1 --slow-episodes 10 --slow-live 4 --slow-rounds 1"
    script.main([*small.split(), *fewer.split(), "--out", str(tmp_path / "found.json")])
    found = json.loads((tmp_path / "found.json").read_text())
    greedy = found["speed"]["greedy"]["rounds"][0]
    assert greedy["same_share"] >= script.SAME_AT_LEAST
    assert greedy["overlapped"]["tokens"] > 0
    assert set(found["slow"]["cost"]) == {"median", "least", "largest"}
    assert found["machine"]["cpus"] >= 1
