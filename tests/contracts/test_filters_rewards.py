"""Every filter and every reward that ships: pure, a reason for every drop, a table worked by hand."""

from __future__ import annotations

import copy

import pytest

from thincode.grading import Graded, combine, judge
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
ROWS = {
    "built": BUILT,
    "repeated": REPEATED,
    "broken": BROKEN,
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


@pytest.mark.parametrize(("name", "values", "which", "keep", "reason"), FILTER_TABLE)
def test_filter_table(name: str, values: dict[str, object], which: str, keep: bool, reason: str) -> None:
    chosen = kind(FILTERS, name, **values)
    verdict = chosen.module.judge(chosen.settings, ROWS[which])
    assert (verdict.keep, verdict.reason) == (keep, reason)


@pytest.mark.parametrize(("name", "values", "which", "expected"), REWARD_TABLE)
def test_reward_table(name: str, values: dict[str, object], which: str, expected: float) -> None:
    chosen = kind(REWARDS, name, **values)
    assert combine([(chosen, 1.0)], ROWS[which]).total == pytest.approx(expected)


@pytest.mark.parametrize("name", kinds(FILTERS))
@pytest.mark.parametrize("graded", ROWS.values(), ids=ROWS)
def test_every_filter_is_pure_and_gives_a_countable_reason(name: str, graded: Graded) -> None:
    chosen, before = kind(FILTERS, name), copy.deepcopy(graded)
    verdict = chosen.module.judge(chosen.settings, graded)
    assert chosen.module.judge(chosen.settings, graded) == verdict
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
    chosen = kind(room, name)
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
    assert judge(chain, THINC).keep
    assert judge(chain, FAILED).reason == "a block ended in error"
    assert judge(chain[2:], FAILED).reason == "fewer than 3 blocks"
    assert judge([], TEXT).keep
