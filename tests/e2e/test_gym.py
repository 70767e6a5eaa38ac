"""The whole pipeline on reasoning-gym's problems."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from e2e.killing import run
from e2e.small import DETERMINISTIC

pytestmark = pytest.mark.train

pytest.importorskip("reasoning_gym", reason="needs reasoning-gym: pip install 'thincode[gym]'")

SMALLER = [
    *DETERMINISTIC,
    "distill.problems.count=50",
    "sft.train.max_tokens=16000",
    "rl.problems.count=16",
    "rl.problems_per_step=2",
    "rl.stages=[{steps: 1, context_tokens: 300, calls: 2}]",
    "rl.validation=null",
    "evaluate.problems.count=8",
    "evaluate.budget.context_tokens=300",
    "evaluate.base_problems=1",
]


@pytest.mark.parametrize("overrides", [SMALLER, pytest.param([], marks=pytest.mark.slow)], ids=["small", "as shipped"])
def test_the_pipeline_runs_on_problems_that_are_not_ours(overrides: list[str], tmp_path: Path) -> None:
    out = tmp_path / "out"
    ran = run("run", "tiny/gym", *overrides, "--quiet", "--out", str(out))
    assert ran.returncode == 0, ran.stderr
    funnel = json.loads((out / "distill/funnel.json").read_text(encoding="utf-8"))
    assert set(funnel["by_source"]) == {"chain_sum", "count_primes", "gcd", "lcm", "products"}
    assert funnel["kept"] == funnel["sampled"] > 0
    last = sorted((out / "evaluate").iterdir())[-1]
    card = json.loads((last / "scorecard.json").read_text(encoding="utf-8"))
    names = {one["name"] for one in card["estimates"]}
    assert {"avg@1/family=leg_counting", "avg@1/family=gcd"} <= names, names
    assert (out / "report.html").exists()
