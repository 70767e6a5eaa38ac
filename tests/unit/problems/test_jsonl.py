"""Problems from JSONL files."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thincode.errors import DataError
from thincode.problems.sources import jsonl
from thincode.problems.sources._rows import answer_text, field_at
from thincode.problems.sources.jsonl import Settings

GOOD = '{"id": "a", "problem": " What? ", "answer": "4", "level": 2}\n'


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "some.jsonl"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{not json\n", "not JSON"),
        ("[1, 2]\n", "must be one JSON object"),
        ('{"id": "b", "answer": "4"}\n', "no question in 'problem', found None"),
        ('{"id": "b", "problem": "  ", "answer": "4"}\n', "no question in 'problem'"),
        ('{"id": "b", "problem": 7, "answer": "4"}\n', "found 7; it must be text"),
        ('{"id": "b", "problem": "What?"}\n', "no answer in 'answer'"),
        ('{"id": "b", "problem": "What?", "answer": null}\n', "no answer in 'answer', found None"),
        ('{"id": "b", "problem": "What?", "answer": NaN}\n', "no answer in 'answer', found nan"),
        ('{"id": "b", "problem": "What?", "answer": true}\n', "found True; it must be text or a number"),
        ('{"id": "a", "problem": "What?", "answer": 4}\n', "id 'a' stands in line 1 already"),
    ],
)
def test_a_wrong_line_is_named_by_file_and_line(tmp_path: Path, line: str, told: str) -> None:
    path = write(tmp_path, GOOD + "\n" + line)
    with pytest.raises(DataError) as error:
        jsonl.load(Settings(path=path))
    assert str(error.value).startswith(f"{path}:3: ")
    assert told in str(error.value)


def test_a_missing_file_and_an_empty_one_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        jsonl.load(Settings(path=tmp_path / "none.jsonl"))
    with pytest.raises(DataError, match="has 0 problems"):
        jsonl.load(Settings(path=write(tmp_path, "\n")))


def test_fields_are_named_by_settings_and_may_be_nested(tmp_path: Path) -> None:
    path = write(tmp_path, '{"q": "What?", "gold": {"value": [27.0]}, "level": 2, "no": null}\n')
    settings = Settings(path=path, question_field="q", answer_field="gold.value.0", tag_fields=("level", "no", "other"))
    (problem,) = jsonl.load(settings)
    assert (problem.id, problem.question, problem.answer, problem.tags) == ("some:1", "What?", "27", {"level": "2"})


def test_first_and_limit_choose_a_piece_of_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, "".join(f'{{"id": "{i}", "problem": "What?", "answer": {i}}}\n' for i in range(6)))
    table = [((0, None), "012345"), ((2, None), "2345"), ((2, 3), "234"), ((5, 3), "5")]
    for (first, limit), ids in table:
        assert "".join(p.id for p in jsonl.load(Settings(path=path, first=first, limit=limit))) == ids
    with pytest.raises(DataError, match="has 6 problems, none from number 6 on"):
        jsonl.load(Settings(path=path, first=6))


def test_a_byte_order_mark_is_no_error(tmp_path: Path) -> None:
    assert len(jsonl.load(Settings(path=write(tmp_path, "\ufeff" + GOOD)))) == 1


@pytest.mark.parametrize(
    ("value", "text"),
    [(27, "27"), (27.0, "27"), (0.5, "0.5"), (-3.0, "-3"), (" 033 ", "033"), ("", None), (True, None), ([], None)],
)
def test_answers_become_text(value: object, text: str | None) -> None:
    assert answer_text(value) == text


@given(st.integers())
def test_an_integer_and_its_text_are_the_same_answer(number: int) -> None:
    assert answer_text(number) == answer_text(str(number)) == str(number)


@given(st.integers(-(2**53), 2**53))
def test_a_whole_float_is_its_integer(number: int) -> None:
    assert answer_text(float(number)) == str(number)


def test_a_key_with_a_dot_in_it_comes_before_a_path() -> None:
    assert field_at({"a.b": 1, "a": {"b": 2}}, "a.b") == 1
    assert field_at({"a": {"b": 2}}, "a.b") == 2
    assert field_at({"a": [1]}, "a.1") is None


@pytest.mark.parametrize(
    ("name", "count"),
    [("aime2024", 30), ("aime2025", 30), ("amc23", 40), ("math500", 500), ("gsm8k_test", 1319), ("hmmt_feb_2025", 30)],
)
def test_real_benchmarks_load_whole(data_dir: Path, name: str, count: int) -> None:
    problems = jsonl.load(Settings(path=data_dir / f"{name}.jsonl", tag_fields=("source",)))
    assert len(problems) == count
    assert all(problem.tags["source"] for problem in problems)
