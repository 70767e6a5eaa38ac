"""RL under several processes, as torchrun or `accelerate launch` start them: one makes the rollouts, all make the updates."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from e2e.small import SMALL
from thincode.cli import main

pytestmark = pytest.mark.train
STAGES = "rl.stages=[{steps: 2, context_tokens: 160, calls: 2}]"


def words(small_run: Path, out: Path) -> list[str]:
    start = str(small_run / "sft/model")
    return ["rl", *SMALL, STAGES, "rl.validation=null", "--quiet", "--model", start, "--out", str(out)]


def launch(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2", "-m", "thincode"]
    return subprocess.run(
        [*command, *arguments], env=environment, capture_output=True, text=True, timeout=300, check=False
    )


def steps(out: Path) -> list[dict[str, Any]]:
    lines = (out / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [one for one in map(json.loads, lines) if "train_s" in one]


@pytest.mark.slow
def test_two_processes_make_the_updates_of_one(small_run: Path, tmp_path: Path) -> None:
    assert main(words(small_run, tmp_path / "one")) == 0
    done = launch(*words(small_run, tmp_path / "two"))
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count("model:") == 1  # only the first process speaks
    last = max((tmp_path / "two/checkpoint").glob("step-*"))
    assert sorted(path.name for path in last.glob("rng_state*")) == ["rng_state_0.pth", "rng_state_1.pth"]
    one, two = steps(tmp_path / "one"), steps(tmp_path / "two")
    assert len(one) == len(two) == 2
    for figure in ("loss", "grad_norm", "tokens"):
        assert two[0][figure] == pytest.approx(one[0][figure], rel=1e-4, abs=1e-6), figure
    assert one[0]["grad_norm"] > 0

    again = launch(*words(small_run, tmp_path / "two"), "--resume")
    assert again.returncode == 0, again.stderr[-3000:]  # nothing is left to do, and nobody waits for it


@pytest.mark.parametrize(
    ("variable", "name"), [("ACCELERATE_USE_FSDP", "FSDP"), ("ACCELERATE_USE_DEEPSPEED", "DeepSpeed")]
)
def test_weights_in_pieces_are_refused_with_the_way_out(
    variable: str,
    name: str,
    small_run: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv(variable, "true")
    assert main(words(small_run, tmp_path / "out")) == 2
    said = capsys.readouterr().err
    assert f"rl was launched with {name}" in said
    assert "distributed_type: MULTI_GPU" in said
