"""What a recipe will ask of a GPU: worked by hand, and the mistakes one can make."""

from __future__ import annotations

from typing import Any

import pytest

from thincode.errors import RecipeError
from thincode.runs import plan
from thincode.runs.recipe import Recipe
from thincode.settings import load


def estimate(name: str, *overrides: str, gpu: str = "h200", gpus: int = 1) -> dict[str, Any]:
    return plan.of_rl(load(Recipe, name, overrides).value, gpu=gpu, gpus=gpus)[0]


def test_counts_of_the_papers_recipe() -> None:
    found = estimate("thinc/4b/rl")
    assert (found["steps"], found["rollouts_per_step"], found["rollouts"], found["updates"]) == (
        500,
        1024,
        512_000,
        1000,
    )
    # 400 steps at half of 16K, 100 at half of 32K.
    assert found["tokens"] == 400 * 1024 * 8192 + 100 * 1024 * 16384
    cir = estimate("cir/7b", gpus=8)
    assert (cir["steps"], cir["rollouts"]) == (300, 300 * 128 * 16)


def test_memory_by_hand() -> None:
    found = estimate("thinc/4b/rl", "rl.policy.micro_tokens=1024")
    # 16 bytes a parameter, and activations of one row: 2 · 1024 · 2560 · (36 + 14).
    assert found["train_gib"] == pytest.approx((16 * 4.02e9 + 2 * 1024 * 2560 * 50) / 2**30, abs=0.01)
    # Keys and values: 2 · 2 bytes · 36 layers · 1024 wide · 16K tokens = 2.25 GiB a sequence.
    assert found["cache_gib"] / found["sequences_at_once"] == pytest.approx(2.25, abs=0.01)


SERVED = "rl.engine={kind: vllm, weights: served}"


def test_more_gpus_share_the_updates_and_a_served_models_sampling() -> None:
    one, eight = estimate("thinc/4b/rl"), estimate("thinc/4b/rl", gpus=8)
    assert eight["train_gib"] == one["train_gib"]  # whole on each: RL is not sharded
    assert eight["train_hours"] == pytest.approx(one["train_hours"] / 8, abs=0.01)
    assert eight["generate_hours"] == one["generate_hours"]  # the local engine samples on the first
    served = estimate("thinc/4b/rl", SERVED, gpus=8)
    assert served["generate_hours"] == pytest.approx(one["generate_hours"] / 8, abs=0.01)


def test_a_small_model_of_our_own_is_measured_from_its_settings() -> None:
    found = estimate("tiny/cir")
    assert found["parameters"] == pytest.approx(0.49e6, rel=0.02)
    assert found["hours"] > 0


def test_the_text_says_what_it_rests_on() -> None:
    recipe = load(Recipe, "cir/8b").value
    said = plan.text(*plan.of_rl(recipe, gpu="h100"))
    assert "614,400" in said
    assert "Assumed, not measured:" in said
    assert "Training alone does not fit this GPU" in said
    assert "sample from a server on GPUs of its own" in plan.text(*plan.of_rl(recipe, gpu="h200"))


@pytest.mark.parametrize(
    ("name", "overrides", "gpu", "told"),
    [
        ("tiny/micro", ["rl=null"], "h100", "no section rl"),
        ("tiny/micro", [], "abacus", "--gpu abacus: not known; known: h200"),
        ("thinc/4b/rl", ["name=mine"], "h100", "rl.model: its size can't be told"),
    ],
)
def test_mistakes(name: str, overrides: list[str], gpu: str, told: str) -> None:
    with pytest.raises(RecipeError, match=told):
        estimate(name, *overrides, gpu=gpu)
