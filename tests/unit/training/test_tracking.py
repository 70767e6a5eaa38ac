"""Figures go to trackers, numbers alone, nested ones by path."""

from __future__ import annotations

from pathlib import Path

import pytest

from thincode.errors import MissingExtraError
from thincode.training.on_accelerate.loop import Tracker
from thincode.training.on_accelerate.tracking import Trackers

pytestmark = pytest.mark.train


def test_tensorboard_gets_every_number(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    trackers = Trackers([Tracker.TENSORBOARD], folder=tmp_path, recipe={"rl": {"steps": 3, "algorithm": "grpo"}})
    record = {"step": 7, "stage": "rl-1", "reward_mean": 0.5, "block_pass_rate": None, "validation": {"accuracy": 0.25}}
    trackers.log(record, step=7)
    trackers.close()
    found = EventAccumulator(str(tmp_path / "tensorboard"))
    found.Reload()
    assert {
        tag for tag in found.Tags()["scalars"] if tag in ("reward_mean", "validation/accuracy", "stage", "step")
    } == {
        "reward_mean",
        "validation/accuracy",
    }
    assert [(event.step, event.value) for event in found.Scalars("validation/accuracy")] == [(7, 0.25)]


def test_one_that_is_not_installed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"rl.trackers: wandb needs wandb.*thincode\[wandb\]"):
        Trackers([Tracker.WANDB], folder=tmp_path, recipe={})


def test_none_is_a_valid_number(tmp_path: Path) -> None:
    trackers = Trackers([], folder=tmp_path, recipe={})
    trackers.log({"step": 1, "reward_mean": 1.0}, step=1)
    trackers.close()
    assert list(tmp_path.iterdir()) == []
