"""A first block with the question's numbers is told from one with others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from thincode.evaluation import Estimate
from thincode.evaluation.scorecard import measure
from thincode.grading import Graded
from thincode.settings import kind
from unit.evaluation.build import row

QUESTION = "Start with 59, times 9, minus 84. What is it?"


def found(*rows: Graded, **values: Any) -> dict[str, Estimate]:
    chosen = kind("thincode.evaluation.metrics", "copying", **values)
    return {one.name: one for one in measure(rows, [chosen], name="").estimates}


@pytest.mark.parametrize(
    ("text", "share", "n"),
    [
        ("p | print(59*9) -> 531 | print(531-48) -> 483 | 483", 1.0, 1),  # only the first block is looked at
        ("p | print(95*9) -> 855 | 855", 0.0, 1),
        ("p | print(59*9-84+3) -> 450 | 450", 1.0, 1),  # small ones say nothing
        ("p | print(-84+59) -> -25 | 25", 1.0, 1),
        ("p | print(9*3) -> 27 | 27", None, 0),  # nothing to copy
        ("p | print('59') -> 59 | 59", None, 0),  # a text is no number that it works with
        ("the answer is 447", None, 0),
    ],
)
def test_each_case(text: str, share: float | None, n: int) -> None:
    one = found(row("p", text, answer="447", question=QUESTION))["inputs copied"]
    assert (one.value, one.n) == (share, n)


def test_small_is_a_setting() -> None:
    rows = [row("p", "p | print(59*8) -> 1 | 1", answer="447", question=QUESTION)]
    assert (found(*rows)["inputs copied"].value, found(*rows, small=2)["inputs copied"].value) == (1.0, 0.0)


def test_chance_is_another_problems_question() -> None:
    mine = row("a", "p | print(59) -> 59 | 59", answer="59", question=QUESTION)
    other = row("b", "p | print(84) -> 84 | 84", answer="84", question="What is 59 + 84?")
    third = row("c", "p | print(17) -> 17 | 17", answer="17", question="What is 17?")
    card = found(mine, other, third)
    assert (card["inputs copied"].value, card["inputs copied"].n) == (1.0, 3)
    assert (card["inputs copied by chance"].value, card["inputs copied by chance"].n) == (0.5, 2)


def test_another_language_has_no_figure() -> None:
    mine = row("p", "p | print(59) -> 59 | 59", answer="59", question=QUESTION)
    one = found(replace(mine, trajectory=replace(mine.trajectory, format="thinc_gp")))["inputs copied"]
    assert (one.value, one.n) == (None, 0)
    assert "no Python" in one.note
