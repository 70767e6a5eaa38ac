"""A sweep killed in the middle of a run, and again in the next, ends as an uninterrupted one does."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from random import Random

import pytest

from e2e import folders
from e2e.killing import Moment, run, stop

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")

RECIPE = """
seed: 1
schedule: deterministic
live: 4
format: {kind: thinc, instruction: ""}
interpreter: {backend: {kind: python, preload: []}}
evaluate:
  problems: {kind: drills, families: [gcd, primes], split: heldout, count: 40, seed: 1}
  engine: scripted
  samples: 1
  groups: []
sweep:
  seeds: [1]
  arms:
    whole: {}
    cut: {set: ["interpreter.limits.output_chars=2", "evaluate.budget.calls=1"]}
"""


def test_a_sweep_killed_twice_ends_as_if_nothing_had_happened(tmp_path: Path) -> None:
    recipe = tmp_path / "sweep.yaml"
    recipe.write_text(RECIPE)
    words = ["sweep", str(recipe), "--quiet"]
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert run(*words, "--out", str(whole)).returncode == 0
    for number, arm in enumerate(("whole", "cut")):
        ended = stop(
            [*words, "--out", str(killed), *(["--resume"] if number else [])],
            out=killed,
            moment=Moment(f"{arm}/seed-1/trajectories.jsonl", at_least=2000, within_s=0.05),
            random=Random(number),
            with_signal=signal.SIGKILL,
            log=tmp_path / "killed.log",
        )
        assert ended.hit
        assert not ended.left_over
        assert not (killed / arm / "seed-1" / "done.json").exists()
        assert (killed / "table.md").exists() == (arm == "cut"), "what is finished is in a table, whatever comes after"
    last = run(*words, "--out", str(killed), "--resume")
    assert last.returncode == 0, last.stderr
    assert (killed / "table.md").read_bytes() == (whole / "table.md").read_bytes()
    assert (killed / "sweep.json").read_bytes() == (whole / "sweep.json").read_bytes()
    assert folders.repeated(killed) == []
    assert folders.differences(folders.contents(whole), folders.contents(killed)) == []
