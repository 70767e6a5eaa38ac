"""What a recipe's SFT will ask of a GPU: worked by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from thincode import atomic
from thincode.errors import RecipeError
from thincode.grading import records
from thincode.runs import plan_sft, sieve
from thincode.runs.recipe import Recipe
from thincode.settings import load
from thincode.trajectory.store import Store
from unit.evaluation.build import row


def estimate(name: str, *overrides: str, gpu: str = "h200", gpus: int = 1) -> tuple[dict[str, Any], list[str]]:
    return plan_sft.of_sft(load(Recipe, name, overrides).value, gpu=gpu, gpus=gpus)


def test_counts_of_the_papers_recipe() -> None:
    found, assumed = estimate("thinc/4b/sft")
    # 12,200 in batches of 16 are 763 an epoch; three epochs.
    assert (found["examples"], found["steps"], found["tokens"]) == (12_200, 2_289, 3 * 12_200 * 8192)
    assert "no distillation yet: 12,200 examples" in assumed[0]
    # 16 bytes a parameter; activations of one row of 32K with checkpointing: 2 · 32768 · 2560 · (36 + 14); a head in tiles.
    assert found["train_gib"] == pytest.approx((16 * 4.02e9 + 2 * 32768 * 2560 * 50) / 2**30, abs=0.01)


def test_lora_and_more_gpus_need_less_of_each() -> None:
    whole, _ = estimate("thinc/4b/sft")
    lora, _ = estimate("thinc/4b/sft", "sft.lora={rank: 16}")
    eight, _ = estimate("thinc/4b/sft", gpus=8)
    assert lora["train_gib"] < 0.5 * whole["train_gib"]
    assert eight["train_gib"] < 0.4 * whole["train_gib"]
    assert eight["hours"] == pytest.approx(whole["hours"] / 8, abs=0.01)
    assert "does not fit" in plan_sft.text(*estimate("thinc/4b/sft", gpu="rtx4090"))


def test_a_distillation_that_is_there_is_counted(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        for sample in range(4):
            graded = row("p", "x" * 300, sample=sample, correct=True)
            store.append(graded.trajectory, records.annotations(graded))
        lines = [{"key": key, "keep": True, "reason": "kept"} for key in sorted(store.keys())]
    atomic.write_text(tmp_path / sieve.VERDICTS, "".join(json.dumps(line) + "\n" for line in lines))
    limits = ["sft.train.max_tokens=null", "sft.train.epochs=2", "sft.train.batch_examples=3"]
    found, assumed = estimate("tiny/micro", f"sft.data={tmp_path}", *limits)
    assert (found["examples"], found["mean_tokens"], found["steps"]) == (4, 100, 4)
    assert str(tmp_path) in assumed[0]
    mix = json.dumps([{"data": str(tmp_path), "weight": 2.0}])
    assert estimate("tiny/micro", f"sft.mix={mix}", *limits)[0]["examples"] == 8


def test_what_can_not_be_estimated_is_said() -> None:
    with pytest.raises(RecipeError, match="known: h200"):
        estimate("thinc/4b/sft", gpu="abacus")
    with pytest.raises(RecipeError, match="the size of 'me/model' can't be told"):
        estimate("tiny/micro", "sft.model.path=me/model")
    empty = replace(load(Recipe, "tiny/micro").value, sft=None)
    with pytest.raises(RecipeError, match="no section sft"):
        plan_sft.of_sft(empty, gpu="h200")
