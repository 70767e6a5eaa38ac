"""Real benchmarks through the real command: gold answers score 100 %, and a tiny model gets through without a lost block."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from thincode.cli import main
from thincode.runlog import read_log

FILES = [
    ("aime2024.jsonl", 30),
    ("aime2025.jsonl", 30),
    ("amc23.jsonl", 40),
    ("hmmt_feb_2025.jsonl", 30),
    ("math500.jsonl", 500),
    ("olymmath_en_easy.jsonl", 100),
    ("gsm8k_test.jsonl", 200),
    ("dapo_math_2k.jsonl", 200),
]

CONTEXT = "evaluate.budget.context_tokens=1500"
"""Room for the longest question of these files as 512 tokens spell it (1,216), and an end to models that never stop."""


def evaluate(path: Path, out: Path, *words: str, limit: int) -> dict[str, float | None]:
    """The scorecard's values by name."""
    problems = f"evaluate.problems={{kind: jsonl, path: {json.dumps(str(path))}, limit: {limit}}}"
    assert main(["eval", "tiny/benchmarks", problems, *words, "--quiet", "--out", str(out)]) == 0
    card = json.loads((out / "scorecard.json").read_text(encoding="utf-8"))
    return {one["name"]: one["value"] for one in card["estimates"]}


def statuses(out: Path) -> Counter[str]:
    """How often blocks and trajectories ended in each way."""
    found: Counter[str] = Counter()
    for record in read_log(out / "trajectories.jsonl"):
        found[record["end"]] += 1
        found.update(segment["block"]["status"] for segment in record["segments"] if "block" in segment)
    return found


@pytest.mark.parametrize(("name", "count"), FILES, ids=[name for name, _ in FILES])
def test_gold_answers_score_everything_and_lose_no_block(name: str, count: int, data_dir: Path, tmp_path: Path) -> None:
    values = evaluate(data_dir / name, tmp_path / "out", "evaluate.engine=scripted", limit=count)
    assert values["avg@1"] == 1.0
    assert statuses(tmp_path / "out") == {"finished": count, "ok": count}


MODEL = [("aime2024.jsonl", 30), ("hmmt_feb_2025.jsonl", 30), ("gsm8k_test.jsonl", 200)]


@pytest.mark.train
@pytest.mark.parametrize(
    ("name", "count"),
    [("aime2024.jsonl", 4), *(pytest.param(*whole, marks=pytest.mark.slow) for whole in MODEL)],
)
def test_a_tiny_model_gets_through_and_is_measured(
    name: str, count: int, data_dir: Path, small_run: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    values = evaluate(data_dir / name, out, f"evaluate.model={small_run / 'sft/model'}", CONTEXT, limit=count)
    assert values["avg@1"] is not None
    ends = statuses(out)
    assert ends["lost"] == 0
    assert sum(1 for _ in read_log(out / "trajectories.jsonl")) == count
