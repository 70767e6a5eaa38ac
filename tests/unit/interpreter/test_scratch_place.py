"""A scratch folder mounted over Python's own packages would hide them: an environment below /tmp gets it elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from thincode.interpreter import _filesystem


@pytest.mark.parametrize(
    ("folders", "place"),
    [
        (["/usr/lib", "/opt/venv/lib/python3.11/site-packages"], "/tmp"),
        (["/usr/lib", "/tmp/venv/lib/python3.11/site-packages"], "/scratch"),
        (["/tmpfs/lib"], "/tmp"),
    ],
)
def test_scratch_hides_no_package(monkeypatch: pytest.MonkeyPatch, folders: list[str], place: str) -> None:
    monkeypatch.setattr(_filesystem, "readable_folders", lambda: [Path(folder) for folder in folders])
    assert _filesystem.scratch_place() == place
