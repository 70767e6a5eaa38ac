"""kill -9 at random moments, then --resume: the run ends as if nothing had happened."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest
from e2e import folders
from e2e.killing import Moment, kill, run, stop

pytestmark = [pytest.mark.train, pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")]

DETERMINISTIC = ["schedule=deterministic", "threads=1", "rl.keep_ids=true"]

WHOLE = ["run", "tiny/micro", *DETERMINISTIC, "live=16", "--quiet"]
MOMENTS = [
    Moment("distill/trajectories.jsonl", at_least=40_000),
    Moment("distill/done.json", within_s=2.0),
    Moment("sft/checkpoint/.writing/checkpoint-*", within_s=0.05),
    Moment("sft/metrics.jsonl", at_least=300, within_s=3.0),
    Moment("sft/.model.*.tmp", within_s=0.02),
    Moment("evaluate/1-sft/trajectories.jsonl", at_least=5_000, within_s=1.0),
    Moment("rl/trajectories.jsonl", at_least=40_000, within_s=2.0),
    Moment("rl/.model-rl-1.*.tmp", within_s=0.02),
    Moment("rl/checkpoint/step-000004", within_s=1.5),
    Moment("rl/model-rl-3", within_s=1.0),
    Moment("evaluate/3-rl-2/swapped/trajectories.jsonl", within_s=1.0),
    Moment("comparison.json", within_s=0.3),
]
"""Ten at least; each step of the pipeline, and between the steps."""


def chain(words: Sequence[str], moments: Sequence[Moment], *, out: Path, seed: int) -> None:
    """One kill after another, each in the run that was resumed from the one before; then to the end."""
    random = Random(seed)
    log = out.with_suffix(".log")
    for number, moment in enumerate(moments):
        resume = ["--resume"] if number else []
        ended = kill([*words, "--out", str(out), *resume], out=out, moment=moment, random=random, log=log)
        assert ended.hit, f"over before {moment}: {ended.code} {ended.stderr}"
        assert not ended.left_over, f"left after the kill at {moment}"
    last = run(*words, "--out", str(out), "--resume")
    assert last.returncode == 0, last.stderr


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1])
def test_twelve_kills_change_nothing(tmp_path: Path, seed: int) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert run(*WHOLE, "--out", str(whole)).returncode == 0
    chain(WHOLE, MOMENTS, out=killed, seed=seed)
    assert folders.repeated(killed) == []
    assert folders.litter(killed) == []
    assert folders.differences(folders.contents(whole), folders.contents(killed)) == []
