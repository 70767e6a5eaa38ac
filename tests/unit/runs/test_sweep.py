"""A recipe in several arms at several seeds: which runs there are, what the tables say of them, what a page shows."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from thincode.cli import main
from thincode.runlog import RunFolder
from thincode.runs.recipe import Recipe
from thincode.runs.sweep import Run, choose, runs_of
from thincode.settings import load, recipes
from thincode.trajectory import SegmentKind
from thincode.trajectory.store import read as read_records

GOLD = """
name: gold
seed: 1
schedule: deterministic
format: {kind: thinc, instruction: ""}
interpreter: {backend: {kind: python, preload: []}}
evaluate:
  problems: {kind: drills, families: [gcd], split: heldout, count: 6, seed: 1}
  engine: scripted
  samples: 1
  base_problems: 0
sweep:
  seeds: [1, 2]
  seeded: [seed, evaluate.problems.seed]
  arms:
    blocks: {}
    failing: {set: [evaluate.interpreter=off]}
"""
"""Arms that a script answers: right, and wrong because its block never runs."""


@pytest.fixture
def gold(tmp_path: Path) -> Path:
    path = tmp_path / "gold.yaml"
    path.write_text(GOLD)
    return path


def runs(recipe: str | Path, out: Path, *words: str, arms: Sequence[str] = (), seeds: Sequence[int] = ()) -> list[Run]:
    section = load(Recipe, recipe, words).value.sweep
    assert section is not None
    every = runs_of(section, out=out, load=lambda more: load(Recipe, recipe, [*words, *more]), seeds=seeds)
    return choose(section, every, arms=arms, seeds=seeds)


SWEEPS = [name for name in recipes() if load(Recipe, name).value.sweep is not None]


@pytest.mark.parametrize("recipe", SWEEPS)
def test_every_arm_of_a_sweep_that_ships_is_a_whole_recipe_and_no_two_are_alike(recipe: str, tmp_path: Path) -> None:
    found = runs(recipe, tmp_path)
    assert len({json.dumps(one.resolved.resolved, sort_keys=True) for one in found}) == len(found)
    for one in found:
        recipe_of_arm = one.resolved.value
        assert recipe_of_arm.seed == one.seed
        assert recipe_of_arm.sweep is None
        assert recipe_of_arm.evaluate is not None


def test_seeds_go_outside_arms_inside_so_that_a_first_part_compares(tmp_path: Path) -> None:
    found = runs("tiny/formats", tmp_path, arms=["thinc_rl", "cot"], seeds=[1, 2])
    assert [(one.arm, one.seed) for one in found] == [
        (arm, seed) for seed in (1, 2) for arm in ("thinc", "cot", "thinc_rl")
    ]
    start = found[2].resolved.value
    assert (start.distill, start.sft) == (None, None)
    assert start.rl is not None
    assert start.rl.model == str(found[0].folder / "sft" / "model")
    assert start.rl.problems.settings.seed == start.evaluate.problems.settings.seed == 1  # type: ignore[union-attr]


def test_seeds_of_ones_own_are_for_each_chosen_arm_and_stay_in_the_table(
    gold: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = runs("tiny/formats", tmp_path, arms=["thinc_rl", "tir_dense"], seeds=[12, 1])
    assert [(one.arm, one.seed) for one in found] == [
        (arm, seed) for seed in (1, 12) for arm in ("thinc", "tir_dense", "thinc_rl")
    ]
    assert found[-1].resolved.value.rl.problems.settings.seed == 12  # type: ignore[union-attr]
    out = ["--out", str(tmp_path / "out"), "--quiet", "--resume"]
    assert main(["sweep", str(gold), *out, "--seeds", "12", "--arms", "failing"]) == 0
    assert main(["sweep", str(gold), *out, "--seeds", "1"]) == 0
    told = capsys.readouterr().out
    assert "| blocks | 1 | 100.0 %" in told
    assert "| failing | 2 |" in told


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["sweep.arms.tir.set=[format.kind=tri]"], "sweep.arms.tir: format: unknown kind 'tri'; did you mean 'tir'"),
        (["sweep.arms.tir.start=thic"], "sweep.arms.tir.start: 'thic' is no arm above it; did you mean 'thinc'"),
        (["sweep.arms.tir.against=[cots]"], "sweep.arms.tir.against: no arm 'cots'; did you mean 'cot'"),
        (["sweep.arms.thinc_rl.seeds=[9]"], "sweep.arms.thinc_rl.seeds: 'thinc' has not all of them"),
        (["sweep.arms.x={set: [rl=null]}", "--arms", "y"], "--arms: no arm y; known: thinc"),
        (["--seeds", "1,x"], "--seeds 1,x: write whole numbers with commas"),
    ],
)
def test_a_mistake_is_named_before_anything_runs(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sweep", "tiny/formats", *words, "--plan"]) == 2
    assert message in capsys.readouterr().err


def test_a_recipe_without_arms_is_no_sweep(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", "tiny/micro", "--plan"]) == 2
    assert "has no section sweep" in capsys.readouterr().err


def test_a_sweep_ends_in_a_table_a_file_and_a_page(
    gold: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    words = ["sweep", str(gold), "--out", str(out), "--quiet"]
    assert main([*words, "--seeds", "1"]) == 0
    assert "| blocks | 1 | 100.0 %" in capsys.readouterr().out
    assert main(words) == 2
    assert "--resume" in capsys.readouterr().err
    first = (out / "blocks" / "seed-1" / "scorecard.json").stat().st_mtime_ns
    assert main([*words, "--resume"]) == 0
    table = capsys.readouterr().out
    assert (out / "blocks" / "seed-1" / "scorecard.json").stat().st_mtime_ns == first, "done runs are left alone"
    assert "| blocks | 2 | 100.0 % [75.8, 100.0] |" in table
    assert "| failing | blocks | 2 | -100.0 points" in table
    found = json.loads((out / "sweep.json").read_text())
    assert [(arm["name"], arm["seeds"]) for arm in found["arms"]] == [("blocks", [1, 2]), ("failing", [1, 2])]
    gain = found["differences"][0]
    assert gain["over problems"]["n"] == 12
    assert gain["over seeds"]["value"] == pytest.approx(gain["over problems"]["value"])
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "failing over blocks" in page
    assert "2 arms; each interval is over seeds" in page
    assert "avg@1 by arm" in page
    assert "Intervals over seeds" in page


def test_a_finished_run_with_other_settings_does_not_slip_into_the_table(
    gold: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["sweep", str(gold), "--out", str(tmp_path / "out"), "--quiet", "--resume", "--seeds", "1"]
    assert main(words) == 0
    assert main([*words, "sweep.arms.failing.set=[evaluate.budget.calls=3]"]) == 2
    told = capsys.readouterr().err
    assert f"{tmp_path}/out/failing/seed-1: the run there has another recipe" in told
    assert "evaluate.budget.calls: " in told


def test_a_run_that_another_process_is_at_is_left_to_it(
    gold: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    theirs = next(one for one in runs(gold, out.absolute()) if one.arm == "failing" and one.seed == 1)
    with RunFolder.create(theirs.folder, resolved=theirs.resolved.resolved, resume=False):
        assert main(["sweep", str(gold), "--out", str(out), "--resume"]) == 0
    told = capsys.readouterr()
    assert "another process is at it" in told.err
    assert "1 of 4 runs are not finished" in told.err
    assert "| failing | 1 |" in told.out


def test_an_arm_may_be_compared_with_several(gold: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    more = "sweep.arms.third={set: [evaluate.budget.calls=3], against: [blocks, failing]}"
    assert main(["sweep", str(gold), "--out", str(out), "--quiet", "--seeds", "1", more]) == 0
    pairs = [(one["arm"], one["against"]) for one in json.loads((out / "sweep.json").read_text())["differences"]]
    assert pairs == [("failing", "blocks"), ("third", "blocks"), ("third", "failing")]


def test_arms_that_asked_other_problems_are_not_compared(gold: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ["sweep", str(gold), "--out", str(out), "--quiet", "--seeds", "1"]
    assert main([*words, "sweep.arms.failing.set=[evaluate.problems.count=5]"]) == 0
    assert "can't be compared" in (out / "table.md").read_text()


def test_an_arm_that_starts_from_a_model_without_rl_is_evaluated_only(tmp_path: Path) -> None:
    again = "sweep.arms.again={start: thinc, set: [rl=null, interpreter.preset=cir]}"
    found = runs("tiny/formats", tmp_path, again, arms=["again"], seeds=[1])
    last = found[-1].resolved.value
    assert (last.distill, last.sft, last.rl) == (None, None, None)
    assert found[-1].start == tmp_path / "thinc" / "seed-1" / "sft" / "model"


def test_the_table_has_what_other_commands_finished_too(gold: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ["sweep", str(gold), "--out", str(out), "--quiet", "--resume", "--seeds", "1"]
    for arm in ("failing", "blocks"):
        assert main([*words, "--arms", arm]) == 0
    assert "| failing | blocks | 1 | -100.0 points" in (out / "table.md").read_text()


def test_a_format_without_code_is_taught_the_steps_in_words(tmp_path: Path) -> None:
    words = [
        "format.kind=cot",
        "distill.filters=[correct]",
        "distill.problems.count=33",
        "distill.problems.fallible=0.0",
    ]
    assert main(["distill", "tiny/micro", *words, "--quiet", "--out", str(tmp_path / "d")]) == 0
    funnel = json.loads((tmp_path / "d" / "funnel.json").read_text())
    assert (funnel["sampled"], funnel["kept"]) == (33, 33)


def test_words_between_blocks_are_taught_in_the_share_asked_for_and_may_leave_values_open(tmp_path: Path) -> None:
    words = [
        "format.kind=tir",
        "distill.problems={kind: drills, split: train, count: 44, seed: 1, thoughts: 0.5, values: false}",
    ]
    assert main(["distill", "tiny/micro", *words, "--quiet", "--out", str(tmp_path / "d")]) == 0
    said = [record.trajectory.segments for record in read_records(tmp_path / "d", ids=False)]
    assert not any(re.search(r"\d", s.text) for segments in said for s in segments if s.kind is SegmentKind.THOUGHT)
    talking = sum(any(segment.kind is SegmentKind.THOUGHT for segment in segments) for segments in said)
    assert 11 < talking < 33
    assert all(segments[0].kind is SegmentKind.PLAN for segments in said)


MICRO = [
    "distill.problems.count=110",
    "sft.train.max_tokens=6000",
    "rl.problems.count=12",
    "rl.problems_per_step=2",
    "rl.samples=2",
    "rl.stages.0.steps=1",
    "evaluate.problems.count=12",
    "evaluate.samples=1",
]
"""Every step of every arm really runs, nothing is learned."""


@pytest.mark.slow
@pytest.mark.parametrize("recipe", SWEEPS)
def test_every_arm_of_a_sweep_that_ships_runs_in_micro_form(recipe: str, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="needs torch: pip install 'thincode[train]'")
    out, words = tmp_path / "out", [*MICRO]
    section = load(Recipe, recipe).value.sweep
    assert section is not None
    for name, arm in section.arms.items():  # an arm's own number of tokens would win over that of MICRO
        short = [word for word in arm.set if not re.fullmatch(r"sft\.train\.max_tokens=\d+", word)]
        words += [f"sweep.arms.{name}.set={json.dumps(short)}"] if short != list(arm.set) else []
    assert main(["sweep", recipe, "--out", str(out), "--quiet", "--seeds", "1", *words]) == 0
    found = json.loads((out / "sweep.json").read_text())
    assert [arm["name"] for arm in found["arms"]] == list(section.arms)
    assert not [one for one in found["differences"] if "not compared" in one]
