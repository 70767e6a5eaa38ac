"""Intervals and pass@k agree with scipy on random data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from thincode.evaluation.intervals import UNDEFINED, bootstrap, bootstrap_ratio, normal, normal_of_shares, wilson
from thincode.evaluation.metrics.accuracy import all_of_k, pass_at_k
from thincode.evaluation.paired import mcnemar
from thincode.evaluation.scorecard import measure
from thincode.settings import kind
from unit.evaluation.build import row


@pytest.mark.parametrize("seed", range(30))
def test_wilson_agrees_with_scipy(seed: int) -> None:
    random = np.random.default_rng(seed)
    n = int(random.integers(1, 200))
    hits = int(random.integers(0, n + 1))
    expected = stats.binomtest(hits, n).proportion_ci(0.95, method="wilson")
    found = wilson(hits, n)
    assert (found.low, found.high) == (pytest.approx(expected.low, abs=1e-12), pytest.approx(expected.high, abs=1e-12))


@pytest.mark.parametrize("seed", range(10))
def test_normal_agrees_with_scipy(seed: int) -> None:
    values = np.random.default_rng(seed).random(int(5 + seed * 7))
    low, high = stats.norm.interval(0.95, loc=values.mean(), scale=stats.sem(values))
    found = normal(list(values))
    assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))


def test_no_mean_of_shares_lies_beyond_all_shares() -> None:
    values = [1.0] * 198 + [0.0] * 2
    found, uncut = normal_of_shares(values), normal(values)
    assert uncut.high is not None
    assert uncut.high > 1
    assert (found.value, found.low, found.high) == (0.99, uncut.low, 1.0)
    assert normal_of_shares([0.5]).low is None


@pytest.mark.parametrize("seed", range(5))
def test_bootstrap_agrees_with_scipy_within_its_own_noise(seed: int) -> None:
    values = np.random.default_rng(seed).random(40)
    theirs = stats.bootstrap((values,), np.mean, n_resamples=9999, method="percentile", rng=np.random.default_rng(1))
    found = bootstrap(list(values), seed=seed, draws=9999)
    assert found.low == pytest.approx(theirs.confidence_interval.low, abs=0.006)
    assert found.high == pytest.approx(theirs.confidence_interval.high, abs=0.006)


def test_bootstrap_repeats_with_its_seed_in_any_order() -> None:
    values = list(np.random.default_rng(0).random(25))
    assert bootstrap(values, seed=3) == bootstrap(values[::-1], seed=3)
    assert bootstrap(values, seed=3) != bootstrap(values, seed=4)


def test_pass_at_k_agrees_with_the_hypergeometric_distribution() -> None:
    random = np.random.default_rng(0)
    for _ in range(200):
        n = int(random.integers(1, 64))
        c, k = int(random.integers(0, n + 1)), int(random.integers(1, n + 1))
        assert pass_at_k(n, c, k) == pytest.approx(stats.hypergeom.sf(0, n, c, k), abs=1e-12)
        assert all_of_k(n, c, k) == pytest.approx(stats.hypergeom.pmf(k, n, c, k), abs=1e-12)


def test_nothing_to_count_is_undefined() -> None:
    assert wilson(0, 0) == normal([]) == bootstrap([], seed=0) == UNDEFINED
    assert normal([0.5]).low is None
    assert bootstrap([0.5], seed=0).low is None


@pytest.mark.parametrize("seed", range(5))
def test_the_ratios_bootstrap_agrees_with_scipy_within_its_own_noise(seed: int) -> None:
    random = np.random.default_rng(seed)
    below = random.random(40) + 0.5
    above = below * random.random(40)

    def ratio(a: Any, b: Any, axis: int = -1) -> Any:
        return a.mean(axis=axis) / b.mean(axis=axis)

    theirs = stats.bootstrap(
        (above, below), ratio, paired=True, n_resamples=9999, method="percentile", rng=np.random.default_rng(1)
    )
    found = bootstrap_ratio(list(above), list(below), seed=seed, draws=9999)
    assert found.value == pytest.approx(above.sum() / below.sum())
    assert found.low == pytest.approx(theirs.confidence_interval.low, abs=0.008)
    assert found.high == pytest.approx(theirs.confidence_interval.high, abs=0.008)


def test_a_ratio_over_nothing_is_undefined() -> None:
    assert bootstrap_ratio([], [], seed=0) == bootstrap_ratio([1.0, 2.0], [0.0, 0.0], seed=0) == UNDEFINED
    assert bootstrap_ratio([1.0], [2.0], seed=0).low is None
    assert bootstrap_ratio([1.0, 1.0], [0.0, 2.0], seed=0).low is None


@pytest.mark.parametrize("seed", range(20))
def test_mcnemar_agrees_with_the_binomial_test(seed: int) -> None:
    random = np.random.default_rng(seed)
    a, b = int(random.integers(0, 60)), int(random.integers(0, 60))
    assert mcnemar(a, b) == pytest.approx(stats.binomtest(a, a + b).pvalue if a + b else 1.0, abs=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_avg_at_k_agrees_with_numpy_and_scipy(seed: int) -> None:
    random = np.random.default_rng(seed)
    correct_PG = random.random((int(random.integers(2, 30)), int(random.integers(2, 9)))) < random.random()
    rows = [
        row(f"p{p:02}", correct=bool(right), answer="1", sample=s)
        for p, samples in enumerate(correct_PG)
        for s, right in enumerate(samples)
    ]
    found = {
        one.name: one for one in measure(rows, [kind("thincode.evaluation.metrics", "accuracy")], name="").estimates
    }
    k = correct_PG.shape[1]
    means = correct_PG.mean(axis=1)
    assert found[f"avg@{k}"].value == pytest.approx(correct_PG.mean())
    if means.std() > 0:
        low, high = stats.norm.interval(0.95, loc=means.mean(), scale=stats.sem(means))
        ends = found[f"avg@{k}"].low, found[f"avg@{k}"].high
        assert ends == (pytest.approx(max(low, 0.0)), pytest.approx(min(high, 1.0)))
    assert found["sd over runs"].value == pytest.approx(correct_PG.mean(axis=0).std(ddof=1))
    expected = np.mean([stats.hypergeom.sf(0, k, int(c), 2) for c in correct_PG.sum(axis=1)])
    assert found["pass@2"].value == pytest.approx(expected)
