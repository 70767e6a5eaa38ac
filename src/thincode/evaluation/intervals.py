"""95 % intervals: Wilson for shares, normal and bootstrap for means over problems, Student's for means over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum, sqrt

import numpy as np
import numpy.typing as npt

Z = 1.959963984540054
"""The 97.5 % point of the normal distribution."""


@dataclass(frozen=True)
class Interval:
    """A mean or share with both ends; None where undefined."""

    value: float | None
    low: float | None
    high: float | None


UNDEFINED = Interval(None, None, None)


def wilson(successes: int, n: int) -> Interval:
    """A share of n independent trials (Wilson 1927, without continuity correction); undefined for n = 0."""
    if n == 0:
        return UNDEFINED
    share = successes / n
    middle = (share + Z * Z / (2 * n)) / (1 + Z * Z / n)
    half = Z / (1 + Z * Z / n) * sqrt(share * (1 - share) / n + Z * Z / (4 * n * n))
    # At 0 and n the end is exactly 0 and 1; rounding would say 1e-17.
    return Interval(share, 0.0 if successes == 0 else middle - half, 1.0 if successes == n else middle + half)


def normal(values: Sequence[float]) -> Interval:
    """The mean of M values ± 1.96 · sd / √M with the sample sd (M − 1); no ends for M = 1."""
    if not values:
        return UNDEFINED
    mean = fsum(values) / len(values)
    if len(values) == 1:
        return Interval(mean, None, None)
    variance = fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
    half = Z * sqrt(variance / len(values))
    return Interval(mean, mean - half, mean + half)


def normal_of_shares(values: Sequence[float]) -> Interval:
    """`normal` of values from 0 to 1, its ends no further out than their mean can be."""
    found = normal(values)
    if found.low is None or found.high is None:
        return found
    return Interval(found.value, max(found.low, 0.0), min(found.high, 1.0))


def student(values: Sequence[float], weights: Sequence[float]) -> Interval:
    """The weighted mean of S independent figures ± t(S − 1) · se, t being the 97.5 % point of Student's distribution.

    v = Σ wₛvₛ / Σ wₛ and se² = Σ (wₛ/w̄)²(vₛ − v)² / (S(S − 1)): a ratio estimator with the S as clusters (Cochran 1977, 6.4), the
    plain t interval where weights are equal. Weights must be positive; no ends for S = 1.
    """
    if not values:
        return UNDEFINED
    size, whole = len(values), fsum(weights)
    mean = fsum(w * v for w, v in zip(weights, values, strict=True)) / whole
    if size == 1:
        return Interval(mean, None, None)
    squares = fsum((size * w / whole * (v - mean)) ** 2 for w, v in zip(weights, values, strict=True))
    half = t_point(size - 1) * sqrt(squares / (size * (size - 1)))
    return Interval(mean, mean - half, mean + half)


def t_point(df: float) -> float:
    """The 97.5 % point of Student's distribution with `df` ≥ 1 degrees of freedom, to five figures.

    With t = √df · tan θ its density is cosᵈᶠ⁻¹ θ, whose integral is inverted on a grid.
    """
    theta = np.linspace(0.0, np.pi / 2, 200_001)
    density = np.cos(theta) ** (df - 1)
    below = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    return float(sqrt(df) * np.tan(np.interp(0.95, below / below[-1], theta)))


def bootstrap(values: Sequence[float], *, seed: int, draws: int = 2000) -> Interval:
    """The mean of M values with the percentile bootstrap's ends (Efron 1979); no ends for M = 1.

    Values are sorted first, so that their order changes nothing; the same seed gives the same ends.
    """
    if not values:
        return UNDEFINED
    mean = fsum(values) / len(values)
    if len(values) == 1 or draws < 1:
        return Interval(mean, None, None)
    means = _means(np.sort(np.asarray(values, np.float64))[:, None], seed=seed, draws=draws)[:, 0]
    low, high = np.percentile(means, [2.5, 97.5])
    return Interval(mean, float(low), float(high))


def bootstrap_ratio(
    numerators: Sequence[float], denominators: Sequence[float], *, seed: int, draws: int = 2000
) -> Interval:
    """The ratio of two means over the same M problems, with the percentile bootstrap's ends over problems.

    Undefined where the denominators' mean is 0; no ends for M = 1, or where a draw's denominators are all 0.
    """
    above, below = fsum(numerators), fsum(denominators)
    if not numerators or not below:
        return UNDEFINED
    if len(numerators) == 1 or draws < 1:
        return Interval(above / below, None, None)
    pairs_M2 = np.array(sorted(zip(numerators, denominators, strict=True)), np.float64)
    means = _means(pairs_M2, seed=seed, draws=draws)
    if not means[:, 1].all():
        return Interval(above / below, None, None)
    low, high = np.percentile(means[:, 0] / means[:, 1], [2.5, 97.5])
    return Interval(above / below, float(low), float(high))


def _means(sample: npt.NDArray[np.float64], *, seed: int, draws: int) -> npt.NDArray[np.float64]:
    """Column means of `draws` resamples of the M rows."""
    random = np.random.default_rng(seed)
    means = np.empty((draws, sample.shape[1]))
    rows = max(1, 4_000_000 // sample.size)  # draws at a time, so that memory stays bounded
    for start in range(0, draws, rows):
        count = min(rows, draws - start)
        means[start : start + count] = sample[random.integers(0, len(sample), (count, len(sample)))].mean(axis=1)
    return means
