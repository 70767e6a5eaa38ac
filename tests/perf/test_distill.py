"""The speed script distills a few problems end to end; its figures are judged on an idle machine, not here."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import pytest

PERF = Path(__file__).parents[2] / "perf"


def test_everything_is_distilled_measured_and_written_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(PERF)
    monkeypatch.setattr(
        sys, "argv", ["distill.py", "--problems", "120", "--live", "4", "--out", str(tmp_path / "found.json")]
    )
    importlib.import_module("distill").main()
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["problems"] == 120
    rates = ("problems_per_s", "interpreter_alone_per_s", "filters_per_s", "mib_at_a_quarter", "mib_at_the_end")
    assert all(found[name] > 0 for name in rates)
