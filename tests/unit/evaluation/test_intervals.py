"""Intervals and pass@k agree with scipy on random data."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from thincode.evaluation.intervals import UNDEFINED, bootstrap, normal, wilson
from thincode.evaluation.metrics.accuracy import all_of_k, pass_at_k


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
