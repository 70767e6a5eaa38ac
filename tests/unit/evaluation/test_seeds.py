"""Figures over seeds: Student's interval by hand, and what a single seed or an undefined figure says."""

from __future__ import annotations

import pytest

from thincode.evaluation import Estimate, Scorecard
from thincode.evaluation.intervals import student, t_point
from thincode.evaluation.seeds import card_over_seeds, over_seeds


@pytest.mark.parametrize(
    ("df", "point"), [(1, 12.7062), (2, 4.30265), (4, 2.77645), (10, 2.22814), (100, 1.98397), (10_000, 1.96020)]
)
def test_the_t_point_is_that_of_the_printed_tables(df: float, point: float) -> None:
    assert t_point(df) == pytest.approx(point, rel=1e-4)


def test_equal_weights_give_the_plain_t_interval() -> None:
    # mean 0.4, sd 0.1, se 0.1/√3 = 0.057735, half 4.30265 · 0.057735 = 0.248414
    found = student([0.3, 0.5, 0.4], [220, 220, 220])
    assert (found.value, found.low, found.high) == pytest.approx((0.4, 0.151586, 0.648414), abs=1e-5)


def test_weights_are_those_of_a_ratio_of_sums() -> None:
    # 1 of 10 and 12 of 30: v = 13/40 = 0.325; residuals (10/20)(0.1−0.325) = −0.1125 and (30/20)(0.4−0.325) = 0.1125;
    # se² = 2 · 0.1125² / 2 = 0.01265625, se = 0.1125, half = 12.7062 · 0.1125 = 1.42945
    found = student([0.1, 0.4], [10, 30])
    assert found.value == pytest.approx(13 / 40)
    assert found.high == pytest.approx(0.325 + 1.42945, abs=1e-4)


def test_a_share_stays_between_0_and_1_and_a_difference_need_not() -> None:
    low, high = Estimate("grounded", 0.1, n=10), Estimate("grounded", 0.9, n=10)
    assert (over_seeds([low, high]).low, over_seeds([low, high]).high) == (0.0, 1.0)
    assert over_seeds([low, high], is_share=False).low == pytest.approx(0.5 - 12.7062 * 0.4, abs=1e-3)
    tokens = over_seeds(
        [Estimate("generated", 90.0, n=4, unit="tokens"), Estimate("generated", 110.0, n=4, unit="tokens")]
    )
    assert tokens.high == pytest.approx(100 + 127.062, abs=1e-2)


def test_seeds_that_all_saw_none_do_not_claim_to_be_sure() -> None:
    none = over_seeds([Estimate("recovery@1", 0.0, n=8), Estimate("recovery@1", 0.0, n=14)])
    assert (none.value, none.low, none.n) == (0.0, 0.0, 22)
    assert none.high == pytest.approx(0.1487, abs=1e-4)  # Wilson: z² / (n + z²)
    assert over_seeds([Estimate("grounded", 1.0, n=8), Estimate("grounded", 1.0, n=14)]).low == pytest.approx(
        0.8513, abs=1e-4
    )
    same = over_seeds([Estimate("difference", 0.0, n=8), Estimate("difference", 0.0, n=14)], is_share=False)
    assert (same.low, same.high) == (0.0, 0.0)


def test_one_seed_keeps_its_own_interval_and_says_so() -> None:
    alone = over_seeds([Estimate("recovery@1", 0.5, 0.2, 0.8, n=8), Estimate("recovery@1", None, n=0)])
    assert (alone.value, alone.low, alone.high, alone.n) == (0.5, 0.2, 0.8, 8)
    assert "one seed" in alone.note


def test_a_figure_no_seed_could_count_is_undefined() -> None:
    found = over_seeds([Estimate("recovery@3", None, n=0), Estimate("recovery@3", None, n=0)])
    assert (found.value, found.low, found.n) == (None, None, 0)


def test_a_card_over_seeds_has_every_figure_and_each_seed_s_value() -> None:
    cards = [
        Scorecard("thinc", 10, 2, (Estimate("avg@2", 0.25, n=10), Estimate("calls", 3.0, n=20, unit="blocks"))),
        Scorecard("thinc", 10, 2, (Estimate("avg@2", 0.75, n=10),)),
    ]
    card = card_over_seeds(cards, name="thinc")
    assert [(one.name, one.value, one.n) for one in card.estimates] == [("avg@2", 0.5, 20), ("calls", 3.0, 20)]
    assert card.problems == 20
    assert card.details["by_seed"] == {"avg@2": [0.25, 0.75], "calls": [3.0, None]}
