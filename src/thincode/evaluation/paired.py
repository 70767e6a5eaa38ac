"""Two systems on the same problems: paired differences, ratios, and whether the wins of one are luck."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import comb

from ..errors import DataError
from ..grading import Graded
from ..grading.spans import length
from . import Estimate
from .intervals import bootstrap, bootstrap_ratio, normal
from .samples import by_problem, estimate

Paired = Mapping[str, tuple[Sequence[Graded], Sequence[Graded]]]
"""Samples of both systems by problem, as many of each."""


def compare(
    rows_a: Sequence[Graded], rows_b: Sequence[Graded], *, groups: Sequence[str] = (), seed: int = 0, draws: int = 2000
) -> list[Estimate]:
    """How much more often b is right than a, on the same problems with the same number of samples.

    The difference is taken within each problem and averaged over problems, so the 95 % intervals (normal and bootstrap) are
    clustered by problem and what makes problems hard for both cancels out. With categories in `groups`, and text-only
    trajectories as `rows_a`, the group figures are CIR's gain per category (micro over its problems).

    Args:
        rows_a: the system compared with; lost trajectories leave the comparison.
        rows_b: the system of interest.
        groups: names of problem tags; the difference also for each value.
        seed: of the bootstrap.
        draws: of the bootstrap.

    Returns:
        `difference`, `difference (bootstrap)`, `McNemar p`, `accuracy ratio`, `length ratio` and `difference/tag=value`; n
        counts problems, for McNemar's test the pairs of samples in which just one system is right.

    Raises:
        DataError: the problems or the sample counts differ; the message names the first.
    """
    a, b = by_problem(rows_a), by_problem(rows_b)
    _refuse_unpaired(a, b)
    paired = {problem: (a[problem], b[problem]) for problem in a}
    gains = {problem: _accuracy(after) - _accuracy(before) for problem, (before, after) in paired.items()}
    values = list(gains.values())
    return [
        estimate("difference", normal(values), n=len(values)),
        estimate("difference (bootstrap)", bootstrap(values, seed=seed, draws=draws), n=len(values)),
        _mcnemar(paired),
        _ratio("accuracy ratio", [(_accuracy(x), _accuracy(y)) for x, y in paired.values()], seed=seed, draws=draws),
        _ratio("length ratio", [(_length(x), _length(y)) for x, y in paired.values()], seed=seed, draws=draws),
        *_by_group(paired, gains, groups),
    ]


def _by_group(paired: Paired, gains: Mapping[str, float], groups: Sequence[str]) -> list[Estimate]:
    estimates = []
    for tag in groups:
        by_value: dict[str, list[float]] = {}
        for problem, gain in gains.items():
            tags = paired[problem][0][0].problem.tags
            if tag in tags:
                by_value.setdefault(tags[tag], []).append(gain)
        estimates += [
            estimate(f"difference/{tag}={value}", normal(found), n=len(found))
            for value, found in sorted(by_value.items())
        ]
    return estimates


def mcnemar(only_a: int, only_b: int) -> float:
    """Exact two-sided p of McNemar's test (1947): chance that a fair coin splits the discordant pairs so unevenly."""
    n, least = only_a + only_b, min(only_a, only_b)
    tail = sum(comb(n, i) for i in range(least + 1))
    return min(1.0, float(Fraction(2 * tail, 2**n)))


def _mcnemar(paired: Paired) -> Estimate:
    pairs = [
        (x.grade.correct, y.grade.correct)
        for before, after in paired.values()
        for x, y in zip(before, after, strict=True)
    ]
    only_a, only_b = pairs.count((True, False)), pairs.count((False, True))
    note = f"{only_b} pairs only the second got, {only_a} only the first"
    if any(len(before) > 1 for before, _ in paired.values()):
        note += "; samples of one problem are not independent, so read the difference's interval"
    return Estimate("McNemar p", mcnemar(only_a, only_b) if pairs else None, n=only_a + only_b, unit="p", note=note)


def _ratio(name: str, pairs: Sequence[tuple[float, float]], *, seed: int, draws: int) -> Estimate:
    interval = bootstrap_ratio([y for _, y in pairs], [x for x, _ in pairs], seed=seed, draws=draws)
    return estimate(name, interval, n=len(pairs), unit="×", note="second over first")


def _accuracy(rows: Sequence[Graded]) -> float:
    return sum(row.grade.correct for row in rows) / len(rows)


def _length(rows: Sequence[Graded]) -> float:
    return sum(length(row.trajectory).generated for row in rows) / len(rows)


def _refuse_unpaired(a: Mapping[str, Sequence[Graded]], b: Mapping[str, Sequence[Graded]]) -> None:
    only = sorted(set(a) ^ set(b))
    if only:
        side = "first" if only[0] in a else "second"
        raise DataError(
            f"the two sets can't be compared: {len(only)} problems are in one only, such as {only[0]!r} in the {side}; "
            "evaluate both on the same problems"
        )
    for problem, found in a.items():
        if len(found) != len(b[problem]):
            raise DataError(
                f"the two sets can't be compared: {problem!r} has {len(found)} samples in the first and {len(b[problem])} "
                "in the second; evaluate both with the same number of samples"
            )
