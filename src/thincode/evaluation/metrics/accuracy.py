"""avg@k, pass@k, maj@k and pass^k.

- avg@k: mean over problems of the mean over k samples; no answer, an unreadable one and a cut trajectory count 0. Defined only
  if every problem has exactly k samples. Intervals are over problems: normal, 1.96·sd/√M, cut at 0 and 1, and bootstrap;
  beside them the sd over the k runs (run s = sample s of every problem).
- pass@k = mean over problems of 1 − C(n−c, k)/C(n, k) (Chen et al. 2021, arXiv 2107.03374, eq. 1), exact; undefined where a
  problem has n < k samples. n = 16, c = 4, k = 4 gives 0.728022.
- pass^k = C(c, k)/C(n, k): k samples are all right (Yao et al. 2024, arXiv 2406.12045).
- maj@k: whether the most frequent answer of all k samples is right; ties go to the earliest, samples without a readable answer
  do not vote (Wang et al. 2022, arXiv 2203.11171).
- `over`: the unweighted mean of the groups' avg@k, as papers average benchmarks.

n counts problems. Lost trajectories are left out and counted in the note.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import comb

import numpy as np

from ...grading import Graded, GradeReason
from ...grading.answers import canonical
from ...settings import settings
from .. import Estimate
from ..intervals import UNDEFINED, Interval, bootstrap, normal_of_shares
from ..samples import Looks, Seen, estimate

Vote = tuple[str, ...] | None
"""The class an answer belongs to; None for one that does not vote."""
Problems = Mapping[str, Sequence[Seen[Vote]]]
_RIGHT = ("right",)


@settings
class Settings:
    """What to estimate."""

    k: int | None = None
    """Samples each problem must have; None takes the number the first problem has."""
    pass_at: tuple[int, ...] = ()
    """The k of pass@k and pass^k; empty takes 1, 2, 4, … up to the samples there are."""
    groups: tuple[str, ...] = ()
    """Names of problem tags, for example `family`: avg@k for each value they have."""
    over: str = ""
    """Name of a tag whose groups' avg@k are averaged without weights, for example `benchmark`."""
    draws: int = 2000
    """Bootstrap draws."""
    seed: int = 0


def look(settings: Settings, graded: Graded) -> Vote:
    """What a trajectory votes for; what the grader took as equal to the gold answer is one class, however it is written."""
    answer = graded.trajectory.answer
    if answer is None or graded.grade.reason in (GradeReason.NO_ANSWER, GradeReason.UNPARSABLE):
        return None
    return _RIGHT if graded.grade.correct else canonical(answer)


def sum_up(settings: Settings, looks: Looks[Vote]) -> list[Estimate]:
    """avg@k with both intervals, sd over runs, groups, pass@k, pass^k and maj@k."""
    problems, note = looks.by_problem(), looks.note
    k = settings.k if settings.k is not None else max((len(found) for found in problems.values()), default=1)
    name, refusal = f"avg@{k}", _refusal(problems, k)
    if refusal:
        note = f"{refusal}; {note}" if note else refusal
        estimates = [Estimate(name, None, n=len(problems), note=note)]
    else:
        means = [_mean(found) for found in problems.values()]
        estimates = [
            estimate(name, normal_of_shares(means), n=len(means), note=note),
            estimate(
                f"{name} (bootstrap)",
                bootstrap(means, seed=settings.seed, draws=settings.draws),
                n=len(means),
                note=note,
            ),
            Estimate("sd over runs", _sd_over_runs(problems, k), n=k, note="n counts runs"),
        ]
        estimates += _groups(settings, problems, name)
    return estimates + _curves(settings, problems, k) + [_majority(problems, k, refusal)]


def _refusal(problems: Problems, k: int) -> str:
    odd = [(problem, len(found)) for problem, found in problems.items() if len(found) != k]
    if not odd:
        return ""
    more = f" and {len(odd) - 1} other problems" if len(odd) > 1 else ""
    return f"needs exactly {k} samples of each problem; {odd[0][0]} has {odd[0][1]}{more}: run the missing ones"


def _mean(found: Sequence[Seen[Vote]]) -> float:
    return sum(one.row.correct for one in found) / len(found)


def _sd_over_runs(problems: Problems, k: int) -> float | None:
    if k < 2 or not problems:
        return None
    correct_PG = np.array([[one.row.correct for one in found] for found in problems.values()], np.float64)
    return float(correct_PG.mean(axis=0).std(ddof=1))


def _groups(settings: Settings, problems: Problems, name: str) -> list[Estimate]:
    estimates = []
    for tag in settings.groups:
        for value, means in _by_tag(problems, tag).items():
            estimates.append(estimate(f"{name}/{tag}={value}", normal_of_shares(means), n=len(means)))
    if settings.over:
        groups = [sum(means) / len(means) for means in _by_tag(problems, settings.over).values()]
        mean = sum(groups) / len(groups) if groups else None
        estimates.append(
            Estimate(f"{name} over {settings.over}", mean, n=len(groups), note="unweighted; n counts groups")
        )
    return estimates


def _by_tag(problems: Problems, tag: str) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for rows in problems.values():
        value = rows[0].row.tags.get(tag)
        if value is not None:
            found.setdefault(value, []).append(_mean(rows))
    return dict(sorted(found.items()))


def pass_at_k(n: int, c: int, k: int) -> float | None:
    """Chance that k of n samples, c of them right, hold a right one; None for n < k."""
    return None if n < k else 1.0 - comb(n - c, k) / comb(n, k)


def all_of_k(n: int, c: int, k: int) -> float | None:
    """Chance that k of n samples, c of them right, are all right; None for n < k."""
    return None if n < k else comb(c, k) / comb(n, k)


def _curves(settings: Settings, problems: Problems, k: int) -> list[Estimate]:
    counts = [(len(found), sum(one.row.correct for one in found)) for found in problems.values()]
    ks = settings.pass_at or tuple(2**power for power in range(k.bit_length()))
    estimates = []
    for title, chance in (("pass@", pass_at_k), ("pass^", all_of_k)):
        for at in ks:
            known = [p for p in (chance(n, c, at) for n, c in counts) if p is not None]
            whole = len(known) == len(counts)
            note = "" if whole else f"undefined: {len(counts) - len(known)} problems have fewer than {at} samples"
            estimates.append(
                estimate(f"{title}{at}", normal_of_shares(known) if whole else UNDEFINED, n=len(counts), note=note)
            )
    return estimates


def _majority(problems: Problems, k: int, refusal: str) -> Estimate:
    if refusal:
        return Estimate(f"maj@{k}", None, n=len(problems), note=refusal)
    won: list[float] = [_majority_is_right(found) for found in problems.values()]
    interval: Interval = normal_of_shares(won)
    return estimate(f"maj@{k}", interval, n=len(won))


def _majority_is_right(found: Sequence[Seen[Vote]]) -> float:
    votes = Counter(one.look for one in found if one.look is not None)
    # Counter keeps the order of first votes, and max takes the first of equals.
    return float(bool(votes) and max(votes, key=votes.__getitem__) == _RIGHT)
