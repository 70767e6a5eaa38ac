"""An evaluation becomes a log of Inspect; the real package reads it where it is installed."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from thincode.cli import main
from thincode.grading import records
from thincode.trajectory.store import Store
from unit.evaluation.build import row

ROWS = [
    row("a", "plan | 1/0 !> ZeroDivisionError: x | f() -> 42 | so 42", answer="42", gold="42", correct=True, sample=0),
    row("a", "all in words", answer="7", gold="42", sample=1, tags={"family": "gcd"}),
    row("b", "plan | loop #> stopped", gold="9", sample=0),
    row("b", "", gold="9", sample=1),
]
PYTHON = os.environ.get("THINCODE_INSPECT_PYTHON", sys.executable)
"""A Python that has inspect_ai: its packages and those for training may not go together."""


@pytest.fixture
def log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    with Store(tmp_path, keep_ids=False) as store:
        for one in ROWS:
            store.append(one.trajectory, records.annotations(one))
    assert main(["inspect", str(tmp_path)]) == 0
    return Path(capsys.readouterr().out.strip())


def test_blocks_are_tool_calls_and_grades_are_scores(log: Path) -> None:
    found = json.loads(log.read_text(encoding="utf-8"))
    first, words, stopped, empty = found["samples"]
    assert [message["role"] for message in first["messages"]] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
        "assistant",
    ]
    assert first["messages"][1]["tool_calls"][0]["arguments"] == {"code": "1/0"}
    assert first["messages"][2]["error"] == {"type": "unknown", "message": "ZeroDivisionError"}
    assert "error" not in first["messages"][4]
    assert [s["scores"]["thincode"]["value"] for s in (first, words, stopped, empty)] == ["C", "I", "I", "I"]
    assert stopped["messages"][2]["error"]["type"] == "timeout"
    assert words["metadata"]["family"] == "gcd"
    assert found["results"]["scores"][0]["metrics"]["accuracy"]["value"] == 0.25


def test_inspect_itself_reads_the_log(log: Path) -> None:
    if sys.executable == PYTHON and importlib.util.find_spec("inspect_ai") is None:
        pytest.skip("needs inspect_ai: name a Python that has it in THINCODE_INSPECT_PYTHON")
    program = (
        "import json, sys; from inspect_ai.log import read_eval_log; log = read_eval_log(sys.argv[1]);"
        "print(json.dumps([log.status, log.eval.model, log.eval.config.epochs, log.results.scores[0].metrics['accuracy'].value,"
        "[[s.id, s.epoch, s.scores['thincode'].value, len(s.messages)] for s in log.samples]]))"
    )
    done = subprocess.run([PYTHON, "-c", program, str(log)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    expected: list[Any] = [["a", 1, "C", 6], ["a", 2, "I", 2], ["b", 1, "I", 3], ["b", 2, "I", 1]]
    assert json.loads(done.stdout) == ["success", "thincode/unknown", 2, 0.25, expected]


def test_a_log_needs_its_name(log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(tmp_path), "--out", str(tmp_path / "x.txt")]) == 2
    assert "end the name with .json" in capsys.readouterr().err
