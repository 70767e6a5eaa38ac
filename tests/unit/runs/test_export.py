"""What is exported says what the records say, in every shape and kind of file."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chat_tokenizers import qwen_like
from thincode import _jsonl, atomic
from thincode.cli import main
from thincode.errors import DataError, RecipeError
from thincode.grading import records
from thincode.runs import data, export, sieve
from thincode.runs.recipe import Recipe
from thincode.runs.sft import row as sft_row
from thincode.settings import kind, load, write_yaml
from thincode.trajectory import Trajectory
from thincode.trajectory.formats import build
from thincode.trajectory.published import trajectory_of
from thincode.trajectory.store import Store
from thincode.trajectory.tokenizer import Tokenizer
from unit.evaluation.build import row

THINC = build(kind("thincode.trajectory.formats", "thinc"))
FILES = ["out.jsonl", "out.json", pytest.param("out.parquet", marks=pytest.mark.train)]
TEXTS = {
    "six": "Multiply.\n```python\n6 * 7\n```\n```output\n42\n```\nIt is \\boxed{42}.",
    "odd": "Fail é\u2028 first.\n```python\r\n1/0\r\n```\n```output\nZeroDivisionError: x\n```\n\\boxed{0}",
}


def rows_of(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".parquet":
        from pyarrow import parquet

        return list(parquet.read_table(path).to_pylist())
    if path.suffix == ".json":
        return list(json.loads(path.read_text(encoding="utf-8")))
    return [line for _, line in _jsonl.read(path)]


def trajectories() -> list[Trajectory]:
    return [
        trajectory_of({"id": name, "problem": f"{name}?", "text": text}, format=THINC) for name, text in TEXTS.items()
    ]


@pytest.fixture
def distilled(tmp_path: Path) -> Path:
    """A distillation that kept two of three."""
    folder = tmp_path / "run"
    with Store(folder) as store:
        for number, trajectory in enumerate([*trajectories(), row("dropped", "no").trajectory]):
            graded = replace(row("p", answer="1", correct=number < 2), trajectory=trajectory)
            store.append(trajectory, records.annotations(graded))
        lines = [{"key": key, "keep": key[2] != "dropped", "reason": "kept"} for key in sorted(store.keys())]
    atomic.write_text(folder / sieve.VERDICTS, "".join(json.dumps(line) + "\n" for line in lines))
    atomic.write_text(folder / "recipe.resolved.yaml", write_yaml(load(Recipe, "tiny/micro").resolved))
    return folder


@pytest.fixture
def student(tmp_path: Path) -> Path:
    Tokenizer.train(list(TEXTS.values()) * 3, vocab_size=300, markers=THINC.markers).save(tmp_path / "student")
    return tmp_path / "student"


@pytest.mark.parametrize("file", FILES)
def test_messages_read_back_as_the_records(distilled: Path, tmp_path: Path, file: str) -> None:
    assert export.run(distilled, to=export.To.MESSAGES, out=tmp_path / file) == 2
    rows = list(rows_of(tmp_path / file))
    again = [trajectory_of({**line, "id": line["id"].removesuffix("#0")}, format=THINC) for line in rows]
    assert [(t.address.problem, t.segments, t.answer) for t in again] == [
        (t.address.problem, t.segments, t.answer) for t in trajectories()
    ]
    assert [line["answer"] for line in rows] == ["1", "1"]
    assert [[turn["role"] for turn in line["messages"]] for line in rows] == [["user", "assistant"]] * 2


@pytest.mark.parametrize("file", FILES)
def test_ids_are_what_sft_trains(distilled: Path, student: Path, tmp_path: Path, file: str) -> None:
    words = Tokenizer.load(student)
    format = build(load(Recipe, "tiny/micro").value.format)
    for train_outputs in (False, True):
        export.run(distilled, to=export.To.IDS, out=tmp_path / file, tokenizer=student, train_outputs=train_outputs)
        rows = list(rows_of(tmp_path / file))
        for line, trajectory in zip(rows, trajectories(), strict=True):
            ids, mask = sft_row(trajectory, format, words, train_outputs=train_outputs)
            assert line["input_ids"] == ids.tolist()
            assert line["labels"] == np.where(mask, ids, -100).tolist()
            assert ("42" in words.decode([t for t in line["labels"] if t >= 0]).split("```")[0]) is False


@pytest.mark.parametrize("file", FILES)
def test_text_is_prompt_and_trajectory(distilled: Path, student: Path, tmp_path: Path, file: str) -> None:
    export.run(distilled, to=export.To.TEXT, out=tmp_path / file, tokenizer=student, all_records=True)
    texts = [line["text"] for line in rows_of(tmp_path / file)]
    assert len(texts) == 3
    assert texts[0] == f"<|user|>six?<|assistant|>{TEXTS['six']}"
    export.run(distilled, to=export.To.TEXT, out=tmp_path / file)
    assert [line["text"] for line in rows_of(tmp_path / file)][1] == f"odd?\n\n{TEXTS['odd']}"


@pytest.mark.train
@pytest.mark.parametrize("file", ["out.jsonl", "out.json", "out.parquet"])
def test_the_loader_that_trl_and_others_use_reads_messages(distilled: Path, tmp_path: Path, file: str) -> None:
    from datasets import load_dataset

    export.run(distilled, to=export.To.MESSAGES, out=tmp_path / file)
    loader = "parquet" if file.endswith("parquet") else "json"
    found = load_dataset(loader, data_files=str(tmp_path / file), split="train", cache_dir=str(tmp_path / "cache"))
    assert [line["messages"][1]["content"] for line in found] == list(TEXTS.values())


def test_what_can_not_be_exported_is_said(distilled: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no records there"):
        export.run(tmp_path, to=export.To.TEXT, out=tmp_path / "a.jsonl")
    with pytest.raises(RecipeError, match=r"Name the student's folder with --model"):
        export.run(distilled, to=export.To.IDS, out=tmp_path / "a.jsonl")
    with pytest.raises(RecipeError, match=r"a file ends in \.jsonl, \.json or \.parquet"):
        export.run(distilled, to=export.To.TEXT, out=tmp_path / "a.csv")


# --- looking ---------------------------------------------------------------------------------------------------------


def test_stats_count_what_is_there(distilled: Path) -> None:
    found = data.stats(list(data.items(distilled, format=THINC)))
    assert {
        name: found[name] for name in ("trajectories", "problems", "answered", "correct", "blocks", "verdicts")
    } == {
        "trajectories": 3,
        "problems": 3,
        "answered": 2,
        "correct": 2,
        "blocks": {"ok": 1, "error": 1},
        "verdicts": {"kept": 3},
    }
    assert found["quantiles"]["blocks"] == [0.1, 1.0, 1.0, 1.0]


def test_diff_names_what_changed(distilled: Path, tmp_path: Path) -> None:
    one = list(data.items(distilled, format=THINC))
    changed = replace(one[0], verdict="duplicate", trajectory=replace(one[0].trajectory, question="seven?"))
    found = data.diff(one, [changed, one[1]])
    assert found == {
        "only in the first": ["evaluate/0/dropped#0"],
        "only in the second": [],
        "in both": 2,
        "different": {"question": ["published/0/six#0"], "verdict": ["published/0/six#0"]},
    }


def test_the_verbs_print(distilled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def say(*words: object) -> str:
        assert main([str(word) for word in words]) == 0
        return capsys.readouterr().out

    assert say("export", distilled, tmp_path / "m.jsonl") == f"2 rows in {tmp_path / 'm.jsonl'}\n"
    shown = say("data", "head", distilled, "-n", 1)
    assert shown.startswith(
        "=== published/0/six#0: thinc, finished, answer 42, right, kept\nsix?\n--- plan\nMultiply.\n"
    )
    assert "--- code (ok)\n6 * 7\n--- output\n42\n" in shown
    assert "trajectories 3" in say("data", "stats", distilled)
    assert json.loads(say("data", "stats", distilled, "--json"))["problems"] == 3
    assert say("data", "diff", distilled, distilled).startswith("        3  in both\n")
    (tmp_path / "foreign.jsonl").write_text(json.dumps({"text": TEXTS["six"]}) + "\n")
    assert "--- code (ok)" in say("data", "head", tmp_path / "foreign.jsonl", "--format", "tora")
    assert main(["data", "diff", str(distilled)]) == 2


# --- turns of a tool --------------------------------------------------------------------------------------------------

CALLS = {
    "aster": ("code_interpreter", "42"),
    "rstar2": ("jupyter_code", "Tool call success\nstdout: 42\nexecution time: 0.01s"),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("file", FILES)
def test_turns_of_a_tool_are_messages_and_read_back(tmp_path: Path, file: str, name: str) -> None:
    tool, printed = CALLS[name]
    format = build(kind("thincode.trajectory.formats", name))
    call = f'<tool_call>\n{{"name": "{tool}", "arguments": {{"code": "6 * 7"}}}}\n</tool_call>'
    turns = [
        {"role": "assistant", "content": f"Multiply.\n{call}"},
        {"role": "tool", "content": printed},
        {"role": "assistant", "content": call},
        {"role": "tool", "content": "<notice>\nNo calls are left.\n</notice>"},
        {"role": "assistant", "content": "\\boxed{42}"},
    ]
    told = trajectory_of({"id": "p", "problem": "6 * 7?", "messages": turns}, format=format)
    with Store(tmp_path / "run") as store:
        store.append(told, records.annotations(replace(row("p", answer="42", correct=True), trajectory=told)))
    recipe = load(Recipe, "tiny/micro", overrides=[f"format={name}"]).resolved
    atomic.write_text(tmp_path / "run" / "recipe.resolved.yaml", write_yaml(recipe))
    export.run(tmp_path / "run", to=export.To.MESSAGES, out=tmp_path / file, all_records=True)
    (line,) = rows_of(tmp_path / file)
    assert line["messages"] == [{"role": "user", "content": format.user_message("6 * 7?")}, *turns]
    assert [schema["function"]["name"] for schema in line["tools"]] == [tool]
    again = trajectory_of({**line, "problem": "6 * 7?"}, format=format)
    assert again.segments == told.segments
    assert [segment.content for segment in told.outputs] == ["42"]
    qwen_like("qwen3").save(tmp_path / "student")
    export.run(tmp_path / "run", to=export.To.TEXT, out=tmp_path / "t.jsonl", tokenizer=tmp_path / "student")
    ids = tmp_path / "i.jsonl"
    export.run(tmp_path / "run", to=export.To.IDS, out=ids, tokenizer=tmp_path / "student")
    words = Tokenizer.load(tmp_path / "student")
    (text,), (held,) = rows_of(tmp_path / "t.jsonl"), rows_of(ids)
    assert words.decode(held["input_ids"]) == text["text"] + "<|im_end|>"
    said = words.decode([token for token in held["labels"] if token != export.UNTRAINED])
    assert said == "<|im_end|>".join([turn["content"] for turn in turns if turn["role"] == "assistant"] + [""])
