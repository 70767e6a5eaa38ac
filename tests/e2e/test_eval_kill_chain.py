"""An evaluation killed again and again, each time in the run resumed from the kill before, ends with the same scorecard."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from random import Random

import pytest

from e2e import folders
from e2e.killing import Moment, run, stop

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")

WORDS = [
    *("eval", "tiny/benchmarks", "evaluate.engine=scripted", "schedule=deterministic", "live=4", "--quiet"),
    *("evaluate.groups=[family]", "evaluate.greedy=true", "evaluate.swap_outputs=true"),
]


def sized(count: int) -> list[str]:
    problems = (
        f"evaluate.problems={{kind: drills, families: [gcd, lcm, primes], split: heldout, count: {count}, seed: 4}}"
    )
    return [*WORDS, problems, "evaluate.samples=2"]


@pytest.mark.parametrize(("kills", "count"), [(2, 12), pytest.param(10, 90, marks=pytest.mark.slow)])
def test_an_evaluation_killed_in_a_chain_ends_as_if_nothing_had_happened(
    kills: int, count: int, tmp_path: Path
) -> None:
    whole, killed, words = tmp_path / "whole", tmp_path / "killed", sized(count)
    assert run(*words, "--out", str(whole)).returncode == 0
    size, random, hits = (whole / "trajectories.jsonl").stat().st_size, Random(1), 0
    for number in range(kills):
        # Each kill a little later in the main arm; the last one in the arm with swapped outputs.
        glob = "trajectories.jsonl" if number + 1 < kills else "swapped/trajectories.jsonl"
        at_least = size * (number + 1) // (kills + 1) if number + 1 < kills else 1
        ended = stop(
            [*words, "--out", str(killed), *(["--resume"] if number else [])],
            out=killed,
            moment=Moment(glob, at_least=at_least, within_s=0.05),
            random=random,
            with_signal=signal.SIGKILL,
            log=tmp_path / "killed.log",
        )
        assert not ended.left_over
        hits += ended.hit
    assert hits == kills
    last = run(*words, "--out", str(killed), "--resume")
    assert last.returncode == 0, last.stderr
    assert (killed / "scorecard.json").read_bytes() == (whole / "scorecard.json").read_bytes()
    assert folders.repeated(killed) == []
    assert folders.differences(folders.contents(whole), folders.contents(killed)) == []
