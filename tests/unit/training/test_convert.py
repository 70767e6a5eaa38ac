"""A GGUF file becomes a model folder once; what can't be read is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from thincode.errors import ModelError
from thincode.training import models
from thincode.trajectory.tokenizer import Tokenizer
from training_cases import tiny_model

pytestmark = pytest.mark.train
pytest.importorskip("gguf", reason="needs gguf: pip install 'thincode[train]'")


def test_mistakes_are_named(tmp_path: Path) -> None:
    (tmp_path / "broken.gguf").write_bytes(b"GGUF and then nothing")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with pytest.raises(ModelError, match=r"no such file; name the \.gguf file"):
        models.convert(tmp_path / "none.gguf", tmp_path / "out")
    with pytest.raises(ModelError, match="exists already; name another folder"):
        models.convert(tmp_path / "broken.gguf", tmp_path / "full")
    with pytest.raises(ModelError, match=r"broken.gguf: can't be read as a GGUF model"):
        models.convert(tmp_path / "broken.gguf", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_tokenizer_that_does_not_fit_is_named(tmp_path: Path) -> None:
    tokenizer = Tokenizer.train(["x"], vocab_size=300)
    with pytest.raises(ModelError, match=r"ids, the model 64 embeddings"):
        models.check_fits(tiny_model(), tokenizer, tmp_path)


@pytest.mark.slow
def test_smollm2_is_the_same_model_after_conversion(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """With `--data DIR` where DIR holds smollm2-135m.gguf."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    data: Path = request.getfixturevalue("data_dir")
    file = data / "smollm2-135m.gguf"
    if not file.exists():
        pytest.skip(f"needs {file}")
    folder = models.convert(file, tmp_path / "smollm2")
    words, model = AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder)
    asked = words.apply_chat_template(
        [{"role": "user", "content": "What is the capital of France?"}],
        add_generation_prompt=True,
        return_tensors="pt",
        return_dict=True,
    )
    with torch.no_grad():
        said = model.generate(**asked, max_new_tokens=12, do_sample=False)
    assert "Paris" in words.decode(said[0, asked["input_ids"].shape[1] :])
    assert Tokenizer.load(folder).render_chat([{"role": "user", "content": "Hi"}]) == words.apply_chat_template(
        [{"role": "user", "content": "Hi"}], add_generation_prompt=True, tokenize=False
    )
