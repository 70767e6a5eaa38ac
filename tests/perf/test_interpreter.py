"""The arithmetic of the interpreter's speed script; its figures are judged on an idle machine, not here."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

PERF = Path(__file__).parents[2] / "perf"


@pytest.fixture(autouse=True)
def _path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(PERF)


def load(name: str) -> Any:
    return importlib.import_module(name)


@pytest.mark.parametrize(
    ("values", "share", "wanted"),
    [
        ([1, 2, 3, 4], 0.5, 2),
        ([4, 3, 2, 1], 0.99, 4),
        ([5], 0.99, 5),
        (range(1, 101), 0.99, 99),
        (range(1, 201), 0.99, 198),
    ],
)
def test_a_percentile_is_a_value_that_was_measured(values: Any, share: float, wanted: float) -> None:
    assert load("interpreter").percentile(list(values), share) == wanted


def test_seconds_become_milliseconds() -> None:
    assert load("interpreter").spread([0.001, 0.002, 0.003]) == {"p50": 2, "p99": 3, "least": 1, "n": 3}


def tree() -> dict[str, Any]:
    def side(first: float, tiny: float, per_s: float) -> dict[str, Any]:
        return {"first": {"p50": first}, "tiny": {"p50": tiny, "p99": tiny}, "cycles": {"per_s": per_s, "cpu_ms": 25}}

    ours = side(50, 0.25, 40) | {
        "paired": {"session": {"p50": 10.5}, "bare": {"p50": 10}},
        "memory": {"256": {"mib": 12, "tiny": {"p50": 0.4, "p99": 11}}, "1000": {"mib": 15}},
    }
    sides = {
        "ours": ours,
        "ipykernel": side(2000, 25, 0.5),
    }
    isolation = {"ours": {"cpu_ms": 25, "tiny": {"p50": 0.25}}, "unisolated": {"cpu_ms": 20, "tiny": {"p50": 0.2}}}
    cold = {"thincode": {"p50": 1100}, "python -c": {"p50": 1000}}
    return {"sides": sides, "cold": cold, "isolation": isolation, "checkpoints": {"share": 0.08}}


def test_the_bars_worked_by_hand() -> None:
    found = {bar.name: (bar.value and round(bar.value, 3), bar.verdict) for bar in load("_bars").bars(tree())}
    assert found["tiny block, 256 live, p50"] == (0.4, "met")
    assert found["tiny block, 256 live, p99"] == (11, "MISSED")
    assert found["tiny block, beside ipykernel"] == (100, "met")
    assert found["tiny block, beside the IPython process"] == (None, "not measured")
    assert found["first result, beside ipykernel"] == (40, "met")
    assert found["session cycles, beside ipykernel"] == (80, "met")
    assert found["memory of a session, 1000 live"] == (15, "MISSED")
    assert found["isolation, CPU of a session over fork alone"] == (25, "met")
    assert found["isolation, tiny block"] == (25, "MISSED")
    assert found["checkpoints, share of executed CPU"] == (8, "met")
    assert found["warm sympy solve, beside bare Python"] == (1.05, "met")
    assert found["cold start, beside python -c"] == (1.1, "met")


def test_the_table_names_every_side_and_every_bar() -> None:
    bars, found = load("_bars"), tree()
    text = bars.table(found)
    assert all(name in text for name in found["sides"])
    assert all(bar.name in text for bar in bars.bars(found))
    assert "not measured" in bars.table({"sides": {"ours": {"failed": "exit status 1"}}})


@pytest.mark.parametrize(
    ("counted", "wanted"),
    [("1500000000\n", 1.5), ("usage_usec 2500000\nuser_usec 1\n", 2.5), ("cpu  100 0 50 900 7\ncpu0 1 1 1\n", 150)],
)
def test_cpu_seconds_are_read_from_each_kind_of_counter(counted: str, wanted: float) -> None:
    ticks = os.sysconf("SC_CLK_TCK") if counted.startswith("cpu ") else 1
    assert load("_usage").seconds(counted) == wanted / ticks


def test_groups_of_a_process_that_ended_are_removed_and_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = load("_usage")
    for name in ("thincode-perf-7-a", "thincode-perf-77-b"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(usage, "GROUPS", ((str(tmp_path), usage.GROUPS[0][1]),))
    usage.remove_groups(7)
    assert [path.name for path in tmp_path.iterdir()] == ["thincode-perf-77-b"]


@pytest.mark.parametrize("name", ["spawned", "replay"])
def test_a_peer_keeps_names_and_is_seen_to_lose_them(name: str) -> None:
    sides = load("_sides")

    async def use() -> list[str]:
        side = sides.SIDES[name]()
        await side.open()
        session = await side.session()
        blocks = ("x = 40", "print(x + 2)", "import os; os._exit(1)", "print('x' in globals())")
        outputs = [await session.run(block) for block in blocks]
        await session.close()
        return outputs

    kept = {"spawned": "False\n", "replay": "True\n"}
    assert asyncio.run(use()) == ["", "42\n", sides.DIED, kept[name]]


def test_blocks_of_one_trajectory_stay_together(tmp_path: Path) -> None:
    parts = [("text", "Let."), ("code", "x = 1"), ("execution", ""), ("code", "x")]
    rows = [{"segments": [{"role": role, "content": text} for role, text in parts]}, {"segments": []}]
    (tmp_path / "traj_mathcoder.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert load("interpreter").trajectories(tmp_path) == [["x = 1", "x"]]
