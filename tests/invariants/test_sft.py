"""SFT as people run it: LoRA, processes, layouts, mixtures, validation; on a tiny model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from invariants.test_training import KilledError, examples, latest, train_sft
from thincode.errors import ModelError
from thincode.training.batch import Layout
from thincode.training.lora import LoraSettings
from training_cases import difference, tiny_model

pytestmark = pytest.mark.train
LORA = LoraSettings(rank=4, dropout=0.1)


@pytest.fixture
def base(tmp_path: Path) -> Path:
    from thincode.training import models

    models.save(tiny_model(), None, tmp_path / "base")
    return tmp_path / "base"


def with_lora(base: Path, **more: Any) -> Any:
    from thincode.training import lora, models

    return lora.add(models.load(str(base)), replace(LORA, **more), seed=3)


# --- LoRA ------------------------------------------------------------------------------------------------------------


def test_lora_trains_additions_alone_and_resumes_bit_by_bit(base: Path, tmp_path: Path) -> None:
    whole = with_lora(base)
    before = {name: value.clone() for name, value in whole.named_parameters()}
    records, _ = train_sft(whole, tmp_path / "whole")
    moved = {name for name, value in whole.named_parameters() if not value.equal(before[name])}
    assert moved
    assert all("lora_" in name for name in moved)
    names = {path.name for path in latest(tmp_path / "whole").path.iterdir()}
    assert "adapter_model.safetensors" in names
    assert "model.safetensors" not in names

    def die(record: dict[str, float]) -> None:
        if record["step"] == 4:
            raise KilledError

    with pytest.raises(KilledError):
        train_sft(with_lora(base), tmp_path / "cut", on_log=die)
    resumed = with_lora(base)
    again, _ = train_sft(resumed, tmp_path / "cut", resume_from=latest(tmp_path / "cut"))
    assert difference(whole, resumed) == 0.0
    assert again == records[3:]
    finished = with_lora(base)
    train_sft(finished, tmp_path / "cut", resume_from=latest(tmp_path / "cut"))
    assert difference(whole, finished) == 0.0


def test_a_merged_model_says_what_its_adapter_says(base: Path, tmp_path: Path) -> None:
    import torch

    from thincode.training import lora, models

    model = with_lora(base)
    train_sft(model, tmp_path / "run", max_steps=3, activation_checkpointing=True)
    ids = torch.arange(12)[None]
    model.eval()
    said = model(ids).logits
    merged = lora.merged(model)
    models.save(merged, None, tmp_path / "merged")
    plain = models.load(str(tmp_path / "merged"))
    assert type(plain) is type(tiny_model())
    assert (plain.eval()(ids).logits - said).abs().max() < 1e-5
    adapter = models.load(str(latest(tmp_path / "run").path))
    assert (adapter.eval()(ids).logits - said).abs().max() < 1e-5


def test_lora_names_targets_that_are_none(base: Path) -> None:
    with pytest.raises(ModelError, match=r"lora.targets.*q_projection"):
        with_lora(base, targets=("q_projection",))


# --- what must not matter --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lora", [False, True], ids=["full", "lora"])
def test_padding_free_is_padded_within_1e_5(base: Path, tmp_path: Path, lora: bool) -> None:
    """Packed rows see nothing of each other: same losses and gradient norms as with one row a line."""
    found = []
    for layout in (Layout.PADDED, Layout.PACKED):
        model = with_lora(base, dropout=0.0) if lora else tiny_model()
        records, _ = train_sft(model, tmp_path / layout.value, max_steps=4, layout=layout, micro_tokens=64)
        found.append([(record["loss"], record["grad_norm"]) for record in records])
    assert np.abs(np.array(found[0]) - np.array(found[1])).max() < 1e-5


def test_activation_checkpointing_changes_memory_and_nothing_else(tmp_path: Path) -> None:
    one, other = tiny_model(), tiny_model()
    records, _ = train_sft(one, tmp_path / "one", max_steps=3)
    again, _ = train_sft(other, tmp_path / "other", max_steps=3, activation_checkpointing=True)
    assert [record["loss"] for record in again] == pytest.approx([record["loss"] for record in records], abs=1e-6)
    assert difference(one, other) < 1e-6


def test_held_out_loss_is_the_loss_of_one_large_batch(tmp_path: Path) -> None:
    from thincode.training.on_accelerate.sft import SftSettings, mean_loss

    model = tiny_model()
    whole = mean_loss(model, examples(), settings=SftSettings())
    in_parts = mean_loss(model, examples(), settings=SftSettings(micro_tokens=40))
    records, _ = train_sft(model, tmp_path, max_steps=1, batch_examples=100)
    assert whole == pytest.approx(in_parts, abs=1e-6) == pytest.approx(records[0]["loss"], abs=1e-5)


@pytest.mark.slow
def test_two_processes_have_the_loss_and_the_gradient_norm_of_one(base: Path, tmp_path: Path) -> None:
    """Through torchrun and gloo; the world size is asserted, because a launcher may start one process in silence."""
    one: dict[str, Any] = {}
    for mode in ("full", "lora"):
        model = with_lora(base, dropout=0.0) if mode == "lora" else tiny_model()
        records, _ = train_sft(model, tmp_path / f"one-{mode}", max_steps=3, micro_tokens=64)
        one[mode] = [(record["loss"], record["grad_norm"], record["tokens"]) for record in records]
    script = Path(__file__).with_name("two_sft_processes.py")
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "ACCELERATE_USE_CPU": "true",
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2", str(script)]
    done = subprocess.run(
        [*command, str(base), str(tmp_path / "two")],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    result = json.loads((tmp_path / "two" / "result.json").read_text())
    assert result["world_size"] == 2
    assert result["backend"] == "gloo"
    for mode, records in result["records"].items():
        assert np.array(records) == pytest.approx(np.array(one[mode]), rel=1e-4, abs=1e-6), mode
