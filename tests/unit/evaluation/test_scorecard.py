"""Scorecards are measured, written, read, compared, printed."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from thincode.errors import DataError
from thincode.evaluation import Estimate, Scorecard
from thincode.evaluation.paired import compare
from thincode.evaluation.scorecard import measure, read, swap_partners, write
from thincode.evaluation.tables import STYLES, table, text
from thincode.grading import Graded
from thincode.settings import kind, kinds
from thincode.trajectory import EndReason
from unit.evaluation.build import row

ALL = [kind("thincode.evaluation.metrics", name) for name in kinds("thincode.evaluation.metrics")]


def marks(found: dict[str, str], family: str = "gcd") -> list[Graded]:
    return [
        row(problem, "p | f() -> 1", correct=mark == "1", answer="1", gold=problem, sample=i, tags={"family": family})
        for problem, line in found.items()
        for i, mark in enumerate(line)
    ]


def test_a_scorecard_is_written_and_read_back(tmp_path: Path) -> None:
    rows = [*marks({"1": "10", "2": "11"}), row("3", "", end=EndReason.LOST)]
    card = measure(rows, ALL, name="sft")
    assert (card.problems, card.samples, card.details["ends"]) == (2, 2, {"finished": 4, "lost": 1})
    assert card.details["grades"] == {"different": 1, "equal_value": 3}
    write(card, tmp_path / "scorecard.json")
    assert read(tmp_path / "scorecard.json") == card


def test_an_empty_run_has_a_scorecard_too(tmp_path: Path) -> None:
    card = measure([], ALL, name="nothing")
    write(card, tmp_path / "s.json")
    assert read(tmp_path / "s.json") == card
    assert all(line[1] == "–" for line in table([card])[1:])


@pytest.mark.parametrize(
    "content", ["", "{}", "[]", '{"version": 9}', '{"version": 1, "name": "x"}', '{"version": 1, "estimates": 3}']
)
def test_what_is_no_scorecard_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "s.json").write_text(content)
    with pytest.raises(DataError, match=r"s\.json"):
        read(tmp_path / "s.json")
    with pytest.raises(DataError, match=r"missing\.json"):
        read(tmp_path / "missing.json")


def test_a_paired_difference_by_hand() -> None:
    # per problem: 1/2 → 1, 0 → 0, 1/2 → 0: differences 1/2, 0, −1/2; sd 1/2
    a, b = marks({"p": "10", "q": "00", "r": "01"}), marks({"p": "11", "q": "00", "r": "00"})
    found = {one.name: one for one in compare(a, b, groups=["family"])}
    assert found["difference"].value == pytest.approx(0.0)
    assert found["difference"].high == pytest.approx(1.959964 * 0.5 / 3**0.5)
    assert found["difference/family=gcd"].n == 3
    bootstrapped = found["difference (bootstrap)"]
    assert bootstrapped.low is not None
    assert -0.5 <= bootstrapped.low < 0
    assert [one.value for one in compare(b, a)[:2]] == [pytest.approx(0.0), pytest.approx(0.0)]
    assert [one.value for one in compare(a, a)] == [0.0, 0.0, 1.0, 1.0, 1.0]


def test_mcnemar_and_the_ratios_by_hand() -> None:
    a = marks({"p": "1", "q": "0", "r": "0", "s": "0", "t": "0"})
    b = marks({"p": "0", "q": "1", "r": "1", "s": "1", "t": "0"})
    found = {one.name: one for one in compare(a, b)}
    # One against three of four discordant pairs: 2 · (1 + 4) / 16.
    assert (found["McNemar p"].value, found["McNemar p"].n) == (0.625, 4)
    assert found["McNemar p"].note == "3 pairs only the second got, 1 only the first"
    assert (found["accuracy ratio"].value, found["accuracy ratio"].n) == (3.0, 5)
    assert found["length ratio"].value == 1.0
    nothing = {one.name: one.value for one in compare(marks({"p": "0"}), marks({"p": "1"}))}
    assert nothing["accuracy ratio"] is None  # one right over none


def test_longer_texts_have_a_larger_ratio() -> None:
    a = [row(name, "x" * 10, correct=True, answer="1") for name in "pq"]
    b = [row(name, "x" * length, correct=True, answer="1") for name, length in (("p", 5), ("q", 10))]
    assert {one.name: one.value for one in compare(a, b)}["length ratio"] == 0.75


def test_pairing_is_clustered_by_problem() -> None:
    # More samples of the same problems that say the same add no certainty.
    few = compare(marks({"p": "0", "q": "1", "r": "0"}), marks({"p": "1", "q": "1", "r": "0"}))[0]
    many = compare(marks({"p": "00", "q": "11", "r": "00"}), marks({"p": "11", "q": "11", "r": "00"}))[0]
    assert (few.low, few.high) == (many.low, many.high)


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        ({"p": "1"}, {"q": "1"}, "'p' in the first"),
        ({"p": "1"}, {"p": "1", "q": "1"}, "'q' in the second"),
        ({"p": "11"}, {"p": "1"}, "2 samples in the first and 1 in the second"),
    ],
)
def test_unlike_sets_are_refused(a: dict[str, str], b: dict[str, str], words: str) -> None:
    with pytest.raises(DataError, match=words):
        compare(marks(a), marks(b))


@pytest.mark.parametrize(
    ("estimate", "expected"),
    [
        (Estimate("x", 0.728022, 0.6, 0.8), "72.8 % [60.0, 80.0]"),
        (Estimate("x", None), "–"),
        (Estimate("x", 12.34, unit="tokens"), "12.3 tokens"),
        (Estimate("x", 0.0), "0.0 %"),
    ],
)
def test_estimates_in_a_few_characters(estimate: Estimate, expected: str) -> None:
    assert text(estimate) == expected


def test_a_table_has_a_column_for_each_scorecard() -> None:
    accuracy = [kind("thincode.evaluation.metrics", "accuracy")]
    one, two = measure(marks({"p": "1"}), accuracy, name="a"), measure(marks({"p": "10"}), accuracy, name="b")
    both = table([one, two])
    assert both[0] == ["", "a", "b"]
    assert {len(line) for line in both} == {3}
    assert next(line for line in both if line[0] == "avg@2") == ["avg@2", "", "50.0 %"]
    assert table([one])[1] == ["avg@1", "100.0 %", "1"]


def test_a_scorecard_can_be_written_for_a_spreadsheet_a_readme_and_a_paper() -> None:
    card = Scorecard(
        "a_b",
        1,
        1,
        (Estimate("avg@2/tag=x|y", 0.5, 0.25, 0.75, 4, note="1 lost"), Estimate("calls", None, unit="blocks")),
    )
    csv, markdown, latex = (STYLES[style]([card]) for style in ("csv", "markdown", "latex"))
    assert (
        csv
        == "scorecard,name,value,low,high,n,unit,note\na_b,avg@2/tag=x|y,0.5,0.25,0.75,4,,1 lost\na_b,calls,,,,0,blocks,\n"
    )
    assert markdown.splitlines()[1:] == [
        "| --- | ---: | ---: |",
        "| avg@2/tag=x\\|y | 50.0 % [25.0, 75.0] | 4 |",
        "| calls | – | 0 |",
    ]
    assert latex.splitlines() == [
        r" & a\_b & n \\",
        r"avg@2/tag=x|y & 50.0 \% [25.0, 75.0] & 4 \\",
        r"calls & -- & 0 \\",
    ]


def test_swap_partners_are_other_problems_of_the_family() -> None:
    rows = marks({str(n): "11" for n in range(10)}) + marks({"50": "1", "51": "1"}, family="sum")
    rows += [
        row("99", "words", gold="99", tags={"family": "gcd"}),
        row("7", "p | f() -> 1", gold="7", tags={"family": "alone"}),
    ]
    partners = swap_partners(rows, seed=1)
    for mine, theirs in zip(rows[:-2], partners[:-2], strict=True):
        assert theirs is not None
        donor = rows[theirs]
        assert donor.problem.tags == mine.problem.tags
        assert donor.problem.answer != mine.problem.answer
        assert donor.trajectory.outputs
    assert partners[-2:] == [None, None]  # no outputs of its own; no one else in its family
    assert swap_partners(rows, seed=1) == partners != swap_partners(rows, seed=2)


def test_swap_partners_do_not_depend_on_the_order() -> None:
    rows = marks({str(n): "11" for n in range(10)})
    shuffled = random.Random(0).sample(rows, len(rows))

    def pairs(given: list[Graded]) -> set[tuple[object, object]]:
        found = swap_partners(given, seed=4)
        return {
            (mine.trajectory.address, given[i].trajectory.address)
            for mine, i in zip(given, found, strict=True)
            if i is not None
        }

    assert pairs(rows) == pairs(shuffled)
    assert len(pairs(rows)) == 20
