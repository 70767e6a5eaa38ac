"""The paper's three worked failures are found, a clean trajectory has none, and each figure has its table."""

from __future__ import annotations

import random
from typing import Any

import pytest

from thincode.evaluation import Estimate
from thincode.evaluation.metrics import _retelling
from thincode.evaluation.scorecard import measure
from thincode.grading import Graded
from thincode.settings import kind
from unit.evaluation.build import row


def found(*rows: Graded, **values: Any) -> dict[str, Estimate]:
    chosen = kind("thincode.evaluation.metrics", "failures", **values)
    return {one.name: one for one in measure(rows, [chosen], name="").estimates}


def flags(*rows: Graded) -> tuple[float | None, float | None, float | None]:
    card = found(*rows)
    names = ("post-hoc verification", "unverified constants", "role overlap")
    return tuple(card[name].value for name in names)  # type: ignore[return-value]


POST_HOC = row(
    "quadratic",
    "For x^2 - 3x - 10 = 0 the sum of the roots is 3 and their product is -10, so the sum of the squared roots is "
    "3^2 - 2(-10) = 29. Let me verify this. | x = symbols('x');;r = solve(x**2 - 3*x - 10);;"
    "assert r[0]**2 + r[1]**2 == 29 -> (no output) | The answer is 29.",
    answer="29",
    question="Find the sum of the squares of the roots of x^2 - 3x - 10 = 0.",
)
CONSTANT = row(
    "interest",
    "Twelve percent of it: 500 × 0.12 = 50, so the balance is 500 + 50 = 550. | balance = 550.0;;print(balance * 2) -> 1100.0 | "
    "So it is 1100.",
    answer="1100",
    question="A deposit of 500 grows by 0.12 of itself and is then doubled. What is it worth?",
)
OVERLAP = row(
    "digits",
    "I loop over every two-digit number from 10 to 99, split it into tens and units, add the two digits, check whether "
    "their sum equals 15, and if so increase the count, which I print. | count = 0;;for n in range(10, 100):;;"
    "    if n // 10 + n % 10 == 15:;;        count += 1;;print(count) -> 4 | There are 4.",
    answer="4",
    question="How many two-digit numbers have digit sum 15?",
)
CLEAN = row(
    "clean",
    "List the candidates, keep those that fit, and test the result another way. | c = [n for n in range(1, 500) if n % 7 == 3];;"
    "print(len(c), c[-1]) -> 71 493 | s = sum(c);;print(s) -> 17608 | print(s % 1000) -> 608 | 608",
    answer="608",
    question="Add all positive integers below 500 that leave 3 when divided by 7, and give the last three digits.",
)


@pytest.mark.parametrize(
    ("example", "expected"),
    [(POST_HOC, (1, 0, 0)), (CONSTANT, (0, 1, 0)), (OVERLAP, (0, 0, 1)), (CLEAN, (0, 0, 0))],
    ids=["post-hoc", "constant", "overlap", "clean"],
)
def test_the_papers_examples(example: Graded, expected: tuple[int, int, int]) -> None:
    assert flags(example) == expected


@pytest.mark.parametrize(
    ("script", "question", "post_hoc"),
    [
        ("the result is 29 | f() -> 29 | 29", "?", 1),  # text first, then code confirms
        ("a plan | f() -> 29 | so it is 29 | g() -> 29 | 29", "?", 0),  # code first
        ("a plan | f() -> 29 | 29", "?", 0),
        ("a plan | f() -> 28 | it must be 29 | g() -> 29 | 29", "?", 1),
        ("a plan | f() -> 28 | it must be 29", "?", 0),  # nothing runs after the text: wrong, but not verified by code
        ("29 is given | f() -> 29 | 29", "Is 29 a prime?", 0),  # the question has it
        ("29. a step of a plan | f() -> 29 | 29", "?", 0),  # the number of an item
        ("the result is 129 | f() -> 29 | 29", "?", 0),
    ],
)
def test_post_hoc_verification_by_hand(script: str, question: str, post_hoc: int) -> None:
    assert found(row("p", script, answer="29", question=question))["post-hoc verification"].value == post_hoc


@pytest.mark.parametrize(
    ("script", "question", "unverified"),
    [
        ("12 * 4 = 48 | print(48 + 1) -> 49 | 49", "12 and 4", 1),
        ("the product is 48 | print(84) -> 84 | x", "?", 0),  # another value
        ("the product is 48 | assert f() == 48 -> (no output) | x", "?", 0),  # checked, not used
        ("12 * 4 = 48 | print(12 * 4) -> 48 | 48", "12 and 4", 0),  # the code works it out itself
        ("up to 48 terms | print(48) -> 48 | 48", "?", 0),  # named, but not worked out
        ("a plan | f() -> 48 | that is 48 | print(48 * 2) -> 96 | 96", "?", 0),  # an output had it
        ("x = 2 | print(x**2) -> 4 | 4", "?", 0),  # too small to tell
        (r"\(50 \times 0.1 = 5\) | print(5, 'apples') -> 5 apples | 5", "?", 1),
        (r"\(50 \times 0.1 = 5\) | print('5 apples') -> 5 apples | 5", "?", 0),  # a text works nothing out
    ],
)
def test_unverified_constants_by_hand(script: str, question: str, unverified: int) -> None:
    assert found(row("p", script, answer="1", question=question))["unverified constants"].value == unverified


def test_chance_levels_by_hand() -> None:
    rows = [
        row("a", "maybe 7 or 9; 3 * 5 = 15 | print(15) -> 1", answer="7"),  # others say 9, 4: half
        row("b", "nothing | print(15) -> 2", answer="9"),
        row("c", "nothing | print(16) -> 3", answer="4"),
    ]
    card = found(*rows)
    assert card["post-hoc verification"].value == pytest.approx(1 / 3)
    assert card["post-hoc verification by chance"].value == pytest.approx((1 / 2 + 0 + 0) / 3)
    # a's constants against b's literals meet; b's against c's do not; c has no next one.
    assert (card["unverified constants"].n, card["unverified constants by chance"].n) == (3, 2)
    assert card["unverified constants by chance"].value == 0.5


def test_similarity_by_hand() -> None:
    import ast

    done = _retelling.steps(
        ast.walk(ast.parse("t = 0\nfor n in range(9):\n    if n % 3 == 0:\n        t += n * n\nprint(t)"))
    )
    assert done == {"loop", "condition", "remainder", "add", "multiply", "print"}
    assert _retelling.similarity(
        _retelling.named("Loop over n and add up what is divisible by 3."), done
    ) == pytest.approx(3 / 6)
    assert _retelling.similarity(_retelling.named("Use symmetry."), done) == 0
    assert _retelling.similarity(frozenset({"loop"}), frozenset()) == 0


def test_text_alone_has_no_such_failure() -> None:
    card = found(row("p", "3 * 5 = 15, and I loop over all", answer="15"))
    assert {(one.value, one.n) for one in card.values()} == {(None, 0)}


def test_drills_taught_by_program_are_clean() -> None:
    """Their plans are one sentence of strategy; nothing is worked out in words."""
    from thincode.problems.sources import drills
    from thincode.trajectory import Address, EndReason, Trajectory
    from thincode.trajectory.formats import thinc

    format = thinc.build(thinc.Settings())
    settings = drills.Settings(count=66, seed=3)
    rows = []
    for problem in drills.load(settings):
        solved = drills.worked_solution(settings, problem, seed=1)
        assert solved is not None
        blocks = [block(["1", "2", "3", "4", "5"]) for block in solved.blocks]
        turns = format.teacher_turns(solved.plan, solved.thoughts, blocks, problem.answer)
        text = "".join(f"{turn}```output\n{random.random()}\n```\n" for turn in turns[:-1]) + turns[-1]
        segments = ran(format.parse(text))
        address = Address(0, "evaluate", 0, problem.id, 0)
        said = Trajectory(address, problem.question, "thinc", "", segments, EndReason.FINISHED, problem.answer)
        rows.append(Graded(problem, said, row("x", correct=True).grade))
    assert flags(*rows) == (0, 0, 0)
    assert found(*rows)["unverified constants"].n == 66


def ran(segments: list[Any]) -> tuple[Any, ...]:
    from dataclasses import replace

    from thincode.trajectory import Block, BlockStatus, SegmentKind

    return tuple(replace(s, block=Block(BlockStatus.OK)) if s.kind is SegmentKind.CODE else s for s in segments)


def test_two_words_name_a_step_and_a_word_names_one_from_its_beginning() -> None:
    assert _retelling.named("GO OVER them") == {"loop"}
    assert _retelling.named("how many, and the last digit") == {"count", "digits", "remainder"}
    assert _retelling.named("overall, a platform") == frozenset()
    assert _retelling.named("for each") == {"loop"}
    assert _retelling.named("form") == frozenset()
