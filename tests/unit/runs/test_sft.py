"""SFT as a run: mixtures of distillations, LoRA, validation while training, and a model that plain transformers loads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from thincode.errors import DataError, ModelError, RecipeError
from thincode.runlog import Progress, read_log
from thincode.runs.pipeline import Console, Pipeline
from thincode.runs.recipe import Recipe
from thincode.runs.workshop import Workshop
from thincode.settings import load

pytestmark = pytest.mark.train

PROBLEMS = "{kind: drills, families: [gcd], split: train, count: 12, seed: 1}"
SHORT = ["threads=1", f"distill.problems={PROBLEMS}", "distill.filters=[correct]", "sft.train.max_tokens=4000"]


def quiet(name: str, *, total: int | None, unit: str, done: int = 0) -> Progress:
    return Progress(name, total=total, unit=unit, done=done, quiet=True)


def step(verb: str, out: Path, *overrides: str, **more: Any) -> Any:
    """One step of tiny/micro in a folder of its own."""
    resolved = load(Recipe, "tiny/micro", [*SHORT, *overrides])
    said: list[str] = []
    with Workshop(resolved.value) as shop:
        work = Pipeline(resolved, out=out, shop=shop, console=Console(progress=quiet, say=said.append))
        return getattr(work, verb)(out, **more)


@pytest.fixture(scope="module")
def distilled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("distilled")
    for name in ("thinc", "tir"):
        step("distill", root / name, f"format={name}")
    return {name: root / name for name in ("thinc", "tir")}


def test_formats_are_mixed_by_weight_and_the_best_model_is_kept(distilled: dict[str, Path], tmp_path: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    mix = json.dumps([{"data": str(distilled["thinc"]), "weight": 2.0}, {"data": str(distilled["tir"])}])
    held_out = "{kind: drills, families: [gcd], split: heldout, count: 2, seed: 3}"
    model = step(
        "sft",
        tmp_path / "sft",
        f"sft.mix={mix}",
        "sft.train.max_tokens=null",
        "sft.train.epochs=2",
        "sft.train.batch_examples=8",
        "sft.train.validate_every=4",
        f"sft.validation={{holdout: 4, problems: {held_out}, budget: {{context_tokens: 160}}}}",
        data=tmp_path,
    )
    lines = list(read_log(tmp_path / "sft" / "metrics.jsonl"))
    measured = [line for line in lines if "validation" in line]
    # 12 and 12 trajectories, less 4 held out; between 8 and 12 of ThinC's come twice in each of two epochs.
    steps = measured[-1]["step"]
    assert 7 <= steps <= 8
    assert [line["step"] for line in measured] == sorted({4, steps})
    assert all({"loss", "accuracy", "n"} <= set(line["validation"]) for line in measured)
    assert measured[-1]["validation"]["loss"] < measured[0]["validation"]["loss"]
    for folder in (model, tmp_path / "sft" / "best"):
        loaded = AutoModelForCausalLM.from_pretrained(folder)
        tokenizer = AutoTokenizer.from_pretrained(folder)
        prompt = tokenizer.apply_chat_template(
            [{"role": "user", "content": "gcd?"}], add_generation_prompt=True, return_tensors="pt", return_dict=True
        )
        with torch.no_grad():
            assert torch.isfinite(loaded(**prompt).logits).all()


def test_lora_leaves_a_merged_model(distilled: dict[str, Path], tmp_path: Path) -> None:
    names = {
        path.name for path in step("sft", tmp_path / "sft", "sft.lora={rank: 4}", data=distilled["thinc"]).iterdir()
    }
    assert "model.safetensors" in names
    assert not any("adapter" in name for name in names)
    assert "chat_template.jinja" in names


def test_a_mistake_in_the_data_is_named(distilled: dict[str, Path], tmp_path: Path) -> None:
    both = f"sft.mix=[{{data: {distilled['tir']}}}]"
    with pytest.raises(RecipeError, match=r"sft.mix: data is set too"):
        step("sft", tmp_path / "a", both, f"sft.data={distilled['thinc']}", data=distilled["thinc"])
    with pytest.raises(RecipeError, match=r"sft.validation: goes with train.validate_every"):
        step("sft", tmp_path / "b", "sft.validation={holdout: 2}", data=distilled["thinc"])
    every = "sft.train.validate_every=1"
    with pytest.raises(DataError, match="12 of 12 trajectories leave none to train on"):
        step("sft", tmp_path / "c", "sft.validation={holdout: 12}", every, data=distilled["thinc"])


def test_a_tokenizer_of_another_model_is_refused(distilled: dict[str, Path], tmp_path: Path) -> None:
    from thincode.training import models
    from thincode.trajectory.tokenizer import Tokenizer

    settings = models.ModelSettings(layers=1, hidden=8, heads=1, head_dim=8, kv_heads=1, intermediate=8)
    tokenizer = Tokenizer.train(["x"], vocab_size=300)
    small = models.build(settings, vocabulary=200, eos_id=1, pad_id=0, seed=0)
    models.save(small, tokenizer, tmp_path / "other")
    with pytest.raises(ModelError, match=r"has 26\d ids, the model 200 embeddings.*copy tokenizer.json"):
        step("sft", tmp_path / "sft", f"sft.model.path={tmp_path / 'other'}", data=distilled["thinc"])
    fitting = models.build(settings, vocabulary=300, eos_id=1, pad_id=0, seed=0)
    models.save(fitting, tokenizer, tmp_path / "mute")
    (tmp_path / "mute" / "chat_template.jinja").unlink()
    with pytest.raises(ModelError, match=r"no chat template.*copy it from the instruct version"):
        step("sft", tmp_path / "sft2", f"sft.model.path={tmp_path / 'mute'}", data=distilled["thinc"])
