"""kill -9 and Ctrl-C at random moments, then --resume: the run ends as if nothing had happened."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from statistics import mean
from time import monotonic

import pytest

from e2e import folders
from e2e.killing import Moment, run, stop
from e2e.small import DETERMINISTIC, SMALL

pytestmark = [pytest.mark.train, pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")]

KILL, CTRL_C = signal.SIGKILL, signal.SIGINT

SHORT = [
    (KILL, Moment("distill/trajectories.jsonl", at_least=8_000, within_s=0.1)),
    (CTRL_C, Moment("sft/checkpoint/step-*", within_s=0.5)),
    (KILL, Moment("rl/checkpoint/step-*", within_s=0.7)),
]

WHOLE = ["tiny/micro", *DETERMINISTIC, "live=16"]
LONG = [
    (KILL, Moment("distill/trajectories.jsonl", at_least=40_000)),
    (KILL, Moment("distill/done.json", within_s=2.0)),
    (KILL, Moment("sft/checkpoint/step-000020", within_s=1.5)),
    (KILL, Moment("sft/checkpoint/step-000040", within_s=0.5)),
    (KILL, Moment("sft/checkpoint/step-000062", within_s=0.1)),
    (CTRL_C, Moment("evaluate/1-sft", within_s=0.5)),
    (KILL, Moment("evaluate/1-sft/trajectories.jsonl", at_least=5_000, within_s=1.0)),
    (KILL, Moment("rl/trajectories.jsonl", at_least=40_000, within_s=2.0)),
    (KILL, Moment("rl/checkpoint/step-000002", within_s=0.1)),
    (CTRL_C, Moment("rl/checkpoint/step-000003", within_s=1.0)),
    (KILL, Moment("rl/checkpoint/step-000004", within_s=1.5)),
    (KILL, Moment("rl/model-rl-3", within_s=1.0)),
    (KILL, Moment("evaluate/4-rl-3/swapped/trajectories.jsonl", within_s=1.0)),
    (KILL, Moment("comparison.json", within_s=0.2)),
]
"""Every step of the pipeline, in its middle and at its ends; the random while behind each moves them. Only paths that stay
for a while are waited for: one that comes and goes between two looks would let the run go on to its end."""

ANYWHERE = 10
"""Kills of the chain that looks at nothing but the clock."""


@dataclass(frozen=True)
class NewCheckpoint(Moment):
    """As soon as there is a checkpoint that the run did not start with, and a random while later."""

    glob: str = "checkpoint/step-*"
    at_start: list[set[str]] = field(default_factory=list)

    def has_come(self, out: Path) -> bool:
        now = {path.name for path in out.glob(self.glob)}
        self.at_start.extend([now] * (not self.at_start))
        return bool(now - self.at_start[0])


def chain(
    words: Sequence[str], moments: Sequence[tuple[int, Moment]], *, out: Path, seed: int, verb: str = "run"
) -> int:
    """Stopped again and again, each time in the run that was resumed from the stop before; then to the end.

    Returns:
        How many stops came before the run was over.
    """
    random = Random(seed)
    hits = 0
    for number, (sign, moment) in enumerate(moments):
        resume = ["--resume"] if number else []
        ended = stop(
            [verb, *words, "--quiet", "--out", str(out), *resume],
            out=out,
            moment=moment,
            random=random,
            with_signal=sign,
            log=out.with_suffix(".log"),
        )
        place = f"stop {number} ({sign!r}, {moment})"
        assert not ended.left_over, f"{place} left processes"
        if not ended.hit or ((out / "done.json").exists() and number + 1 < len(moments)):
            continue  # it was over, or all but over: nothing was tried
        hits += 1
        if sign == CTRL_C:
            said = f"thincode {verb}: stopped; go on with the same command, --out {out} and --resume"
            assert (ended.code, ended.stderr.strip()) == (130, said), place
        else:
            assert (ended.code, ended.stderr) == (-KILL, ""), place
    last = run(verb, *words, "--quiet", "--out", str(out), "--resume")
    assert last.returncode == 0, last.stderr
    return hits


def assert_as_if_nothing_had_happened(whole: Path, stopped: Path) -> None:
    assert folders.repeated(stopped) == []
    assert folders.litter(stopped) == []
    assert folders.differences(folders.contents(whole), folders.contents(stopped)) == []


def test_a_run_stopped_in_distillation_sft_and_rl_ends_as_if_nothing_had_happened(
    small_run: Path, tmp_path: Path
) -> None:
    assert chain(SMALL, SHORT, out=tmp_path / "run", seed=1) == len(SHORT)
    assert_as_if_nothing_had_happened(small_run, tmp_path / "run")


def test_the_comparison_of_runs_sees_what_it_should(small_run: Path) -> None:
    found = folders.contents(small_run)
    kinds = {Path(name).suffix for name in found}
    assert {".jsonl", ".json", ".safetensors", ".z", ".html"} <= kinds
    assert folders.repeated(small_run) == []
    text = str(found["rl/trajectories.jsonl"])
    assert "generate_s" not in text
    assert "'content'" in text
    other = {**found, "rl/model/model.safetensors": "0"}
    assert [line.split(":")[0] for line in folders.differences(found, other)] == ["rl/model/model.safetensors"]


@pytest.mark.slow
def test_many_stops_in_every_step_change_nothing(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    assert run("run", *WHOLE, "--quiet", "--out", str(whole)).returncode == 0
    assert chain(WHOLE, LONG, out=tmp_path / "stopped", seed=1) == len(LONG)
    assert_as_if_nothing_had_happened(whole, tmp_path / "stopped")


@pytest.mark.slow
def test_twenty_kills_in_rl_reach_the_same_weights_bit_by_bit(small_run: Path, tmp_path: Path) -> None:
    budget = "context_tokens: 200, calls: 4"
    second, third = f"steps: 10, {budget}, filter: {{measure: last_epoch}}", f"steps: 12, {budget}, optimizer: reset"
    stages = f"[{{steps: 8, {budget}}}, {{{second}}}, {{{third}}}]"
    words = [*SMALL, f"rl.stages={stages}", "rl.policy.checkpoint_every=1", "--model", str(small_run / "sft" / "model")]
    whole = tmp_path / "whole"
    assert run("rl", *words, "--quiet", "--out", str(whole)).returncode == 0
    # Somewhere in the step behind a checkpoint: in its rollouts, its updates, its checkpoint, or between stages.
    lines = map(json.loads, (whole / "metrics.jsonl").read_text(encoding="utf-8").splitlines())
    step_s = mean(line["sample_s"] + line["train_s"] for line in lines if "train_s" in line)
    twenty = [(KILL, NewCheckpoint(within_s=step_s)) for _ in range(20)]
    assert chain(words, twenty, out=tmp_path / "killed", seed=4, verb="rl") == 20
    assert_as_if_nothing_had_happened(whole, tmp_path / "killed")


@pytest.mark.slow
def test_kills_at_any_time_change_nothing(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    began = monotonic()
    assert run("run", *WHOLE, "--quiet", "--out", str(whole)).returncode == 0
    anywhere = Moment("*", within_s=(monotonic() - began) / 4)
    assert chain(WHOLE, [(KILL, anywhere)] * ANYWHERE, out=tmp_path / "killed", seed=1) >= ANYWHERE // 2
    assert_as_if_nothing_had_happened(whole, tmp_path / "killed")


@pytest.mark.slow
def test_one_seed_gives_one_run_and_another_seed_another(tmp_path: Path) -> None:
    for name, seed in (("first", 1), ("second", 1), ("other", 2)):
        assert run("run", *WHOLE, f"seed={seed}", "--quiet", "--out", str(tmp_path / name)).returncode == 0
    first, second, other = (folders.contents(tmp_path / name) for name in ("first", "second", "other"))
    assert folders.differences(first, second) == []
    differ = {line.split(":")[0] for line in folders.differences(first, other)}
    assert {"sft/model/model.safetensors", "rl/model/model.safetensors", "rl/trajectories.jsonl"} <= differ
