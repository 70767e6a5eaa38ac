"""The source of generated problems: shares, quotas, the fallible teacher, refusals."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from thincode.errors import DataError, RecipeError
from thincode.problems import Problem
from thincode.problems.drills import SPLITS, Split, families, split_of
from thincode.problems.sources import drills
from thincode.problems.sources.drills import Settings, Wordings

FLAWED = {name for name, family in families().items() if family.flaw}


def test_the_house_offers_enough_families() -> None:
    assert len(families()) >= 8
    assert len(FLAWED) >= 5
    blocks = Counter(problem.tags["family"] for problem in drills.load(Settings()) if int(problem.tags["blocks"]) >= 4)
    assert len(blocks) >= 2


@given(count=st.integers(1, 60), seed=st.integers(0, 10**9), split=st.sampled_from(list(Split)))
@hypothesis_settings(max_examples=20, deadline=None)
def test_count_problems_are_spread_evenly_over_families(count: int, seed: int, split: Split) -> None:
    problems = drills.load(Settings(count=count, seed=seed, split=split))
    per_family = Counter(problem.tags["family"] for problem in problems)
    assert len(problems) == count
    assert max(per_family.values()) - min(per_family.values()) <= 1 or count < len(families())


def test_families_are_mixed_not_one_after_another() -> None:
    first = [problem.tags["family"] for problem in drills.load(Settings(count=1100))][:50]
    assert len(set(first)) > 5


@pytest.mark.parametrize("share", [0.0, 0.25, 0.6, 1.0])
def test_flaw_shows_is_the_share_in_each_family_with_a_flaw(share: float) -> None:
    problems = drills.load(Settings(count=11 * 40, flaw_shows=share, split=Split.HELDOUT))
    shown = Counter(problem.tags["family"] for problem in problems if problem.tags["flaw_shows"] == "yes")
    assert shown == {name: 40 * share for name in FLAWED if share}


@pytest.mark.parametrize(("fallible", "low", "high"), [(0.0, 0, 0), (0.7, 0.63, 0.77), (1.0, 1, 1)])
def test_the_teacher_errs_in_the_share_asked_for(fallible: float, low: float, high: float) -> None:
    settings = Settings(families=tuple(sorted(FLAWED)), count=1000, fallible=fallible)
    flawed = [drills.worked_solution(settings, p, seed=5).flaw != "" for p in drills.load(settings)]
    assert low <= sum(flawed) / len(flawed) <= high


def test_families_without_a_flaw_are_taught_rightly_by_any_teacher() -> None:
    settings = Settings(families=tuple(sorted(set(families()) - FLAWED)), fallible=1.0, count=40)
    assert {drills.worked_solution(settings, p, seed=5).flaw for p in drills.load(settings)} == {""}


def test_whether_the_teacher_errs_depends_on_seed_and_problem_only() -> None:
    settings = Settings(families=("primes",), count=60, fallible=0.5)
    problems = list(drills.load(settings))

    def errs(seed: int, order: list[Problem]) -> dict[str, str]:
        return {p.id: drills.worked_solution(settings, p, seed=seed).flaw for p in order}

    assert errs(1, problems) == errs(1, problems[::-1])
    assert errs(1, problems) != errs(2, problems)


def test_splits_take_the_shares_they_say() -> None:
    counts = Counter(split_of(f"lcm ({a}, {b}, 9)") for a in range(100) for b in range(100))
    assert {name: round(n / 100) for name, n in counts.items()} == pytest.approx(SPLITS, abs=2)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"families": ("lmc",)}, "'lmc' is no drill family"),
        ({"families": ("lcm", "lcm")}, "stands twice"),
        ({"wordings": Wordings.UNSEEN}, "for split: heldout only, found split: train"),
        ({"wordings": Wordings.MIXED, "split": Split.RL}, "for split: heldout only, found split: rl"),
    ],
)
def test_what_can_not_be_is_refused_with_the_next_step(values: dict[str, object], message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        drills.load(Settings(**values))  # type: ignore[arg-type]


def test_asking_for_more_problems_than_there_are_says_how_many_there_are() -> None:
    with pytest.raises(
        RecipeError, match=r"asks for 5000 problems of lattice.* has only \d{3} that are distinct"
    ) as hit:
        drills.load(Settings(families=("lattice",), count=5000, split=Split.HELDOUT))
    told = int(str(hit.value).split("has only ")[1].split()[0])
    assert len(drills.load(Settings(families=("lattice",), count=told, split=Split.HELDOUT))) == told
    with pytest.raises(RecipeError, match="in which the flaw shows"):
        drills.load(Settings(families=("lattice",), count=told, split=Split.HELDOUT, flaw_shows=1.0))


@pytest.mark.parametrize("name", ["sudoku/1-2/w0", "lcm/1-2-x/w0", "lcm/6-8/w0", "lcm/6-8-50/w0"])
def test_a_problem_of_another_source_or_with_another_answer_has_no_program_here(name: str) -> None:
    with pytest.raises(DataError, match="load it again"):
        drills.worked_solution(Settings(), Problem(id=name, question="?", answer="73"), seed=0)


@pytest.mark.parametrize(
    ("family", "params", "gold", "flawed"),
    [
        ("lcm", (6, 8, 50), 72, 56),
        ("gcd", (12, 18), 12, None),
        ("linear", (7, 5, 3, 45), 10, None),
        ("powers", (7, 4, 20, 30), 21, 21),
        ("powers", (7, 3, 20, 30), 3, 33),
        ("digit_sum", (11, 11), 4, 3),
        ("divisors", (12, 4), 22, 18),
        ("lattice", (0, 4), 6, 4),
        ("lattice", (1, 4), 1, 1),
        ("primes", (10, 13), 2, 1 + 1),
        ("primes", (10, 14), 3, 2),
        ("multiples", (4, 6, 24), 8, 9),
        ("word", (3, 4, 5, 6), 13, None),
        ("chain", (10, 0, 5, 2, 3, 1, 40, 3, 4), 1, None),
    ],
)
def test_gold_and_flaw_worked_by_hand(family: str, params: tuple[int, ...], gold: int, flawed: int | None) -> None:
    found = families()[family]
    assert found.gold(*params) == gold
    assert (found.flaw.answer(*params) if found.flaw else None) == flawed
