"""Every filter and every reward that ships: pure, a reason for every drop, a table worked by hand."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from thincode.errors import DataError, RecipeError
from thincode.grading import Graded, Rerun, Sieve, Verdict, combine
from thincode.settings import dump, kind, kinds, parse
from thincode.trajectory import EndReason
from unit.evaluation.build import row

FILTERS, REWARDS = "thincode.grading.filters", "thincode.grading.rewards"

THINC = row("p", "plan | 1+1 -> 2 | 2+2 -> 4 | 4+4 -> 8 | it is 8", correct=True, answer="8")
FAILED = row("p", "plan | 1/0 !> ZeroDivisionError: x | 2 -> 2", correct=True, answer="2")
LIMITED = row("p", "plan | while 1: 0 #> stopped | 2 -> 2 | 3 -> 3")
LOST = row("p", "plan | 1 ?> ", end=EndReason.LOST)
TEXT = row("p", "only words", answer="7")
EMPTY = row("p", "")
CHATTY = row("p", "plan | 1 -> 1 | so next | 2 -> 2 | 3 -> 3 | done", correct=True, answer="3")
LONG_PLAN = row("p", f"{'x' * 50} | 1 -> 1", tokens=True)
BUILT = row("p", "plan | n = 6\nprint(n * 7) -> 42 | def f(x):\n    return x + 1\nf(42) -> 43")
REPEATED = row("p", "plan | n = 6\nprint(n * 7) -> 42 | n = 6  # again\nprint(n*7) -> 42")
BROKEN = row("p", "plan | n = = 6 !> SyntaxError: x | n = 6\nprint(42) -> 42 | n = 6 -> | print(6 * 7) -> 42")
TWICE = row("p", "plan | x = 6*7;;x -> 42 | x = 6 * 7  # again;;x -> 42 | x+1 -> 43", correct=True, answer="42")
AGAIN = replace(THINC, rerun=Rerun(3))
CHANGED = replace(THINC, rerun=Rerun(1))
UNSURE = replace(THINC, rerun=Rerun(1, lost=True))
GERMAN = row(
    "p", "Wir suchen alle Zahlen und rechnen dann der Reihe nach jede Summe aus, bis keine mehr bleibt | 1 -> 1 | 1"
)
WORDS = row("p", "plan | 'no' -> No solution | none", answer="\\text{no solution}")
ROWS = {
    "built": BUILT,
    "repeated": REPEATED,
    "broken": BROKEN,
    "twice": TWICE,
    "again": AGAIN,
    "changed": CHANGED,
    "unsure": UNSURE,
    "german": GERMAN,
    "words": WORDS,
    "thinc": THINC,
    "failed": FAILED,
    "limited": LIMITED,
    "lost": LOST,
    "text": TEXT,
    "empty": EMPTY,
    "chatty": CHATTY,
    "long_plan": LONG_PLAN,
}

FILTER_TABLE = [
    ("correct", {}, "thinc", True, "correct"),
    ("correct", {}, "text", False, "wrong: different"),
    ("correct", {}, "empty", False, "wrong: no_answer"),
    ("blocks_ok", {}, "thinc", True, "every block ok"),
    ("blocks_ok", {}, "failed", False, "a block ended in error"),
    ("blocks_ok", {}, "limited", False, "a block hit a limit"),
    ("blocks_ok", {}, "lost", False, "a block was lost"),
    ("min_blocks", {}, "thinc", True, "3 blocks or more"),
    ("min_blocks", {}, "failed", False, "fewer than 3 blocks"),
    ("min_blocks", {"n": 1}, "text", False, "fewer than 1 block"),
    ("plan_share", {}, "thinc", True, "plan below 0.5 of characters"),
    ("plan_share", {}, "text", False, "plan not below 0.5 of characters"),
    ("plan_share", {}, "empty", False, "empty trajectory"),
    ("plan_share", {}, "long_plan", False, "plan not below 0.5 of tokens"),
    ("plan_share", {"below": 0.9}, "long_plan", True, "plan below 0.9 of tokens"),
    ("reexecution", {}, "again", True, "prints the same when run again"),
    ("reexecution", {}, "changed", False, "a block prints something else when run again"),
    ("reexecution", {}, "unsure", False, "lost when run again"),
    ("reexecution", {}, "thinc", False, "not run again"),
    ("distinct_blocks", {}, "thinc", True, "3 different blocks or more"),
    ("distinct_blocks", {}, "twice", False, "fewer than 3 different blocks"),
    ("distinct_blocks", {"n": 2}, "twice", True, "2 different blocks or more"),
    ("answer_printed", {}, "thinc", True, "answer in the last output"),
    ("answer_printed", {}, "twice", False, "answer not in the last output"),
    ("answer_printed", {}, "words", True, "answer in the last output"),
    ("answer_printed", {}, "text", False, "no output to look in"),
    ("answer_printed", {}, "empty", False, "no answer to look for"),
    ("length", {"max_tokens": 56}, "long_plan", True, "length in range"),
    ("length", {"max_tokens": 55}, "long_plan", False, "more than 55 tokens"),
    ("length", {"min_tokens": 57}, "long_plan", False, "fewer than 57 tokens"),
    ("length", {}, "thinc", False, "no token ids to count; set distill.student"),
    ("language", {}, "thinc", True, "in English"),
    ("language", {}, "german", False, "text not in English"),
    ("duplicates", {}, "thinc", True, "no duplicate"),
    ("contamination", {}, "thinc", True, "in no benchmark"),
]

REWARD_TABLE = [
    ("correct", {}, "thinc", 1.0),
    ("correct", {}, "text", 0.0),
    ("correct", {"wrong": -1.0}, "text", -1.0),
    ("format", {}, "thinc", 1.0),
    ("format", {}, "chatty", 0.0),
    ("format", {}, "text", 0.0),
    ("format", {"broken": -0.5}, "empty", -0.5),
    ("code_used", {}, "failed", 1.0),
    ("code_used", {}, "text", 0.0),
    ("code_used", {}, "lost", 0.0),
    ("code_used", {"only_ok": False}, "lost", 1.0),
    ("blocks_ok", {}, "thinc", 0.0),
    ("blocks_ok", {"ok": 0.2}, "thinc", 0.6),
    ("blocks_ok", {"failed": -0.1}, "failed", -0.1),
    ("blocks_ok", {"failed": -0.1}, "limited", -0.1),
    ("blocks_ok", {"failed": -0.1}, "lost", 0.0),
    ("code_structure", {}, "text", 0.0),
    ("code_structure", {}, "thinc", 0.0),  # bare sums: no name
    ("code_structure", {}, "built", 1.0),
    ("code_structure", {}, "repeated", 0.5),
    ("code_structure", {}, "broken", 0.0),  # no Python; a literal printed; nothing shown; no name
    ("chance", {"share": 1.0}, "empty", 1.0),
    ("chance", {"share": 0.0}, "thinc", 0.0),
    ("overlong", {"limit": 58, "cache": 20}, "long_plan", -0.9),  # 50 plan + 3 code + 3 output = 56 tokens
    ("overlong", {"limit": 100, "cache": 20}, "long_plan", 0.0),
    ("overlong", {"limit": 56, "cache": 4}, "long_plan", -1.0),
    ("overlong", {"limit": 40, "cache": 4}, "long_plan", -1.0),
]


@pytest.fixture(scope="module")
def benchmark_file(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("benchmarks") / "aime.jsonl"
    lines = [
        {"problem": LEAKED},
        {"problem": "Compute $7^{2024}$ modulo $1000$ and give it."},
        {"problem": "What is 2 + 2?"},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


@pytest.fixture
def judge_alone(benchmark_file: str) -> Any:
    def judge(name: str, graded: Graded, **values: Any) -> Verdict:
        """What one filter says of a corpus of one."""
        if name == "contamination":
            values["files"] = [benchmark_file]
        chosen = kind(FILTERS, name, **values)
        if hasattr(chosen.module, "open"):
            return chosen.module.open(chosen.settings)(graded)
        return chosen.module.judge(chosen.settings, graded)

    return judge


@pytest.mark.parametrize(("name", "values", "which", "keep", "reason"), FILTER_TABLE)
def test_filter_table(judge_alone: Any, name: str, values: dict[str, Any], which: str, keep: bool, reason: str) -> None:
    verdict = judge_alone(name, ROWS[which], **values)
    assert (verdict.keep, verdict.reason) == (keep, reason)


@pytest.mark.parametrize(("name", "values", "which", "expected"), REWARD_TABLE)
def test_reward_table(name: str, values: dict[str, object], which: str, expected: float) -> None:
    chosen = kind(REWARDS, name, **values)
    assert combine([(chosen, 1.0)], ROWS[which]).total == pytest.approx(expected)


@pytest.mark.parametrize("name", kinds(FILTERS))
@pytest.mark.parametrize("graded", ROWS.values(), ids=ROWS)
def test_every_filter_is_pure_and_gives_a_countable_reason(judge_alone: Any, name: str, graded: Graded) -> None:
    before = copy.deepcopy(graded)
    verdict = judge_alone(name, graded)
    assert judge_alone(name, graded) == verdict
    assert graded == before
    assert 0 < len(verdict.reason) <= 60
    assert "\n" not in verdict.reason


@pytest.mark.parametrize("name", kinds(REWARDS))
@pytest.mark.parametrize("graded", ROWS.values(), ids=ROWS)
def test_every_reward_is_pure_and_finite(name: str, graded: Graded) -> None:
    chosen, before = kind(REWARDS, name), copy.deepcopy(graded)
    earned = combine([(chosen, 1.0)], graded)
    assert combine([(chosen, 1.0)], graded) == earned
    assert graded == before
    assert -1.0 <= earned.total <= 1.0


def test_every_kind_is_in_a_table() -> None:
    assert {line[0] for line in FILTER_TABLE} == set(kinds(FILTERS))
    assert {line[0] for line in REWARD_TABLE} == set(kinds(REWARDS))


@pytest.mark.parametrize(("room", "name"), [(r, n) for r in (FILTERS, REWARDS) for n in kinds(r)])
def test_settings_are_written_and_read_back(room: str, name: str) -> None:
    chosen = kind(room, name, **({"files": ["a.jsonl"]} if name == "contamination" else {}))
    assert parse(type(chosen.settings), dump(chosen.settings)) == chosen.settings
    assert chosen.module.__doc__


def test_dapo_overlong_points() -> None:
    table = {16_384: 0.0, 18_432: -0.5, 20_480: -1.0, 30_000: -1.0}
    chosen = kind(REWARDS, "overlong")
    for length, expected in table.items():
        assert chosen.module.reward(chosen.settings, row("p", "x" * length, tokens=True)) == expected


def test_rewards_are_weighed_and_their_parts_kept() -> None:
    earned = combine([(kind(REWARDS, "correct", wrong=-1.0), 1.0), (kind(REWARDS, "format"), 0.25)], THINC)
    assert (earned.total, earned.parts) == (1.25, {"correct": 1.0, "format": 1.0})
    twice = combine([(kind(REWARDS, "correct"), 1.0), (kind(REWARDS, "correct", right=0.5), 1.0)], THINC)
    assert (twice.total, twice.parts) == (1.5, {"correct": 1.0, "correct#2": 0.5})
    assert combine([], THINC).total == 0.0


def test_rewards_of_segments_stand_at_theirs() -> None:
    earned = combine([(kind(REWARDS, "correct"), 1.0), (kind(REWARDS, "blocks_ok", ok=0.1, failed=-0.2), 2.0)], FAILED)
    # plan, code, output, code, output, answer: the first block failed.
    assert earned.segments == pytest.approx((0, -0.4, 0, 0.2) + (0,) * (len(FAILED.trajectory.segments) - 4))
    assert earned.total == pytest.approx(1.0 - 0.2)
    assert earned.parts == pytest.approx({"correct": 1.0, "blocks_ok": -0.1})


def test_chance_pays_by_address_alone_and_as_often_as_it_says() -> None:
    chosen = kind(REWARDS, "chance", share=0.3)
    paid = [combine([(chosen, 1.0)], row(f"p{number}")).total for number in range(2_000)]
    assert sum(paid) / len(paid) == pytest.approx(0.3, abs=0.04)
    assert paid == [combine([(chosen, 1.0)], row(f"p{number}", correct=True)).total for number in range(2_000)]


def test_the_first_filter_that_drops_gives_the_reason() -> None:
    chain = [kind(FILTERS, name) for name in ("correct", "blocks_ok", "min_blocks", "plan_share")]
    assert Sieve(chain).judge(THINC).keep
    assert Sieve(chain).judge(FAILED).reason == "a block ended in error"
    assert Sieve(chain[2:]).judge(FAILED).reason == "fewer than 3 blocks"
    assert Sieve([]).judge(TEXT).keep


# --- filters that know more than one trajectory ---------------------------------------------------------------------


def test_the_first_of_duplicates_stays() -> None:
    chosen = kind(FILTERS, "duplicates")
    judge = chosen.module.open(chosen.settings)
    long = "plan " + " | ".join(f"x{i} = {i} -> {i}" for i in range(60))
    table = [
        (row("p", long), "no duplicate"),
        (row("p", long), "duplicate"),
        (row("p", long.replace("plan ", "plan  ")), "duplicate"),
        (row("p", long.replace("x59 = 59", "y = 59")), "near duplicate"),
        (row("p", long.replace(" = ", " + ")), "no duplicate"),
        (row("p", ""), "no duplicate"),
        (row("p", ""), "duplicate"),
    ]
    for graded, reason in table:
        assert judge(graded).reason == reason
    exact = kind(FILTERS, "duplicates", near=1.0)
    only_exact = exact.module.open(exact.settings)
    assert [only_exact(graded).keep for graded, _ in table] == [True, False, False, True, True, True, False]


LEAKED = (
    "Consider the set of complex numbers $z$ satisfying $|1+z+z^2|=4$. The maximum value of the imaginary part of $z$ can be "
    "written in the form $\\tfrac{\\sqrt m}n$, where $m$ and $n$ are relatively prime positive integers. What is $m+n?$"
)


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        (LEAKED, "contaminated: aime"),
        # Set anew, another last sentence: as a problem of a contest stands in DAPO-Math-17k.
        (
            "Consider the set of complex numbers \\( z \\) satisfying \\( \\left|1+z+z^{2}\\right| = 4 \\). The maximum value of "
            "the imaginary part of z can be written in the form $\\dfrac{\\sqrt{m}}{n}$, where $m$ and $n$ are relatively prime "
            "positive integers. Find the value of m + n. The answer is an integer.",
            "contaminated: aime",
        ),
        # The closing sentence of many contests, and nothing else in common.
        (
            "A fair die is thrown until the sum of all throws is a multiple of seven. The expected number of throws can be written "
            "in the form $m/n$, where $m$ and $n$ are relatively prime positive integers. What is $m+n?$",
            "in no benchmark",
        ),
        ("COMPUTE 7^2024 modulo 1000, and give it. The answer is an integer below one thousand.", "contaminated: aime"),
        ("What is 2+2?", "contaminated: aime"),
        ("What is 2 + 2 + 3?", "in no benchmark"),
        ("", "in no benchmark"),
    ],
)
def test_what_a_benchmark_asks_is_dropped(judge_alone: Any, question: str, reason: str) -> None:
    asked = replace(THINC, trajectory=replace(THINC.trajectory, question=question))
    assert judge_alone("contamination", asked).reason == reason


def test_real_leaks_are_found_and_nothing_else(data_dir: Path) -> None:
    """Nine of 2,000 problems of DAPO-Math-17k ask what a benchmark asks; found by hand among the nearest fifty."""
    names = ("aime2024", "aime2025", "amc23", "hmmt_feb_2025", "math500", "olymmath_en_easy", "gsm8k_test")
    chosen = kind(FILTERS, "contamination", files=[str(data_dir / f"{name}.jsonl") for name in names])
    judge = chosen.module.open(chosen.settings)
    lines = (data_dir / "dapo_math_2k.jsonl").read_text(encoding="utf-8").splitlines()
    asked = [
        replace(THINC, trajectory=replace(THINC.trajectory, question=json.loads(line)["problem"])) for line in lines
    ]
    reasons = [verdict.reason for verdict in map(judge, asked) if not verdict.keep]
    assert sorted(reasons) == [
        *["contaminated: amc23"] * 2,
        *["contaminated: math500"] * 5,
        *["contaminated: olymmath_en_easy"] * 2,
    ]


def test_contamination_names_what_it_lacks(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="names no benchmark"):
        kind(FILTERS, "contamination")
    missing = kind(FILTERS, "contamination", files=[str(tmp_path / "none.jsonl")])
    with pytest.raises(DataError, match="no such file"):
        Sieve([missing])
    (tmp_path / "odd.jsonl").write_text('{"text": "?"}\n')
    odd = kind(FILTERS, "contamination", files=[str(tmp_path / "odd.jsonl")])
    with pytest.raises(DataError, match=r"odd.jsonl:1: no question in 'problem'.*text"):
        Sieve([odd])
