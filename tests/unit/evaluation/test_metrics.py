"""Tables worked by hand, one for each metric."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from thincode.evaluation import Estimate
from thincode.evaluation.metrics.accuracy import all_of_k, pass_at_k
from thincode.evaluation.scorecard import measure
from thincode.grading import Graded
from thincode.grading.answers import grade
from thincode.settings import kind
from thincode.trajectory import Segment, SegmentKind
from unit.evaluation.build import row


def measured(name: str, rows: list[Graded], **values: Any) -> dict[str, Estimate]:
    chosen = kind("thincode.evaluation.metrics", name, **values)
    return {one.name: one for one in measure(rows, [chosen], name="").estimates}


def samples(table: dict[str, str], **tags: str) -> list[Graded]:
    """`{"a": "10"}`: problem a, first sample right, second wrong."""
    return [
        row(
            problem,
            correct=mark == "1",
            answer="1" if mark == "1" else f"{i}0",
            sample=i,
            tags=tags,
        )
        for problem, marks in table.items()
        for i, mark in enumerate(marks)
    ]


# --- accuracy -------------------------------------------------------------------------------------------------------


def test_accuracy_by_hand() -> None:
    # means 1, 1/2, 0 → 0.5; sample sd 0.5; half width 1.96·0.5/√3 = 0.566, cut; runs: (1+1+0)/3 and (1+0+0)/3 → sd 0.2357
    found = measured("accuracy", samples({"a": "11", "b": "10", "c": "00"}))
    assert found["avg@2"].value == pytest.approx(0.5)
    assert (found["avg@2"].low, found["avg@2"].high) == (0.0, 1.0)
    assert found["avg@2"].n == 3
    assert found["sd over runs"].value == pytest.approx(0.235702, abs=1e-6)
    assert found["pass@1"].value == pytest.approx(0.5)
    assert found["pass@2"].value == pytest.approx(2 / 3)
    assert found["pass^2"].value == pytest.approx(1 / 3)
    assert found["maj@2"].value == pytest.approx(2 / 3)  # b: a tie, the earliest vote is right


def test_pass_at_k_golden_values() -> None:
    assert pass_at_k(16, 4, 4) == pytest.approx(0.728022, abs=5e-7)
    assert pass_at_k(16, 0, 4) == 0.0
    assert pass_at_k(16, 13, 4) == 1.0
    assert pass_at_k(3, 3, 4) is None
    assert all_of_k(16, 4, 4) == pytest.approx(1 / 1820)
    assert all_of_k(3, 3, 4) is None
    assert pass_at_k(2000, 1, 1000) == 0.5


def test_too_few_samples_are_refused_not_guessed() -> None:
    found = measured("accuracy", samples({"a": "11", "b": "1"}))
    assert found["avg@2"].value is None
    assert "b has 1" in found["avg@2"].note
    assert found["pass@1"].value == 1.0
    assert found["pass@2"].value is None
    assert found["maj@2"].value is None
    assert measured("accuracy", samples({"a": "11"}), k=4)["avg@4"].value is None
    assert measured("accuracy", samples({"a": "11"}), pass_at=[4])["pass@4"].value is None


def test_groups_and_their_unweighted_mean() -> None:
    rows = samples({"a": "1", "b": "0", "c": "0"}, benchmark="aime") + samples({"d": "1"}, benchmark="amc")
    found = measured("accuracy", rows, groups=["benchmark"], over="benchmark")
    assert found["avg@1"].value == pytest.approx(0.5)
    assert found["avg@1/benchmark=aime"].value == pytest.approx(1 / 3)
    assert found["avg@1/benchmark=amc"].value == 1.0
    assert found["avg@1 over benchmark"].value == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("answers", "gold", "expected"),
    [
        (["7", "07", "8"], "7", 1.0),
        (["8", "7", "8.0"], "7", 0.0),
        (["7", "8"], "7", 1.0),
        (["8", "7"], "7", 0.0),
        ([None, None, "7"], "7", 1.0),
        ([None, None], "7", 0.0),
        (["1/2", "0.5", "3"], "1/2", 1.0),
        (["3", r"\frac{6}{2}", "1/2"], "1/2", 0.0),
    ],
)
def test_majority_votes_by_value(answers: list[str | None], gold: str, expected: float) -> None:
    rows = []
    for i, answer in enumerate(answers):
        one = row("p", sample=i, answer=answer, gold=gold)
        rows.append(Graded(one.problem, one.trajectory, grade(answer, gold)))
    assert measured("accuracy", rows)[f"maj@{len(answers)}"].value == expected


# --- recovery -------------------------------------------------------------------------------------------------------


def test_recovery_by_hand() -> None:
    rows = [
        row("a", "p | 1 !> E: x | 2 -> 2", correct=True),
        row("b", "p | 1 !> E: x | 2 #> stopped | 3 -> 3", correct=True),
        row("c", "p | 1 !> E: x | 2 !> E: x | 3 !> E: x"),
        row("d", "p | 1 -> 1 | 2 !> E: x"),
        row("e", "only words", correct=True),
        row("f", "p | 1 ?> | 2 -> 2", correct=True),
    ]
    found = measured("recovery", rows)
    assert [(found[f"recovery@{k}"].value, found[f"recovery@{k}"].n) for k in (1, 2, 3, 4, 5)] == [
        (pytest.approx(2 / 3), 3),
        (0.5, 2),
        (0.0, 1),
        (None, 0),
        (None, 0),
    ]
    strict = measured("recovery", rows, limits_count=False, deepest=2)
    assert [(one.value, one.n) for one in strict.values()] == [(pytest.approx(2 / 3), 3), (0.0, 1)]


# --- code use -------------------------------------------------------------------------------------------------------


def test_code_use_by_hand() -> None:
    rows = [
        row("a", "p | x=1;;# note;;;;print(x) -> 1 | y=2 -> 2", correct=True),
        row("b", "p | 1/0 !> E: x | 2 -> 2", correct=True),
        row("c", "p | 1 -> 1 | 2 #> stopped"),
        row("d", "p | 1 -> 1"),
        row("e", "only words"),
    ]
    cut = Segment(SegmentKind.CODE, "`3", "3")
    rows[3] = replace(
        rows[3], trajectory=replace(rows[3].trajectory, segments=(*rows[3].trajectory.segments, cut, cut))
    )
    found = {name: (one.value, one.n) for name, one in measured("code_use", rows).items()}
    assert found["calls not run"] == (2 / 5, 5)
    assert found["block pass rate"] == (pytest.approx(5 / 7), 7)
    assert found["full pass rate"] == (0.5, 4)
    assert found["full pass rate/correct"] == (0.5, 2)
    assert found["final pass rate"] == (0.75, 4)
    assert found["final pass rate/wrong"] == (0.5, 2)
    assert found["logic-flaw share"] == (0.5, 2)
    assert found["code-use ratio"] == (0.8, 5)
    assert found["calls"] == (pytest.approx(7 / 5), 5)
    assert found["lines of code"] == ((5 + 2 + 2 + 1) / 4, 4)
    assert found["lines of code, non-blank non-comment"] == ((3 + 2 + 2 + 1) / 4, 4)


# --- structure and length -------------------------------------------------------------------------------------------


def test_structure_by_hand() -> None:
    rows = [
        row("a", "plan | 1 -> 1 | 2 -> 2 | so 2", answer="2"),  # 4 of 4+3+3+3+3+4 = 20 characters
        row("b", "plan | 1 -> 1 | and | 2 -> 2 | so 2", answer="2"),
        row("c", "1 -> 1 | so 2", answer="2"),
        row("d", "plan | 1 -> 1 | no answer"),
        row("e", "words"),
    ]
    found = {name: one.value for name, one in measured("structure", rows).items()}
    assert found["format adherence"] == 0.2
    assert found["plan share"] == pytest.approx((4 / 20 + 4 / 23 + 0 + 4 / 19) / 4)
    assert found["answered"] == 0.6
    assert found["void"] == 0.2
    assert found["end/finished"] == 1.0


def test_length_by_hand() -> None:
    with_ids = [row("a", "plan | 1 -> 11 | so", tokens=True, correct=True), row("b", "words", tokens=True)]
    found = {name: (one.value, one.n, one.unit) for name, one in measured("length", with_ids).items()}
    assert found["generated"] == ((9 + 5) / 2, 2, "tokens")  # plan, `1`, so
    assert found["generated + outputs"] == ((13 + 5) / 2, 2, "tokens")
    assert found["generated/wrong"] == (5, 1, "tokens")
    mixed = measured("length", [*with_ids, row("c", "text")])
    assert (mixed["generated"].n, mixed["generated in characters"].value) == (2, 4)


# --- grounding ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "output", "grounded"),
    [
        ("7", "x=7,", True),
        ("7", "17", False),
        ("7", "0.7", False),
        ("7", "x7", False),
        ("7", "7*x", False),
        ("033", "33", True),
        ("33", "+33", True),
        ("33", "33.0", True),
        ("1234", "total: 1,234", True),
        (r"1,234", "1234", True),
        (r"\frac{1}{2}", "1/2", True),
        (r"\frac{1}{2}", "0.5", True),
        (r"\frac{1}{2}", "Fraction(1, 2)", True),
        ("1/2", r"\frac{1}{2}", True),
        ("1", "1/2", False),
        ("32", "2**5", True),
        (r"\frac{9 \sqrt{23}}{23}", "9*sqrt(23)/23", True),
        (r"2^{25} \cdot 26!", "13532215908553332190020108288000000", True),
        ("1, -2", "{-2, 1}", True),
        ("1, -2", "[1, 2]", False),
        ("90^\\circ", "angle 90", True),
        ("1", "True", False),
        (r"\text{Evelyn}", "the fastest is Evelyn.", True),
        (r"\text{Eve}", "the fastest is Evelyn.", False),
        ("x^3+3x-6", "p = x**3 + 3*x - 6", True),
        ("x^3+3x-6", "p = x**3 + 3*x - 60", False),
        ("7", "", False),
    ],
)
def test_grounded_by_value_with_strict_boundaries(answer: str, output: str, grounded: bool) -> None:
    found = measured("grounding", [row("p", f"plan | run() -> {output} | end", answer=answer)])
    assert found["grounded"].value == float(grounded)


def test_grounding_by_hand() -> None:
    rows = [
        row("a", "p | f() -> 12 | g() -> done | so", answer="12", correct=True),  # any output, not the last; computed
        row("b", "p | print(70) -> 70", answer="70"),  # last, but laundered
        row("c", "p | f() -> 5", answer="9", correct=True),  # not at all; 9 is nowhere
        row("d", "p | f() -> 0.49999999999", answer="1/2"),  # weak only
        row("e", "p | f() -> 12"),  # no answer
    ]
    found = {name: (one.value, one.n) for name, one in measured("grounding", rows).items()}
    assert found["grounded"] == (0.5, 4)
    assert found["grounded/correct"] == (0.5, 2)
    assert found["grounded/wrong"] == (0.5, 2)
    assert found["grounded of all"] == (0.4, 5)
    assert found["grounded in last output"] == (0.25, 4)
    assert found["grounded by computing"] == (0.25, 4)
    assert found["grounded weakly"] == (0.25, 4)
    assert found["values shown"] == (1.0, 5)


def test_chance_level_by_hand() -> None:
    rows = [
        row("a", "p | f() -> 1 2 3", answer="1"),  # others say 2, 9, 9: one of three
        row("b", "p | f() -> 2", answer="2"),  # others say 1, 9, 9: none
        row(
            "c", "p | f() -> 1", answer="9", sample=0
        ),  # others say 1, 2 (its own problem's answers stay out): one of two
        row("c", "p | f() -> 9", answer="9", sample=1),  # none
    ]
    found = measured("grounding", rows)["grounded by chance"]
    assert found.value == pytest.approx((1 / 3 + 0 + 1 / 2 + 0) / 4)
    assert found.n == 4


def test_chance_counts_answers_of_several_parts_and_words() -> None:
    rows = [
        row("a", "p | f() -> 1 2 east", answer="7"),
        row("b", "p | f() -> 0", answer="1, 2"),
        row("c", "p | f() -> 0", answer=r"\text{east}"),
    ]
    assert measured("grounding", rows)["grounded by chance"].value == pytest.approx((2 / 2 + 0 + 0) / 3)


def test_a_literal_in_text_or_with_a_sign_is_no_computation() -> None:
    for source, computed in (
        ("print('70')", 0.0),
        ("print(-70)", 0.0),
        ("print(69+1)", 1.0),
        ("print(70.0)", 0.0),
        ("def", 1.0),
    ):
        answer = "-70" if "-70" in source else "70"
        found = measured("grounding", [row("p", f"p | {source} -> {answer}", answer=answer)])
        assert found["grounded by computing"].value == computed, source


def test_a_traceback_grounds_nothing_but_what_was_printed_before_does() -> None:
    error = 'Traceback (most recent call last):;;  File "<block>", line 7;;    f(8);;ValueError: 9'
    for answer, expected in (("6", 1.0), ("7", 0.0), ("8", 0.0), ("9", 0.0)):
        found = measured("grounding", [row("p", f"p | f() !> 6;;{error}", answer=answer)])
        assert found["grounded"].value == expected
    short = measured("grounding", [row("p", "p | f() !> ValueError: 9", answer="9")])
    assert short["grounded"].value == 0.0


def test_spans_show_where_an_answer_stands() -> None:
    chosen = kind("thincode.evaluation.metrics", "grounding")
    rows = [
        row("p", "p | f() -> x = 12 | g() !> 12.0;;ValueError: 1", answer="12"),
        row("q", "p | f() -> 1", answer="3"),
    ]
    assert measure(rows, [chosen], name="").details["grounded"] == [
        {
            "problem": "p",
            "sample": 0,
            "spans": [
                {"output": 0, "start": 4, "end": 6, "status": "ok"},
                {"output": 1, "start": 0, "end": 4, "status": "error"},
            ],
        }
    ]


HOSTILE = [
    *("9" * 60_000, "9*" * 30_000, "(" * 60_000, "1+" * 30_000, "10**10**10 " * 5_000, "factorial(1000) " * 3_000),
    *("sqrt(2)*" * 8_000, "\\frac{" * 10_000, "exp(9999)" * 6_000, "\0\ud800\u202e7" * 9_000, "2(" * 30_000),
]


@pytest.mark.parametrize("hostile", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_outputs_end_and_ground_nothing(hostile: str) -> None:
    found = measured("grounding", [row("p", f"plan | f() -> {hostile} | g() !> {hostile}", answer="33")])
    assert found["grounded"].value == 0.0
