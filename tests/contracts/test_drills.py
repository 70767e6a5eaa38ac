"""What every drill family must give; a new file in the room is tested by being there."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pytest

from thincode.problems import Problem, WorkedSolution
from thincode.problems.drills import Cut, Split, families, split_of
from thincode.problems.sources import drills
from thincode.problems.sources.drills import Settings, Wordings

EVERY = pytest.mark.parametrize("name", sorted(families()))
FLAWED = pytest.mark.parametrize("name", sorted(n for n, f in families().items() if f.flaw))


def run(solution: WorkedSolution) -> list[str]:
    """What the blocks print, each run in the namespace that the earlier ones left."""
    namespace: dict[str, object] = {}
    outputs: list[str] = []
    for block in solution.blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(block(outputs), namespace)
        outputs.append(printed.getvalue().strip())
    return outputs


def load(name: str, **values: object) -> Sequence[Problem]:
    return drills.load(replace(Settings(families=(name,), count=200), **values))  # type: ignore[arg-type]


def params_of(problem: Problem) -> tuple[int, ...]:
    return tuple(int(part) for part in problem.id.split("/")[1].split("-"))


@EVERY
@pytest.mark.parametrize("level", [1, 2])
def test_the_program_prints_the_gold_answer(name: str, level: int) -> None:
    settings = Settings(families=(name,), level=level)
    for problem in load(name, level=level):
        solution = drills.worked_solution(settings, problem, seed=1)
        outputs = run(solution)
        assert outputs[-1] == problem.answer, problem
        assert solution.flaw == ""
        assert len(outputs) >= 3
        assert problem.tags["blocks"] == str(len(outputs))


@FLAWED
def test_a_flawed_program_is_wrong_exactly_where_the_flaw_shows(name: str) -> None:
    settings = Settings(families=(name,), fallible=1.0)
    seen = set()
    for problem in load(name, flaw_shows=0.5):
        solution = drills.worked_solution(settings, problem, seed=1)
        assert solution.flaw == problem.tags["flaw"] == families()[name].flaw.name  # type: ignore[union-attr]
        assert (run(solution)[-1] != problem.answer) == (problem.tags["flaw_shows"] == "yes"), problem
        seen.add(problem.tags["flaw_shows"])
    assert seen == {"yes", "no"}


@EVERY
def test_a_thought_before_each_block_states_what_it_prints_flawed_or_not(name: str) -> None:
    for fallible in (0.0, 1.0):
        settings = Settings(families=(name,), fallible=fallible)
        for problem in load(name, count=50):
            solution = drills.worked_solution(settings, problem, seed=1)
            for thought, output in zip(solution.thoughts, run(solution), strict=True):
                assert re.findall(r"\d+", thought) == [output], problem


@EVERY
@pytest.mark.parametrize("fallible", [0.0, 1.0])
def test_the_words_of_a_solution_end_in_what_its_program_prints(name: str, fallible: float) -> None:
    settings = Settings(families=(name,), fallible=fallible)
    for problem in load(name, count=50):
        solution = drills.worked_solution(settings, problem, seed=1)
        printed = run(solution)[-1]
        assert solution.answer == printed, problem
        assert re.findall(r"\d+", " ".join(solution.text or solution.thoughts))[-1] == printed, problem


@EVERY
@pytest.mark.parametrize("fallible", [0.0, 1.0])
def test_every_cut_of_a_program_prints_the_same_answer(name: str, fallible: float) -> None:
    settings = Settings(families=(name,), fallible=fallible)
    for problem in load(name, count=30):
        steps, dense, alone = (
            drills.worked_solution(replace(settings, cut=cut), problem, seed=1)
            for cut in (Cut.STEPS, Cut.DENSE, Cut.ALONE)
        )
        printed = run(steps)
        assert run(dense)[-1] == printed[-1], problem
        assert len(dense.blocks) > len(steps.blocks)
        assert all(block(run(dense)).count("\n") <= 2 for block in dense.blocks), problem
        outputs: list[str] = []
        for block in alone.blocks:
            outputs += run(WorkedSolution(plan="", blocks=(partial(said, block(outputs)),)))
        assert outputs == printed, problem


@EVERY
def test_the_plan_is_one_sentence_of_strategy_without_a_number(name: str) -> None:
    plan = families()[name].plan
    assert not re.search(r"\d", plan)
    assert plan.endswith(".")
    assert plan.count(".") == 1
    assert "\n" not in plan


@EVERY
def test_there_are_six_wordings_that_differ_and_name_every_number(name: str) -> None:
    family = families()[name]
    problem = load(name, count=1)[0]
    questions = {family.question(params_of(problem), index) for index in range(len(family.wordings))}
    assert len(questions) == len(family.wordings) >= 6
    numbers = {n for question in questions for n in [tuple(sorted(re.findall(r"\d+", question)))]}
    assert len({tuple(sorted({*n} - {"0", "1", "2"})) for n in numbers}) == 1


@EVERY
def test_the_last_block_needs_what_earlier_blocks_left_or_printed(name: str) -> None:
    for problem in load(name, count=20):
        solution = drills.worked_solution(Settings(families=(name,)), problem, seed=1)
        source = solution.blocks[-1](run(solution))
        reads_outputs = source != solution.blocks[-1](["7"] * len(solution.blocks))
        assert reads_outputs or not runs_alone(source), problem


def said(source: str, _: Sequence[str]) -> str:
    return source


def runs_alone(source: str) -> bool:
    try:
        run(WorkedSolution(plan="", blocks=(lambda _: source,)))
    except NameError:
        return False
    return True


@EVERY
def test_the_same_seed_gives_the_same_problems_and_another_seed_others(name: str) -> None:
    assert load(name, seed=3) == load(name, seed=3)
    assert load(name, seed=3) != load(name, seed=4)


@EVERY
@pytest.mark.parametrize("seeds", [1, pytest.param(5, marks=pytest.mark.slow)])
def test_held_out_problems_share_no_parameters_with_training_or_rl_over_seeds(name: str, seeds: int) -> None:
    family = families()[name]

    def drawn(split: Split) -> set[tuple[int, ...]]:
        return {
            family.canonical(params_of(problem))
            for seed in range(seeds)
            for level in (1, 2)
            for problem in load(name, split=split, seed=seed, level=level, count=300)
        }

    train, rl, heldout = (drawn(split) for split in Split)
    assert not heldout & train
    assert not heldout & rl
    assert not train & rl


@EVERY
def test_no_parameters_come_twice_and_ids_are_unique(name: str) -> None:
    problems = load(name, count=700)
    assert len({families()[name].canonical(params_of(p)) for p in problems}) == len({p.id for p in problems}) == 700


@EVERY
def test_symmetric_parameters_are_one_problem(name: str) -> None:
    family = families()[name]
    for problem in load(name, count=30):
        params = params_of(problem)
        swapped = (*reversed(params[: family.symmetric]), *params[family.symmetric :])
        assert family.gold(*swapped) == family.gold(*params)
        assert split_of(f"{name} {family.canonical(swapped)}") == Split.TRAIN


@EVERY
def test_unseen_wordings_are_the_last_third_and_only_held_out(name: str) -> None:
    first_unseen = families()[name].seen_wordings
    table = [(Wordings.SEEN, 0), (Wordings.MIXED, 30), (Wordings.UNSEEN, 90)]
    for wordings, unseen in table:
        problems = load(name, split=Split.HELDOUT, count=90, wordings=wordings)
        tagged = [p for p in problems if p.tags["unseen_wording"] == "yes"]
        assert len(tagged) == unseen
        assert all((int(p.tags["wording"]) >= first_unseen) == (p in tagged) for p in problems)
