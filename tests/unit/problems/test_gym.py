"""reasoning-gym as a source of problems."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import re
import sys
import warnings

import pytest

from thincode.errors import MissingExtraError, RecipeError
from thincode.problems import Problem, WorkedSolution
from thincode.problems.drills import Split
from thincode.problems.sources import gym
from thincode.problems.sources.gym import FAMILIES, Settings

installed = pytest.mark.skipif(
    importlib.util.find_spec("reasoning_gym") is None, reason="needs reasoning-gym: pip install 'thincode[gym]'"
)


def last_output(solution: WorkedSolution) -> str:
    namespace: dict[str, object] = {}
    outputs: list[str] = []
    for block in solution.blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(block(outputs), namespace)
        outputs.append(printed.getvalue().strip())
    return outputs[-1]


@installed
@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_on_offer_gives_integers(name: str) -> None:
    for problem in gym.load(Settings(families=(name,), count=15)):
        assert re.fullmatch(r"-?\d+", problem.answer), problem
        assert problem.tags["family"] == name


@installed
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("gcd", {}),
        ("gcd", {"max_numbers": 4}),
        ("lcm", {}),
        ("count_primes", {}),
        ("count_primes", {"max_n": 30}),
        ("products", {}),
        ("chain_sum", {}),
        ("chain_sum", {"max_digits": 2}),
    ],
)
def test_the_worked_solution_prints_the_package_s_own_answer(name: str, options: dict[str, int]) -> None:
    settings = Settings(families=(name,), count=60, options={name: options})
    for problem in gym.load(settings):
        solution = gym.worked_solution(settings, problem, seed=0)
        assert solution is not None
        assert last_output(solution) == problem.answer, problem
        assert not re.search(r"\d", solution.plan)


@installed
@pytest.mark.parametrize(("name", "options"), [("lcm", {"min_numbers": 3, "max_numbers": 3}), ("count_bits", {})])
def test_what_it_can_not_solve_it_does_not_pretend_to_solve(name: str, options: dict[str, int]) -> None:
    settings = Settings(families=(name,), count=5, options={name: options})
    assert {gym.worked_solution(settings, p, seed=0) for p in gym.load(settings)} == {None}


def test_a_problem_of_another_source_has_no_program_here() -> None:
    assert gym.worked_solution(Settings(), Problem(id="a", question="?", answer="1"), seed=0) is None


@installed
def test_splits_share_no_question_over_seeds() -> None:
    def questions(split: Split) -> set[str]:
        return {
            problem.question
            for seed in range(3)
            for problem in gym.load(Settings(families=("lcm",), count=100, seed=seed, split=split))
        }

    train, rl, heldout = (questions(split) for split in Split)
    assert not train & rl
    assert not train & heldout
    assert not rl & heldout


@installed
def test_neighboring_seeds_share_few_questions() -> None:
    drawn = [{p.question for p in gym.load(Settings(families=("gcd",), count=200, seed=seed))} for seed in (0, 1)]
    assert len(drawn[0] & drawn[1]) < 20


@installed
def test_its_warnings_are_silenced_locally_only() -> None:
    before = list(warnings.filters)
    gym.load(Settings(count=5))
    assert warnings.filters == before


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"families": ("sudoku",)}, "'sudoku' is no family with integer answers"),
        ({"options": {"gdc": {}}}, "'gdc' is no family"),
        ({"families": ()}, "name at least one"),
    ],
)
def test_unknown_families_are_refused_without_the_package(values: dict[str, object], message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        gym.load(Settings(**values))  # type: ignore[arg-type]


@installed
@pytest.mark.parametrize(
    ("options", "count", "message"),
    [
        ({"gcd": {"digits": 3}}, 5, r"options.gcd: reasoning-gym refuses \{'digits': 3\}"),
        ({"gcd": {"min_value": 9, "max_value": 1}}, 5, "options.gcd: reasoning-gym refuses"),
        ({"gcd": {"max_value": 3}}, 50, r"gave only \d+ that are distinct"),
    ],
)
def test_options_it_refuses_and_too_small_a_family_are_the_recipe_s_mistakes(
    options: dict[str, dict[str, int]], count: int, message: str
) -> None:
    with pytest.raises(RecipeError, match=message):
        gym.load(Settings(families=("gcd",), count=count, options=options))


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "reasoning_gym", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'thincode\[gym\]'"):
        gym.load(Settings())
