"""What must not change what is learned: interruption, micro-batches, layout, processes; and the shape of learning itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from thincode.errors import UserError
from thincode.settings import Kind, kinds
from thincode.training import Update, checkpoint
from thincode.training.batch import Example, Layout
from thincode.training.optimizer import Decay, OptimizerKind, OptimizerSettings, ScheduleSettings
from training_cases import ROOM, VOCABULARY, algorithm, difference, many_updates, tiny_model, train_policy

pytestmark = pytest.mark.train
MUON = OptimizerSettings(kind=OptimizerKind.MUON, lr=1e-3, lr_matrices=1e-2)
GOLDEN = Path(__file__).parents[1] / "golden" / "training_curves.json"


class KilledError(Exception):
    """Stands for kill -9: nothing of ours runs after it."""


def killed_in(kind: Kind, step: int, first: int, steps: int) -> Iterator[Update]:
    for update in many_updates(kind, first, steps):
        if update.step == step and update.last:
            raise KilledError
        yield update


def latest(folder: Path) -> checkpoint.Checkpoint:
    found = checkpoint.latest(folder, on_warning=pytest.fail)
    assert found is not None
    return found


@pytest.mark.parametrize("optimizer", [MUON, OptimizerSettings(lr=1e-3)], ids=["muon", "adamw"])
def test_resumed_rl_is_uninterrupted_rl_bit_by_bit_with_dropout(tmp_path: Path, optimizer: OptimizerSettings) -> None:
    kind, more = algorithm("grpo"), {"steps": 5, "optimizer": optimizer}
    whole = tiny_model(dropout=0.1)
    records = train_policy(whole, kind, tmp_path / "whole", **more)

    stopped = tiny_model(dropout=0.1)
    with pytest.raises(KilledError):
        train_policy(stopped, kind, tmp_path / "cut", updates=lambda first: killed_in(kind, 3, first, 5), **more)
    found = latest(tmp_path / "cut")
    assert (found.step, found.finished) == (2, False)
    resumed = tiny_model(dropout=0.1, seed=99)
    again = train_policy(resumed, kind, tmp_path / "cut", resume_from=found, **more)

    assert difference(whole, resumed) == 0.0
    assert difference(whole, stopped) > 0.0
    assert again == records[-len(again) :]
    assert [record["step"] for record in again] == [2, 2, 3, 3, 4, 4]


def test_dropout_matters_in_the_test_above(tmp_path: Path) -> None:
    kind = algorithm("grpo")
    one, other = tiny_model(dropout=0.1), tiny_model(dropout=0.1)
    train_policy(one, kind, tmp_path / "one", steps=1, seed=5)
    train_policy(other, kind, tmp_path / "other", steps=1, seed=6)
    assert difference(one, other) > 0.0


def test_a_checkpoint_stands_at_the_end_of_a_step_with_the_state_of_that_moment(tmp_path: Path) -> None:
    from thincode.training.models import load

    kind, model = algorithm("grpo"), tiny_model()
    logged: list[float] = []
    behind: list[tuple[int, int | None]] = []
    folder = tmp_path / "checkpoint"

    def updates(first: int) -> Iterator[Update]:
        for update in many_updates(kind, first, 3):
            before = {name: value.clone() for name, value in model.state_dict().items()}
            yield update
            # Behind the yield: weights have moved, the record is there, and the checkpoint of the step is written.
            assert any(not value.equal(before[name]) for name, value in model.state_dict().items())
            found = checkpoint.latest(folder, on_warning=pytest.fail)
            behind.append((len(logged), found.step if found else None))

    train_policy(
        model,
        kind,
        folder,
        steps=3,
        updates=updates,
        checkpoint_every=2,
        on_update=lambda record: logged.append(record["update"]),
        state=lambda: {"records": len(logged)},
    )
    assert behind == [(1, None), (2, None), (3, None), (4, 2), (5, 2), (6, 2)]
    found = latest(folder)
    assert (found.step, found.finished, found.state) == (3, True, {"records": 6})
    assert json.loads((folder / "step-000002" / "manifest.json").read_text())["state"] == {"records": 4}
    loaded = load(str(found.path))
    assert difference(model, loaded) == 0.0
    assert model.config.use_cache
    assert loaded.config.use_cache
    assert sorted(path.name for path in folder.iterdir()) == ["newest.json", "step-000002", "step-000003"]


def test_a_finished_run_has_nothing_left_to_do(tmp_path: Path) -> None:
    kind, model = algorithm("grpo"), tiny_model()
    train_policy(model, kind, tmp_path, steps=1)
    fresh = tiny_model(seed=8)
    assert train_policy(fresh, kind, tmp_path, steps=1, resume_from=latest(tmp_path)) == []
    assert difference(model, fresh) == 0.0


def test_a_step_without_signal_moves_nothing_and_still_ends(tmp_path: Path) -> None:
    model, untouched = tiny_model(), tiny_model()
    nothing = [Update(rows=(), last=True, step=step, algorithm=algorithm("grpo")) for step in range(2)]
    records = train_policy(
        model,
        algorithm("grpo"),
        tmp_path,
        steps=2,
        updates=lambda first: iter(nothing[first:]),
        optimizer=OptimizerSettings(kind=OptimizerKind.MUON, weight_decay=0.5),
    )
    assert difference(model, untouched) == 0.0
    assert [(record["step"], record["tokens"], record["loss"]) for record in records] == [(0, 0, 0), (1, 0, 0)]
    assert latest(tmp_path).step == 2


@pytest.mark.parametrize("optimizer", [MUON, OptimizerSettings(lr=1e-3)], ids=["muon", "adamw"])
def test_a_fresh_optimizer_begins_as_a_new_run_would(tmp_path: Path, optimizer: OptimizerSettings) -> None:
    kind, more = algorithm("grpo"), {"steps": 4, "optimizer": optimizer, "schedule": ScheduleSettings(warmup_updates=3)}

    def updates(first: int) -> Iterator[Update]:
        for update in many_updates(kind, first, 4):
            begins = update.step == 2 and not update.last
            yield replace(update, fresh_optimizer=begins)

    reset, carried = tiny_model(), tiny_model()
    records = train_policy(reset, kind, tmp_path / "reset", updates=updates, **more)
    train_policy(carried, kind, tmp_path / "carried", **more)
    anew = tiny_model()
    train_policy(anew, kind, tmp_path / "first", updates=lambda first: many_updates(kind, first, 2), **more)
    second = train_policy(anew, kind, tmp_path / "second", updates=lambda first: many_updates(kind, 2, 4), **more)
    assert difference(reset, anew) == 0.0
    assert difference(carried, anew) > 0.0
    assert [record["grad_norm"] for record in records[4:]] == [record["grad_norm"] for record in second]


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_loss_that_is_not_finite_stops_the_run_before_weights_move(tmp_path: Path, value: float) -> None:
    kind, model = algorithm("grpo"), tiny_model()

    def updates(first: int) -> Iterator[Update]:
        for update in many_updates(kind, first, 3):
            if update.step == 2:
                update.rows[0].advantage[-1] = value
            yield update

    with pytest.raises(UserError, match=r"step 2: the loss is (nan|inf|-inf).*checkpoint after step 2 is good"):
        train_policy(model, kind, tmp_path, steps=3, updates=updates)
    assert latest(tmp_path).step == 2


@pytest.mark.parametrize("name", ["grpo", "reinforce_pp"])
def test_micro_batches_and_layout_do_not_change_what_is_learned(tmp_path: Path, name: str) -> None:
    kind, reference = algorithm(name), tiny_model()
    whole = train_policy(reference, kind, tmp_path / "whole", steps=2, micro_tokens=100_000)
    for number, (layout, micro_tokens) in enumerate([(Layout.PADDED, 1), (Layout.PADDED, 96), (Layout.PACKED, 96)]):
        model = tiny_model()
        records = train_policy(model, kind, tmp_path / str(number), steps=2, layout=layout, micro_tokens=micro_tokens)
        assert difference(reference, model) < 1e-5
        for record, expected in zip(records, whole, strict=True):
            assert record == pytest.approx(expected, rel=1e-3, abs=1e-6)


def test_the_fused_head_gives_the_same_gradient(tmp_path: Path) -> None:
    from thincode.training.on_accelerate.loop import Head

    kind = algorithm("grpo")
    one = train_policy(tiny_model(), kind, tmp_path / "one", steps=1, temperature=0.7)
    other = train_policy(tiny_model(), kind, tmp_path / "other", steps=1, temperature=0.7, head=Head.FUSED)
    assert other[0] == pytest.approx(one[0], rel=1e-4, abs=1e-6)


def plain_loop(model: Any, kind: Kind, *, steps: int, temperature: float) -> list[float]:
    """An independent trainer: one row at a time, full logits, torch's AdamW; returns gradient norms."""
    import torch

    rule = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.0)
    norms = []
    for count, update in enumerate(many_updates(kind, 0, steps)):
        for group in rule.param_groups:
            group["lr"] = 1e-3 * min((count + 1) / 3, 1.0)
        for row in update.rows:
            ids = torch.from_numpy(row.ids.astype(np.int64))[None]
            logprob = torch.log_softmax(model(ids).logits[0, :-1] / temperature, -1)
            columns = {
                "logprob_BT": logprob.gather(1, ids[0, 1:, None])[:, 0][None],
                "behavior_BT": torch.from_numpy(row.behavior[1:])[None],
                "advantage_BT": torch.from_numpy(row.advantage[1:])[None],
                "weight_BT": torch.from_numpy(row.weight[1:])[None],
            }
            kind.module.loss(kind.settings, **columns).total.backward()
        norms.append(float(torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)))
        rule.step()
        rule.zero_grad()
    return norms


@pytest.mark.parametrize("name", ["grpo", "dapo"])
def test_our_updates_are_those_of_a_plain_loop(tmp_path: Path, name: str) -> None:
    kind, ours, plain = algorithm(name), tiny_model(), tiny_model()
    records = train_policy(ours, kind, tmp_path, steps=3, temperature=0.8)
    norms = plain_loop(plain, kind, steps=3, temperature=0.8)
    assert [record["grad_norm"] for record in records] == pytest.approx(norms, rel=1e-4)
    assert difference(ours, plain) < 2e-6


@pytest.mark.slow
def test_two_processes_have_the_gradient_norm_of_one(tmp_path: Path) -> None:
    kind, model = algorithm("grpo"), tiny_model()
    records = train_policy(model, kind, tmp_path / "one", steps=2)
    script = Path(__file__).with_name("two_processes.py")
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "ACCELERATE_USE_CPU": "true",
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2", str(script)]
    done = subprocess.run(
        [*command, str(tmp_path / "two")], env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    result = json.loads((tmp_path / "two" / "result.json").read_text())
    assert result["world_size"] == 2
    for found, expected in zip(result["records"], records, strict=True):
        assert found == pytest.approx(expected, rel=1e-4, abs=1e-6)
    from thincode.training.models import load

    assert difference(model, load(str(latest(tmp_path / "two" / "checkpoint").path))) < 2e-6


# --- supervised -----------------------------------------------------------------------------------------------------


def examples(count: int = 24) -> list[Example]:
    """Counting up from a drawn start: something that can be learned."""
    rng = np.random.default_rng(0)
    made = []
    for _ in range(count):
        length = int(rng.integers(8, 24))
        ids = (int(rng.integers(2, 30)) + np.arange(length)).astype(np.int32) % VOCABULARY
        made.append(Example(ids=ids, mask=np.arange(length) >= 2))
    return made


def train_sft(model: Any, folder: Path, **more: Any) -> tuple[list[dict[str, float]], Any]:
    from thincode.training.on_accelerate import sft

    values: dict[str, Any] = {
        "optimizer": MUON,
        "schedule": ScheduleSettings(warmup_updates=2, constant_share=0.5, decay=Decay.LINEAR, floor=0.05),
        "epochs": 2,
        "batch_tokens": 96,
        "checkpoint_every": 3,
        "log_every": 1,
    }
    records: list[dict[str, float]] = []
    arguments: dict[str, Any] = {"seed": 2, "resume_from": None, "on_log": records.append, "examples": examples()}
    values |= {name: more.pop(name) for name in list(more) if name in sft.SftSettings.__dataclass_fields__}
    result = sft.train_sft(model, settings=sft.SftSettings(**values), folder=folder, **(arguments | more))
    return records, result


def test_resumed_sft_is_uninterrupted_sft_bit_by_bit_with_dropout(tmp_path: Path) -> None:
    whole = tiny_model(dropout=0.1)
    records, result = train_sft(whole, tmp_path / "whole")
    assert result.steps == len(records)

    def die(record: dict[str, float]) -> None:
        if record["step"] == 4:
            raise KilledError

    with pytest.raises(KilledError):
        train_sft(tiny_model(dropout=0.1), tmp_path / "cut", on_log=die)
    found = latest(tmp_path / "cut")
    assert found.step == 3
    resumed = tiny_model(dropout=0.1, seed=99)
    again, _ = train_sft(resumed, tmp_path / "cut", resume_from=found)
    assert difference(whole, resumed) == 0.0
    assert again == records[3:]


def test_sft_validates_at_its_steps_and_again_after_a_crash_there(tmp_path: Path) -> None:
    seen: list[int] = []
    _, result = train_sft(tiny_model(), tmp_path / "whole", validate_every=3, on_validate=seen.append)
    assert seen == [*range(3, result.steps, 3), result.steps]

    def die(step: int) -> None:
        raise KilledError

    with pytest.raises(KilledError):
        train_sft(tiny_model(), tmp_path / "cut", validate_every=3, on_validate=die)
    again: list[int] = []
    train_sft(
        tiny_model(), tmp_path / "cut", validate_every=3, on_validate=again.append, resume_from=latest(tmp_path / "cut")
    )
    assert again == seen


def test_sft_leaves_out_what_does_not_fit_and_says_how_many(tmp_path: Path) -> None:
    long = Example(ids=np.full(200, 3, dtype=np.int32), mask=np.ones(200, dtype=np.bool_))
    empty = Example(ids=np.full(5, 3, dtype=np.int32), mask=np.zeros(5, dtype=np.bool_))
    _, result = train_sft(
        tiny_model(), tmp_path, examples=[*examples(4), long, empty], context_tokens=199, epochs=None, max_steps=1
    )
    assert (result.examples, result.too_long, result.nothing_to_train, result.steps) == (4, 1, 1, 1)


def test_sft_layouts_agree(tmp_path: Path) -> None:
    padded, packed = tiny_model(), tiny_model()
    one, _ = train_sft(padded, tmp_path / "padded", max_steps=3)
    other, _ = train_sft(packed, tmp_path / "packed", max_steps=3, layout=Layout.PACKED)
    for found, expected in zip(other, one, strict=True):
        assert found == pytest.approx(expected, rel=1e-3)


def test_sft_with_nothing_to_train_on_says_so(tmp_path: Path) -> None:
    from thincode.errors import DataError, RecipeError

    with pytest.raises(DataError, match="nothing to train on: of 24 examples, 24 are longer than"):
        train_sft(tiny_model(), tmp_path, context_tokens=4)
    with pytest.raises(RecipeError, match="never ends"):
        train_sft(tiny_model(), tmp_path, epochs=None)


# --- golden ---------------------------------------------------------------------------------------------------------


def curves(folder: Path) -> dict[str, list[float]]:
    """Twenty updates of each algorithm, ten steps of made-up rollouts; and of SFT."""
    found = {}
    for name in kinds(ROOM):
        records = train_policy(tiny_model(), algorithm(name), folder / name, steps=10, optimizer=MUON)
        found[name] = [round(record["grad_norm"], 5) for record in records]
    records, _ = train_sft(tiny_model(), folder / "sft", epochs=None, max_steps=20)
    found["sft"] = [round(record["loss"], 5) for record in records]
    return found


def test_twenty_updates_follow_the_golden_curves(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """`make golden` writes them anew; the commit says why they moved."""
    found = curves(tmp_path)
    if pytestconfig.getoption("--renew"):
        GOLDEN.write_text(json.dumps(found, indent=1) + "\n")
    golden = json.loads(GOLDEN.read_text())
    assert found.keys() == golden.keys()
    for name, values in found.items():
        assert values == pytest.approx(golden[name], rel=2e-2), name
    assert found["sft"][-1] < found["sft"][0] - 0.3
