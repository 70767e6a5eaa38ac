"""Folders that plain transformers loads, and folders that it can't."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from thincode.errors import ModelError
from thincode.training.models import ModelSettings, load, save
from thincode.trajectory.tokenizer import Tokenizer

pytestmark = pytest.mark.train


def small_tokenizer() -> Tokenizer:
    return Tokenizer.train(["What is 17 + 5? 22"] * 4, vocab_size=270, markers=["```python\n"])


def test_the_default_model_is_half_a_million_parameters() -> None:
    from thincode.training.models import build

    model = build(ModelSettings(), vocabulary=512, eos_id=1, pad_id=0, seed=0)
    assert sum(parameter.numel() for parameter in model.parameters()) == 492_288


def test_building_draws_from_the_seed_and_leaves_the_global_state() -> None:
    import torch

    from training_cases import difference, tiny_model

    torch.manual_seed(3)
    before = torch.get_rng_state()
    one = tiny_model(seed=1)
    assert torch.equal(before, torch.get_rng_state())
    assert difference(one, tiny_model(seed=1)) == 0.0
    assert difference(one, tiny_model(seed=2)) > 0.0


def test_a_saved_model_loads_here_and_in_plain_transformers(tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from training_cases import difference, tiny_model

    model, tokenizer = tiny_model(), small_tokenizer()
    for each in (model, tiny_model(seed=9), model):  # a folder that is there is replaced
        save(each, tokenizer, tmp_path / "model")
    assert difference(model, load(str(tmp_path / "model"))) == 0.0
    assert difference(model, AutoModelForCausalLM.from_pretrained(tmp_path / "model")) == 0.0
    plain = AutoTokenizer.from_pretrained(tmp_path / "model")
    messages = [{"role": "user", "content": "17 + 5?"}]
    rendered = plain.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    assert "17 + 5?" in rendered
    assert plain("17 + 5?").input_ids == tokenizer.encode("17 + 5?", special=False)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_weights_are_readable_to_whom_the_folder_is(tmp_path: Path) -> None:
    from training_cases import tiny_model

    for mask, mode in ((0o022, 0o644), (0o077, 0o600)):
        before = os.umask(mask)
        try:
            save(tiny_model(), None, tmp_path / f"{mode:o}")
        finally:
            os.umask(before)
        assert {path.stat().st_mode & 0o777 for path in (tmp_path / f"{mode:o}").iterdir()} == {mode}


def test_a_save_that_fails_leaves_the_old_folder(tmp_path: Path) -> None:
    from training_cases import difference, tiny_model

    class Full:
        def save(self, folder: Path) -> None:
            raise OSError(28, "No space left on device")

    model = tiny_model()
    save(model, None, tmp_path / "model")
    with pytest.raises(OSError, match="No space"):
        save(tiny_model(seed=2), Full(), tmp_path / "model")
    assert difference(model, load(str(tmp_path / "model"))) == 0.0
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_folder_without_configuration_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"no config\.json; give the folder"):
        load(str(tmp_path))


def test_a_folder_without_weights_is_named(tmp_path: Path) -> None:
    from training_cases import tiny_model

    save(tiny_model(), None, tmp_path / "model")
    (tmp_path / "model" / "model.safetensors").unlink()
    with pytest.raises(ModelError, match=r"no weights .* fetch it again"):
        load(str(tmp_path / "model"))


def test_a_path_that_is_no_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="is no folder"):
        load(str(tmp_path / "missing" / "deep"))
