"""Published data sets, read from small local files with the published columns."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from thincode.errors import DataError, MissingExtraError, RecipeError
from thincode.problems.language import is_english
from thincode.problems.sources import hub
from thincode.problems.sources._rows import is_positive_integer
from thincode.problems.sources.hub import DATASETS, Keep, Settings

BOTH = (Keep.ENGLISH, Keep.POSITIVE_INTEGER)
DAPO = (
    "Solve the following math problem step by step. The last line of your response should be of the form Answer: "
    "$Answer (without quotes) where $Answer is the answer to the problem.\n\n{}\n\n"
    'Remember to put your answer on its own line after "Answer:".'
)


def verl(question: str, gold: str, **more: Any) -> dict[str, Any]:
    return {
        "data_source": "math",
        "prompt": [{"content": question, "role": "user"}],
        "ability": "MATH",
        "reward_model": {"ground_truth": gold, "style": "rule"},
        "extra_info": {"index": "0"},
        **more,
    }


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    if path.suffix == ".parquet":
        pyarrow = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet").write_table(pyarrow.Table.from_pylist(rows), path)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
@pytest.mark.parametrize(
    ("dataset", "row", "question", "answer"),
    [
        ("dapo_math_17k", verl(DAPO.format("Find 2 + 2."), "4"), "Find 2 + 2.", "4"),
        ("dapo_math_17k_processed", {"prompt": "Find 2 + 2.", "solution": "4"}, "Find 2 + 2.", "4"),
        ("skywork_or1", verl("Find 2 + 2.", '["4"]'), "Find 2 + 2.", "4"),
        ("skywork_or1", verl("Find $x$.", '["\\\\frac{1}{2}"]'), "Find $x$.", "\\frac{1}{2}"),
        (
            "skywork_or1",
            verl("Find 2 + 2. Please reason, and put the answer in \\boxed{}.", "['4']"),
            "Find 2 + 2.",
            "4",
        ),
        (
            "open_math_reasoning",
            {"problem": "Find 2 + 2.", "expected_answer": "4", "problem_type": "has_answer_extracted"},
            "Find 2 + 2.",
            "4",
        ),
        ("still_3", {"question": "Find 2 + 2.", "answer": "4"}, "Find 2 + 2.", "4"),
        ("aime26", {"problem_idx": 1, "problem": "Find 2 + 2.", "answer": 4}, "Find 2 + 2.", "4"),
        ("amc23", {"question": "Find 2 + 2.", "answer": 4.0}, "Find 2 + 2.", "4"),
        ("gsm8k", {"question": "Find it.", "answer": "2+2=<<2+2=4>>4\n#### 1,234"}, "Find it.", "1234"),
        ("math500", {"problem": "Solve.", "answer": "(3, 4)", "subject": "Algebra", "level": 2}, "Solve.", "(3, 4)"),
    ],
)
def test_question_and_answer_are_found_in_the_published_columns(
    tmp_path: Path, suffix: str, dataset: str, row: dict[str, Any], question: str, answer: str
) -> None:
    path = write(tmp_path / f"part.{suffix}", [row])
    (problem,) = hub.load(Settings(dataset=dataset, path=path))
    assert (problem.question, problem.answer) == (question, answer)
    assert problem.id.startswith(f"{dataset}/")
    assert problem.tags["license"] == DATASETS[dataset].license


def test_tags_of_the_data_set_come_along(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", [{"problem": "Solve.", "answer": "7", "subject": "Algebra", "level": 2}])
    (problem,) = hub.load(Settings(dataset="math500", path=path))
    assert (problem.tags["subject"], problem.tags["level"]) == ("Algebra", "2")


def test_repeated_questions_come_once_and_filters_leave_out_the_rest(tmp_path: Path) -> None:
    rows = [
        verl(DAPO.format("Find one."), "1"),
        verl(DAPO.format("Find one."), "1"),
        verl(DAPO.format("求一加一。"), "2"),
        verl(DAPO.format("Find a half."), "\\frac{1}{2}"),
        verl(DAPO.format("Find minus one."), "-1"),
        verl(DAPO.format("Find nothing."), ""),
        verl(DAPO.format("Find three."), "3"),
    ]
    path = write(tmp_path / "a.jsonl", rows)
    table = [((), "Find one.|求一加一。|Find a half.|Find minus one.|Find three."), (BOTH, "Find one.|Find three.")]
    for keep, questions in table:
        problems = hub.load(Settings(dataset="dapo_math_17k", path=path, keep=keep))
        assert "|".join(problem.question for problem in problems) == questions
    (last,) = hub.load(Settings(dataset="dapo_math_17k", path=path, keep=BOTH, first=1, limit=1))
    assert last.question == "Find three."


def test_reading_stops_at_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"problem": "One?", "answer": 1}\nnot JSON\n', encoding="utf-8")
    assert len(hub.load(Settings(dataset="aime24", path=path, limit=1))) == 1
    with pytest.raises(DataError, match=r"a\.jsonl:2: not JSON"):
        hub.load(Settings(dataset="aime24", path=path, limit=2))


def test_only_rows_whose_answer_was_extracted_are_taken(tmp_path: Path) -> None:
    row = {"problem": "Prove it.", "expected_answer": "9", "problem_type": "converted_proof"}
    path = write(tmp_path / "a.jsonl", [row])
    with pytest.raises(DataError, match=r"0 problems of open_math_reasoning are left \(left out: 1 no answer\)"):
        hub.load(Settings(dataset="open_math_reasoning", path=path))


def test_a_folder_is_all_its_files_in_order(tmp_path: Path) -> None:
    for name in ("b", "a"):
        write(tmp_path / f"{name}.jsonl", [{"problem": name, "answer": 1}])
    (tmp_path / "README.md").write_text("not data", encoding="utf-8")
    assert [p.question for p in hub.load(Settings(dataset="aime24", path=tmp_path))] == ["a", "b"]


def test_other_columns_are_named(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", [{"text": "Find 2 + 2.", "answer": "4"}])
    with pytest.raises(DataError, match=r"a.jsonl:1: no column problem or question; the columns are text, answer"):
        hub.load(Settings(dataset="aime24", path=path))


@pytest.mark.parametrize(
    ("name", "told"), [("none.parquet", "no parquet or JSONL file"), ("x.csv", "neither .parquet")]
)
def test_what_is_no_data_file_is_refused(tmp_path: Path, name: str, told: str) -> None:
    (tmp_path / "x.csv").write_text("a,b\n", encoding="utf-8")
    with pytest.raises(DataError, match=told):
        hub.load(Settings(dataset="aime24", path=tmp_path / name))


def test_a_broken_parquet_file_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path = tmp_path / "x.parquet"
    path.write_bytes(b"PAR1 not really")
    with pytest.raises(DataError, match="not a parquet file"):
        hub.load(Settings(dataset="aime24", path=path))


def test_unknown_data_sets_and_splits_of_local_copies_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="'aime42' is not known; known: dapo_math_17k, "):
        hub.load(Settings(dataset="aime42"))
    with pytest.raises(RecipeError, match="a local copy has neither"):
        hub.load(Settings(dataset="aime24", path=tmp_path, split="test"))


def test_without_a_network_the_message_says_how_to_give_a_local_copy() -> None:
    pytest.importorskip("datasets")
    with pytest.raises(DataError, match=r"can't be loaded from the hub: .*path: FOLDER"):
        hub.load(Settings(dataset="beyond_aime"))


def test_without_datasets_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'thincode\[train\]'"):
        hub.load(Settings(dataset="beyond_aime"))


@pytest.mark.parametrize(
    ("answer", "positive"),
    [
        ("7", True),
        ("033", True),
        ("+4", True),
        ("1,234", True),
        ("0", False),
        ("-3", False),
        ("1.5", False),
        ("x", False),
        ("12,34", False),
        ("7 apples", False),
        ("", False),
    ],
)
def test_positive_integers(answer: str, positive: bool) -> None:
    assert is_positive_integer(answer) == positive


@pytest.mark.parametrize(
    ("question", "english"),
    [
        ("Let $\\alpha$ be a root.", True),
        ("Janet’s ducks lay 16 eggs; π and θ are angles of Erdős.", True),
        ("求 x 的值", False),
        ("Find x. 答案", False),
        ("Найдите все целые x", False),
        ("7 + 7 =", True),
    ],
)
def test_english_is_judged_by_letters(question: str, english: bool) -> None:
    assert is_english(question) == english


@pytest.mark.parametrize(("name", "count"), [("dapo_math_2k", 2000), ("olymmath_en_easy", 100)])
def test_real_problems_pass_the_english_filter(data_dir: Path, name: str, count: int) -> None:
    settings = Settings(dataset="aime24", path=data_dir / f"{name}.jsonl", keep=(Keep.ENGLISH,))
    assert len(hub.load(settings)) == count
