"""Checkpoints: whole, verified, and the one before when the newest is damaged."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from thincode.errors import RunFolderError
from thincode.training.checkpoint import Checkpoint, finish, latest, seal


def make(folder: Path, step: int, text: str = "weights") -> Path:
    written = folder / ".writing" / "checkpoint"
    (written / "inner").mkdir(parents=True)
    (written / "model.safetensors").write_text(text)
    (written / "inner" / "more.bin").write_text("more")
    return seal(written, folder, step=step, state={"offset": step * 10})


def read(folder: Path) -> tuple[Checkpoint | None, list[str]]:
    warnings: list[str] = []
    return latest(folder, on_warning=warnings.append), warnings


def test_no_checkpoint_is_none(tmp_path: Path) -> None:
    assert read(tmp_path / "missing") == (None, [])


def test_the_last_two_are_kept(tmp_path: Path) -> None:
    for step in (2, 4, 6):
        make(tmp_path, step)
    assert sorted(path.name for path in tmp_path.glob("step-*")) == ["step-000004", "step-000006"]
    found, warnings = read(tmp_path)
    assert found == Checkpoint(tmp_path / "step-000006", 6, {"offset": 60}, finished=False)
    assert warnings == []


def damage_weights(path: Path) -> None:
    (path / "model.safetensors").write_text("weighty")


def cut_weights(path: Path) -> None:
    (path / "model.safetensors").write_text("")


def lose_inner(path: Path) -> None:
    (path / "inner" / "more.bin").unlink()


def lose_manifest(path: Path) -> None:
    (path / "manifest.json").unlink()


def cut_manifest(path: Path) -> None:
    (path / "manifest.json").write_text('{"format": 1, "fi')


DAMAGE = [
    (damage_weights, "model.safetensors is damaged"),
    (cut_weights, "model.safetensors is damaged"),
    (lose_inner, "inner/more.bin is missing"),
    (lose_manifest, "no manifest.json"),
    (cut_manifest, "manifest.json is damaged"),
]


@pytest.mark.parametrize(("harm", "reason"), DAMAGE)
def test_a_damaged_newest_one_is_passed_over_with_a_word(tmp_path: Path, harm: object, reason: str) -> None:
    make(tmp_path, 2)
    harm(make(tmp_path, 4))  # type: ignore[operator]
    found, warnings = read(tmp_path)
    assert found is not None
    assert found.step == 2
    assert len(warnings) == 1
    assert "step-000004" in warnings[0]
    assert reason in warnings[0]


def test_nothing_readable_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    for step in (2, 4):
        lose_manifest(make(tmp_path, step))
    with pytest.raises(RunFolderError, match=r"(?s)step-000004: no manifest.*step-000002.*another --out"):
        read(tmp_path)


def test_a_missing_newest_one_is_noticed(tmp_path: Path) -> None:
    make(tmp_path, 2)
    shutil.rmtree(make(tmp_path, 4))
    found, warnings = read(tmp_path)
    assert found is not None
    assert found.step == 2
    assert len(warnings) == 1
    assert "step-000004: missing, though it was written; going back to the checkpoint before it" in warnings[0]


def test_a_run_that_had_checkpoints_does_not_begin_again_without_a_word(tmp_path: Path) -> None:
    shutil.rmtree(make(tmp_path, 2))
    with pytest.raises(RunFolderError, match=r"(?s)step-000002: missing, though it was written.*another --out"):
        read(tmp_path)


def test_a_newer_format_is_not_passed_over(tmp_path: Path) -> None:
    path = make(tmp_path, 2) / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 99}))
    with pytest.raises(RunFolderError, match="newer thincode"):
        read(tmp_path)


def test_a_step_made_again_replaces_its_checkpoint(tmp_path: Path) -> None:
    make(tmp_path, 2)
    make(tmp_path, 2, text="other")
    assert (tmp_path / "step-000002" / "model.safetensors").read_text() == "other"
    assert [path.name for path in tmp_path.iterdir() if path.is_dir() and path.name != ".writing"] == ["step-000002"]


def test_the_end_of_a_run_is_written_down(tmp_path: Path) -> None:
    finish(make(tmp_path, 2), state={"offset": 21})
    found, _ = read(tmp_path)
    assert found is not None
    assert found.finished
    assert found.state == {"offset": 21}
