"""Traps that other graders have fallen into, one test each: what is an answer, and when is it right?"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from thincode.grading import GradeReason
from thincode.grading.answers import Grader
from thincode.runs.recipe import Recipe, WeightedReward
from thincode.settings import kind, parse
from thincode.trajectory.formats import build

THINC = build(kind("thincode.trajectory.formats", "thinc"))
OUTPUT = "```python\nprint(1)\n```\n```output\n{}\n```\n"


@pytest.fixture(scope="module")
def grader() -> Iterator[Grader]:
    with Grader() as shared:
        yield shared


def answer(text: str) -> str | None:
    return THINC.answer(THINC.parse(text))


@pytest.mark.parametrize("endless", ["(x+1)^{9999}(y+2)^{9999}", r"\sin(x)^{4000}+\cos(y)^{4000}", "(a+b+c+d+e)^{400}"])
def test_an_endless_comparison_ends_and_the_next_one_is_right(grader: Grader, endless: str) -> None:
    assert not grader.grade(endless, "x^2+1").correct
    assert grader.grade("1+x^2", "x^2+1").correct


@pytest.mark.parametrize(
    ("gold", "partial"),
    [
        ("1, 2, 3", "1"),
        ("1, 2, 3", "1, 2"),
        (r"x=1 \text{ or } x=2", "x=1"),
        ("(1, 2)", "1"),
        (r"[0,1] \cup [2,3]", "[0,1]"),
    ],
)
def test_a_part_of_the_answer_is_not_the_answer_nor_is_more_than_it(grader: Grader, gold: str, partial: str) -> None:
    assert not grader.grade(partial, gold).correct
    assert not grader.grade(gold, partial).correct
    assert grader.grade(gold, gold).correct


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("1/2", "0.5"),
        ("x+1", "1+x"),
        ("(1,2)", "(1, 2)"),
        ("2, 1", "1, 2"),
        ("50\\%", "1/2"),
        ("x=5", "5"),
        ("3", "4"),
        ("0", "x=0"),
    ],
)
def test_values_are_equal_in_both_directions(grader: Grader, left: str, right: str) -> None:
    assert grader.grade(left, right).correct == grader.grade(right, left).correct


def test_a_long_remark_behind_the_box_hides_nothing() -> None:
    assert answer("\\boxed{42}" + " and so it goes" * 2_000) == "42"


@pytest.mark.parametrize("guess", ["The answer is 42.", "42", "Answer: 42", "= 42"])
def test_a_guess_without_a_box_is_no_answer(guess: str) -> None:
    assert answer(guess) is None


@pytest.mark.parametrize("listing", ["41, 42, 43", "41 or 42", r"\{41, 42\}", r"42 \text{ or } 43", r"42 \pm 1"])
def test_listing_candidates_wins_nothing(grader: Grader, listing: str) -> None:
    assert grader.grade(listing, "42").reason is GradeReason.SEVERAL_VALUES


def test_of_several_boxes_the_last_one_counts_alone() -> None:
    assert answer("\\boxed{41} no, \\boxed{42}") == "42"
    assert answer("\\boxed{42} no, \\boxed{43}") == "43"


def test_a_box_that_code_printed_is_no_answer() -> None:
    assert answer(OUTPUT.format("\\boxed{42}")) is None
    assert answer(OUTPUT.format("\\boxed{42}") + "So \\boxed{7}") == "7"
    assert answer("```python\nprint('\\\\boxed{42}')\n```\n") is None


@pytest.mark.parametrize("empty", ["", " ", "\n", "\\text{}", "{}", "$$", "\\boxed{}"])
@pytest.mark.parametrize("gold", ["42", "x+1", r"\text{east}", "(1,2)"])
def test_nothing_is_never_right(grader: Grader, empty: str, gold: str) -> None:
    assert not grader.grade(empty, gold).correct


@pytest.mark.parametrize(("inside", "gold"), [("4", "42"), ("42", "421"), ("east", r"\text{northeast}"), ("x", "x+1")])
def test_a_piece_of_the_gold_text_is_not_equal_to_it(grader: Grader, inside: str, gold: str) -> None:
    assert not grader.grade(inside, gold).correct


def test_calls_and_failed_blocks_earn_nothing_unless_a_recipe_says_so() -> None:
    assert WeightedReward().reward.name == "correct"
    recipe = parse(Recipe, {"rl": {"stages": [{"steps": 1}]}})
    assert recipe.rl is not None
    assert [(one.reward.name, one.weight) for one in recipe.rl.rewards] == [("correct", 1.0)]


@pytest.mark.parametrize(
    "dress", ["033", "33.0", r"\text{33}", r"33^\circ", "+33", "33.", r"33\%", "$33$", "33 cm", "33,0"]
)
def test_one_normalizer_decides_for_integers(grader: Grader, dress: str) -> None:
    assert grader.grade(dress, "33").correct == (dress != "33,0")
