"""Evaluations through the real command, with a replay of gold answers: suites, more samples, arms, lost samples."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from thincode.cli import main
from thincode.engines import Context, Finish, Sampling, Sink
from thincode.engines.scripted import ScriptedEngine
from thincode.errors import GenerationLostError
from thincode.grading import records
from thincode.runlog import Progress, read_log
from thincode.runs import evaluate
from thincode.runs._arms import Arm, Sampler, parts_of
from thincode.runs.recipe import Recipe
from thincode.runs.speakers import Speaker
from thincode.runs.workshop import Workshop
from thincode.settings import load
from thincode.trajectory.store import read

RECIPE = [
    *("tiny/benchmarks", "evaluate.engine=scripted", "schedule=deterministic", "live=4", "evaluate.samples=2"),
    "evaluate.problems={kind: drills, families: [gcd, lcm], split: heldout, count: 6, seed: 4}",
]


def run(out: Path, *words: str) -> dict[str, Any]:
    """The scorecard's estimates by name, undefined ones too."""
    assert main(["eval", *RECIPE, *words, "--quiet", "--out", str(out)]) == 0
    card = json.loads((out / "scorecard.json").read_text(encoding="utf-8"))
    return {one["name"]: one for one in card["estimates"]}


def keys(out: Path) -> Counter[str]:
    """How many samples each problem has."""
    return Counter(record["address"]["problem"] for record in read_log(out / "trajectories.jsonl"))


def contest(path: Path, count: int) -> None:
    rows = [{"problem": f"What is {n}+{n} in {path.stem}?", "answer": str(2 * n)} for n in range(count)]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")


def test_a_suite_is_sampled_by_each_benchmarks_protocol_and_averaged(tmp_path: Path) -> None:
    for name, count in (
        *(("math500", 500), ("amc23", 40), ("aime2024", 30), ("aime2025", 30)),
        ("olymmath_en_easy", 100),
    ):
        contest(tmp_path / f"{name}.jsonl", count)
    suite = f"evaluate.suite={{kind: cir, data: {json.dumps(str(tmp_path))}, samples: 3, limit: 2}}"
    found = run(tmp_path / "out", suite)
    assert (found["average"]["value"], found["average"]["n"]) == (1.0, 5)
    assert found["avg@1/benchmark=math500"]["n"] == 2
    assert found["avg@3/benchmark=aime25"]["value"] == found["pass@2/benchmark=olymmath_easy"]["value"] == 1.0
    assert sorted(keys(tmp_path / "out").values()) == [1] * 2 + [3] * 8
    assert found["calls"]["n"] == 26


def test_a_benchmark_stands_in_for_problems(tmp_path: Path) -> None:
    contest(tmp_path / "amc23.jsonl", 40)
    path = json.dumps(str(tmp_path / "amc23.jsonl"))
    found = run(
        tmp_path / "out", f"evaluate.benchmark={{kind: amc, path: {path}, limit: 3}}", "evaluate.groups=[benchmark]"
    )
    assert found["avg@2/benchmark=amc23"]["n"] == 3


def test_samples_are_added_without_doing_the_first_again(tmp_path: Path) -> None:
    grown, whole = tmp_path / "grown", tmp_path / "whole"
    run(grown)
    first = (grown / "trajectories.jsonl").read_bytes()
    assert run(grown, "--add-samples", "2")["avg@4"]["value"] == 1.0
    assert (grown / "trajectories.jsonl").read_bytes().startswith(first)
    assert set(keys(grown).values()) == {4}
    run(whole, "evaluate.samples=4")
    addresses = [
        sorted(str(line["address"]) for line in read_log(out / "trajectories.jsonl")) for out in (grown, whole)
    ]
    assert addresses[0] == addresses[1]
    assert (grown / "scorecard.json").read_bytes() == (whole / "scorecard.json").read_bytes()
    # Said again, it changes nothing: the number is counted from the recipe.
    before = (grown / "trajectories.jsonl").read_bytes()
    run(grown, "--add-samples", "2")
    assert (grown / "trajectories.jsonl").read_bytes() == before


def test_samples_are_added_to_the_same_run_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert main(["eval", *RECIPE, "--add-samples", "2"]) == 2
    assert "--out DIR" in capsys.readouterr().err
    assert main(["eval", *RECIPE, "--add-samples", "2", "--out", str(out)]) == 2
    assert "no run there" in capsys.readouterr().err
    run(out)
    assert main(["eval", *RECIPE, "seed=9", "--add-samples", "2", "--out", str(out)]) == 2
    assert "differs in seed" in capsys.readouterr().err
    assert (out / "done.json").exists()


def test_further_arms_stand_beside_the_main_one(tmp_path: Path) -> None:
    found = run(
        *(tmp_path / "out", "evaluate.greedy=true", "evaluate.temperatures=[0.2, 1.0]", "evaluate.swap_outputs=true"),
        "evaluate.injected_failures=2",
    )
    assert found["greedy/avg@1"]["n"] == 6
    assert found["T=0.2/avg@2"]["value"] == found["T=1.0/pass@2"]["value"] == 1.0
    assert found["swapped/avg@2"]["value"] == 1.0  # a replay of gold answers reads nothing off its outputs
    # Every first block was made to fail, and the replay answers all the same; it has no second block.
    assert (found["injected/recovery@1"]["value"], found["injected/recovery@1"]["n"]) == (1.0, 12)
    assert (found["injected/recovery@2"]["value"], found["injected/recovery@2"]["n"]) == (None, 0)
    for arm in ("greedy", "T=0.2", "T=1.0", "swapped", "failing-1", "failing-2"):
        assert (tmp_path / "out" / arm / "trajectories.jsonl").exists()


def test_without_the_interpreter_no_block_runs(tmp_path: Path) -> None:
    found = run(tmp_path / "out", "evaluate.interpreter=off")
    assert found["code-use ratio"]["value"] == 0.0
    assert found["avg@2"]["value"] == 0.0  # the replay would have answered behind its block's output
    for record in read(tmp_path / "out"):
        assert record.trajectory.versions["interpreter"] == "off"
        assert [segment.kind.value for segment in record.trajectory.segments] == ["plan", "code"]


class _Flaky(ScriptedEngine):
    """Loses every generation of one problem for as long as it is told to."""

    def __init__(self, script: Any, lost: set[str]) -> None:
        super().__init__(script)
        self.lost = lost

    async def voice(self, address: Any) -> Any:
        inner = await super().voice(address)
        lost = self.lost

        class Voice:
            usage = inner.usage

            async def generate(
                self, context: Context, *, sink: Sink, sampling: Sampling, max_tokens: int, seed: int
            ) -> Finish:
                if address.problem in lost:
                    raise GenerationLostError("the server is gone")
                finish: Finish = await inner.generate(
                    context, sink=sink, sampling=sampling, max_tokens=max_tokens, seed=seed
                )
                return finish

            async def close(self) -> None:
                await inner.close()

        return Voice()


def test_lost_samples_are_not_kept_and_run_again(tmp_path: Path) -> None:
    overrides = [*RECIPE[1:], "lost_share_limit=1.0"]
    resolved = load(Recipe, RECIPE[0], overrides)
    section = resolved.value.evaluate
    assert section is not None
    with Workshop(resolved.value) as shop:
        parts = parts_of(section)
        problem = parts[0].problems[1].id
        engine = _Flaky(evaluate.gold_script(parts[0].problems, shop.format), {problem})
        sampler = Sampler(
            section,
            parts,
            name="flaky",
            speaker=Speaker(shop.crowd(engine), None, None, {}),
            shop=shop,
            progress=lambda *a, **k: Progress(*a, **k, quiet=True),
        )
        rows = sampler.sample(tmp_path, Arm())
        assert sum(row.trajectory.lost for row in rows) == 2
        assert problem not in keys(tmp_path)
        assert keys(tmp_path / "lost") == {problem: 2}
        engine.lost.clear()
        again = sampler.sample(tmp_path, Arm())
    assert [row.trajectory.lost for row in again] == [False] * 12
    assert set(keys(tmp_path).values()) == {2}
    assert not (tmp_path / "lost").exists()
    kept = [records.graded_from_record(one.trajectory, one.annotations) for one in read(tmp_path)]
    assert {row.grade.correct for row in kept} == {True}
