"""The loop of RL around a scripted model: stages, filters, masks, alarms, and a sandbox that fails."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest

from thincode.engines import Context
from thincode.engines.scripted import ScriptedEngine
from thincode.errors import AlarmError, TooManyLostError
from thincode.interpreter import BlockResult, Status
from thincode.runlog import Progress, RunFolder, read_log
from thincode.runs import rl
from thincode.runs.policy import Policy
from thincode.runs.recipe import Recipe
from thincode.runs.workshop import Workshop
from thincode.settings import parse
from thincode.trajectory.store import read
from thincode.trajectory.tokenizer import Tokenizer

pytestmark = pytest.mark.train

BLOCK = "```python\nprint(6 * 7)\n```\n"
RECIPE: dict[str, Any] = {
    "schedule": "deterministic",
    "threads": 1,
    "live": 8,
    "format": {"kind": "thinc", "instruction": ""},
    "interpreter": {
        "backend": {"kind": "python", "preload": []},
        "limits": {"cpu_s": 1.0, "wall_s": 10.0, "memory_mib": 256},
    },
    "rl": {
        "problems": {"kind": "jsonl", "path": "PROBLEMS"},
        "problems_per_step": 4,
        "samples": 4,
        "updates_per_step": 1,
        "stages": [{"steps": 2, "context_tokens": 200, "calls": 2}],
        "policy": {"optimizer": {"kind": "adamw", "lr": 1e-3}, "checkpoint_every": 10},
    },
}

Script = Callable[[Context], str]


def box(context: Context) -> str:
    """One block, then its output as the answer."""
    return f"It is \\boxed{{{context.outputs[0].strip()}}}" if context.outputs else BLOCK


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of random weights, and a tokenizer that spells the scripts."""
    from thincode.training import models

    folder = tmp_path_factory.mktemp("start") / "model"
    tokenizer = Tokenizer.train([BLOCK, "It is \\boxed{42}", "question 0 1 2 3 4 5 6 7 8 9"] * 4, vocab_size=300)
    shape = models.ModelSettings(layers=1, hidden=16, heads=1, kv_heads=1, head_dim=16, intermediate=16)
    model = models.build(
        shape, vocabulary=tokenizer.vocab_size, eos_id=tokenizer.eos_ids[0], pad_id=tokenizer.pad_id, seed=0
    )
    models.save(model, tokenizer, folder)
    return folder


class Losing:
    """The workshop's interpreter, but some blocks are lost: those of chosen sessions, so that a retry loses them again."""

    def __init__(self, real: Any, share: float) -> None:
        self.real, self.share = real, share

    async def session(self, *, seed: int = 0) -> Any:
        session = await self.real.session(seed=seed)
        return LosingSession(session) if Random(seed).random() < self.share else session

    async def close(self) -> None:
        await self.real.close()


class LosingSession:
    def __init__(self, real: Any) -> None:
        self.real = real

    async def run(self, code: str) -> BlockResult:
        return BlockResult(Status.LOST, "", "the sandbox is gone")

    async def close(self) -> None:
        await self.real.close()


class Bench:
    """Runs the loop, and reads what it wrote."""

    def __init__(self, start: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.start, self.folder, self.monkeypatch = start, folder, monkeypatch
        self.answers = ["42"] * 4

    def run(self, values: Mapping[str, Any], *, script: Script = box, lost: float = 0.0, **top: Any) -> None:
        problems = self.folder / "problems.jsonl"
        lines = [{"id": f"p{n}", "problem": f"question {n}", "answer": gold} for n, gold in enumerate(self.answers)]
        problems.write_text("".join(json.dumps(line) + "\n" for line in lines))
        section = {**RECIPE["rl"], "problems": {"kind": "jsonl", "path": str(problems)}, **values}
        recipe = parse(Recipe, {**RECIPE, **top, "rl": section})
        assert recipe.rl is not None
        tokenizer = Tokenizer.load(self.start)

        class Scripted(Policy):
            def __init__(self, section: Any, start: Path, shop: Workshop) -> None:
                super().__init__(section, start, shop)
                self.engine = ScriptedEngine(script, tokenizer)
                self.engine.weights_changed = lambda: None
                self.crowd = shop.crowd(self.engine)

        self.monkeypatch.setattr(rl, "Policy", Scripted)
        out = self.folder / "run"
        with Workshop(recipe) as shop, RunFolder.create(out, resolved={}, resume=out.exists()) as run:
            shop.interpreter = Losing(shop.interpreter, lost)  # type: ignore[assignment]
            quiet = lambda name, *, total, unit, done=0: Progress(name, total=total, unit=unit, done=done, quiet=True)  # noqa: E731
            rl.run(recipe.rl, start=self.start, folder=run, shop=shop, progress=quiet, say=pytest.fail)

    @property
    def lines(self) -> list[dict[str, Any]]:
        return list(read_log(self.folder / "run" / "metrics.jsonl"))

    @property
    def steps(self) -> list[dict[str, Any]]:
        return [line for line in self.lines if "reward_mean" in line]

    @property
    def checkpoints(self) -> list[str]:
        return sorted(path.name for path in (self.folder / "run" / "checkpoint").glob("step-*"))

    def moved(self) -> bool:
        """Whether the last checkpoint's weights are not the ones the run started with."""
        from thincode.training.models import load

        after = load(str(self.folder / "run" / "checkpoint" / self.checkpoints[-1])).state_dict()
        return any(not value.equal(after[name]) for name, value in load(str(self.start)).state_dict().items())


@pytest.fixture
def bench(start: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(start, tmp_path, monkeypatch)


# --- a sandbox that fails ---------------------------------------------------------------------------------------------


def test_one_percent_lost_goes_on_without_those_trajectories(bench: Bench) -> None:
    """All other samples are right. Were a lost one a reward of 0, its group would have a signal, and weights would move."""
    bench.answers = ["42"] * 20
    bench.run({"problems_per_step": 20}, lost=0.01, lost_share_limit=0.05)
    steps = bench.steps
    assert sum(step["lost_share"] > 0 for step in steps) > 0
    for step in steps:
        assert (step["reward_mean"], step["accuracy"], step["zero_right_share"]) == (1.0, 1.0, 1.0)
    assert not bench.moved()
    records = list(read(bench.folder / "run"))
    lost = [record for record in records if record.trajectory.lost]
    assert lost
    assert {record.annotations["fate"] for record in lost} == {"out"}
    assert len(records) == 2 * 20 * 4


@pytest.mark.parametrize("share", [0.1, 1.0])
def test_more_lost_than_allowed_stops_the_run_and_says_what_failed(bench: Bench, share: float) -> None:
    bench.answers = ["42"] * 20
    with pytest.raises(TooManyLostError, match=r"blocks were lost.*lost_share_limit.*the sandbox is gone.*--resume"):
        bench.run({"problems_per_step": 20}, lost=share)
    assert bench.steps == []
    assert not (bench.folder / "run" / "model").exists()


def test_a_sandbox_that_dies_later_leaves_a_checkpoint_behind_the_last_whole_step(bench: Bench) -> None:
    bench.answers = ["42"] * 16
    stages = [{"steps": 3, "context_tokens": 200, "calls": 2}]
    real = Losing.session
    opened = 0

    async def dying(self: Losing, *, seed: int = 0) -> Any:
        nonlocal opened
        opened += 1
        self.share = float(opened > 64)
        return await real(self, seed=seed)

    bench.monkeypatch.setattr(Losing, "session", dying)
    with pytest.raises(TooManyLostError):
        bench.run({"problems_per_step": 16, "stages": stages})
    assert bench.checkpoints == ["step-000001"]
    assert [step["step"] for step in bench.steps] == [0]
    assert len(list(read(bench.folder / "run"))) == 64  # nothing of the half step
    bench.monkeypatch.setattr(Losing, "session", real)
    bench.run({"problems_per_step": 16, "stages": stages})
    assert [step["step"] for step in bench.steps] == [0, 1, 2]
    assert len(list(read(bench.folder / "run"))) == 3 * 64


def test_an_answer_without_the_interpreter_has_its_own_end_and_counts_for_nothing(bench: Bench) -> None:
    def told(context: Context) -> str:
        return "It is \\boxed{42}" if "unavailable" in context.text else box(context)

    bench.run({}, script=told, lost=0.5, lost_share_limit=1.0, answer_without_interpreter=True)
    records = list(read(bench.folder / "run"))
    ends = {record.trajectory.end.value for record in records}
    assert ends == {"finished", "answered_without_interpreter"}
    for record in records:
        unserved = record.trajectory.end.value == "answered_without_interpreter"
        assert record.annotations["fate"] == ("out" if unserved else "trained")
        assert record.trajectory.answer == "42"
    assert all(0 < step["unserved_share"] < 1 for step in bench.steps)
    assert sum(step["n"] for step in bench.steps) == sum(one.annotations["fate"] == "trained" for one in records)


# --- alarms ---------------------------------------------------------------------------------------------------------


def test_a_stuck_reward_stops_the_run_behind_a_whole_step(bench: Bench) -> None:
    values = {"stages": [{"steps": 9, "context_tokens": 200, "calls": 2}], "alarms": {"stuck_steps": 2}}
    with pytest.raises(AlarmError, match=r"stage rl-1, step 1: no group.*stuck_steps=2.*stuck at 1.0"):
        bench.run(values)
    assert bench.checkpoints == ["step-000002"]
    with pytest.raises(AlarmError, match=r"step 2: no group.*for 3 steps"):
        bench.run(values)
    assert [step["step"] for step in bench.steps] == [0, 1, 2]


def test_a_collapsed_entropy_stops_the_run(bench: Bench) -> None:
    bench.answers = ["42", "42", "7", "7"]
    values = {"alarms": {"entropy_below": 1e9, "patience": 2}, "algorithm": "reinforce_pp"}
    with pytest.raises(AlarmError, match=r"step 1: the entropy, .* nats a token, has been below .* for 2 steps"):
        bench.run(values)
    assert bench.moved()


def test_a_sampler_with_other_weights_stops_the_run(bench: Bench) -> None:
    bench.answers = ["42", "42", "7", "7"]  # the script claims certainty, the model has none
    values = {"alarms": {"mismatch_above": 1.0, "patience": 2}, "algorithm": "reinforce_pp"}
    with pytest.raises(AlarmError, match=r"step 1: sampler and trainer disagree by .*mismatch_above=1, for 2 steps"):
        bench.run(values)
    assert bench.checkpoints[-1] == "step-000002"


# --- stages ---------------------------------------------------------------------------------------------------------


def test_a_filter_writes_down_what_it_kept_and_dropped(bench: Bench) -> None:
    bench.answers = ["42", "42", "7", "42"]
    budget = {"context_tokens": 200, "calls": 2}
    first = {"steps": 1, **budget}
    second = {"steps": 1, **budget, "filter": {"measure": "last_epoch"}}
    third = {"steps": 1, **budget, "filter": {"measure": "fresh_n", "samples": 2, "drop_solved": False}}
    bench.run({"stages": [first, second, third]})
    found = json.loads((bench.folder / "run" / "filter-rl-2.json").read_text())
    assert found["kept"] == {"p2": {"step": 0, "right": 0, "samples": 4}}
    assert set(found["dropped"]["always solved"]) == {"p0", "p1", "p3"}
    fresh = json.loads((bench.folder / "run" / "filter-rl-3.json").read_text())
    assert fresh == {
        "step": 2,
        "kept": {"p2": {"step": 2, "right": 0, "samples": 2}},
        "dropped": {"always solved": {}, "never solved": {}},
    }
    told = [line["curriculum"] for line in bench.lines if "curriculum" in line]
    assert [(one["active"], one["dropped"]) for one in told] == [(4, 0), (1, 3), (1, 0)]


def test_calls_grow_inside_a_stage_and_stages_have_their_own_algorithm(bench: Bench) -> None:
    bench.answers = ["42", "7", "42", "7"]
    stages = [
        {"steps": 3, "context_tokens": 200, "calls": 0, "calls_from": [[1, 1], [2, 2]]},
        {"steps": 1, "context_tokens": 200, "calls": 2, "algorithm": {"kind": "reinforce_pp"}, "optimizer": "reset"},
    ]
    bench.run({"stages": stages})
    assert [step["calls_budget"] for step in bench.steps] == [0, 1, 2, 2]
    assert [step["calls"] for step in bench.steps] == [0.0, 1.0, 1.0, 1.0]
    # GRPO finds no signal inside the groups; REINFORCE++ has no groups.
    assert [step["tokens"] > 0 for step in bench.steps] == [False, False, False, True]


def test_validations_that_bring_nothing_end_a_stage(bench: Bench) -> None:
    budget = {"context_tokens": 200, "calls": 2}
    stop = {"steps": 50, **budget, "early_stop": {"patience": 2}}
    held_out = bench.folder / "held_out.jsonl"
    held_out.write_text('{"id": "h", "problem": "question 9", "answer": "42"}\n')
    values = {"problems": {"kind": "jsonl", "path": str(held_out)}, "every": 1, "samples": 2}
    bench.run({"stages": [stop, {"steps": 1, **budget}], "validation": values})
    assert [step["stage"] for step in bench.steps] == ["rl-1", "rl-1", "rl-2"]
    validations = [line["validation"] for line in bench.lines if "validation" in line]
    assert {(one["n"], one["accuracy"]) for one in validations} == {(2, 1.0)}


def test_a_suite_validates_by_benchmark(bench: Bench, data_dir: Path) -> None:
    suite = {"kind": "cir", "data": str(data_dir), "limit": 2}
    values = {"suite": suite, "every": 5, "samples": 2}
    bench.run({"stages": [{"steps": 1, "context_tokens": 2000, "calls": 2}], "validation": values})
    first = next(line["validation"] for line in bench.lines if "validation" in line)
    parts = {name: value for name, value in first.items() if name.startswith("accuracy/")}
    assert len(parts) == 5
    assert first["n"] == 5 * 2 * 2
    assert first["accuracy"] == pytest.approx(sum(parts.values()) / 5)


# --- masks and rewards ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("fate", "signal"), [("trained", True), ("statistics", True), ("out", False)])
def test_void_trajectories_have_the_fate_the_recipe_says(bench: Bench, fate: str, signal: bool) -> None:
    seen: dict[str, int] = {}

    def sometimes(context: Context) -> str:
        if context.outputs:
            seen[context.question_id] = seen.get(context.question_id, 0) + 1
            return "It is" if seen[context.question_id] % 2 else box(context)
        return BLOCK

    bench.run({"masks": {"void": fate}, "stages": [{"steps": 1, "context_tokens": 200, "calls": 2}]}, script=sometimes)
    fates = [record.annotations["fate"] for record in read(bench.folder / "run")]
    assert sorted(fates) == sorted(["trained"] * 8 + [fate] * 8)
    (step,) = bench.steps
    assert (step["tokens"] > 0) is signal
    assert bench.moved() is signal


def test_rewards_of_segments_reach_the_tokens_that_earned_them(bench: Bench) -> None:
    bench.answers = ["42", "7", "42", "7"]
    rewards = [{"reward": "correct"}, {"reward": {"kind": "blocks_ok", "ok": 0.25}, "weight": 2.0}]
    bench.run({"rewards": rewards, "algorithm": "reinforce_pp"})
    first = bench.steps[0]
    assert (first["reward/correct"], first["reward/blocks_ok"], first["reward_mean"]) == (0.5, 0.25, 1.0)


def test_a_penalty_against_the_start_and_a_correction_are_computed(bench: Bench) -> None:
    bench.answers = ["42", "7", "42", "7"]
    bench.run({"algorithm": {"kind": "reinforce_pp", "kl_coef": 0.1, "importance_cap": 2.0}})
    first, second = bench.steps
    assert first["reference_kl"] == pytest.approx(0.0, abs=1e-7)
    assert second["reference_kl"] > 0
    assert first["ratio"] == pytest.approx(1.0, abs=1e-6)  # against the trainer's own, not the script's 0
    assert first["mismatch"] > 1  # the script claims certainty, the model has none
