"""`thincode grade` says what every run would say, and why."""

from __future__ import annotations

import json

import pytest

from thincode.cli import main


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["grade", *words]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("gold", "answer", "first", "readings"),
    [
        ("33", "033", "right: equal_integer", ["integer: 33", "integer: 33"]),
        (r"\frac{1}{2}", "0.5", "right: equal_value", ["value: 1/2", "value: 1/2"]),
        ("7", "7 or 8", "wrong: several_values", ["integer: 7", "several: 7  |  8"]),
        ("1,-2", "[-2, 1]", "right: equal_value", ["several: 1  |  -2", "[]: -2  |  1"]),
        (r"\text{Evelyn}", "evelyn", "right: equal_value", ["words: evelyn", "words: evelyn"]),
        ("33", " ", "wrong: no_answer", ["integer: 33", "nothing"]),
        ("33", "3" * 5000, "wrong: unparsable", ["integer: 33", "too long"]),
        ("x=5", "5", "right: equal_value", ["value: 5", "integer: 5"]),
    ],
)
def test_it_names_the_reason_and_how_both_were_read(
    gold: str, answer: str, first: str, readings: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    lines = printed(capsys, gold, answer).splitlines()
    assert lines[0].startswith(first)
    assert [line.split(maxsplit=1)[1] for line in lines[1:3]] == readings


def test_it_shows_what_was_asked_of_math_verify(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(printed(capsys, "x^2+2x+1", "(x+1)^2", "--json"))
    assert found["grade"] == {"correct": True, "reason": "equal_value"}
    assert found["asked"] == [["x^2+2x+1", "(x+1)^2", "equal"]]
    assert "asked math-verify whether x+1 = x+2: different" in printed(capsys, "x+1", "x+2")


def test_texts_that_look_like_options_or_settings_are_texts(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, "-5", "-5").startswith("right: equal_integer")
    assert printed(capsys, "--", "-x+1", "1-x").startswith("right: equal_value")
    assert printed(capsys, "x=5", "y=6").startswith("wrong: different")
