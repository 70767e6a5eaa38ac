"""Which problems are asked, and which are dropped."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thincode.engines import Sampling
from thincode.errors import RecipeError
from thincode.settings import dump, parse
from thincode.training.curriculum import (
    Curriculum,
    DifficultyFilter,
    EarlyStop,
    Group,
    Stage,
    begin,
    draw,
    is_over,
    judge,
    record,
    restore,
    validated,
)

NAMES = tuple("abcdefghij")


def steps(curriculum: Curriculum, count: int, number: int) -> tuple[list[list[str]], Curriculum]:
    asked = []
    for _ in range(number):
        names, curriculum = draw(curriculum, count)
        asked.append(names)
    return asked, curriculum


@settings(deadline=None)
@given(seed=st.integers(0, 50), count=st.integers(1, 10))
def test_no_step_asks_a_problem_twice_and_no_epoch_misses_one(seed: int, count: int) -> None:
    asked, _ = steps(Curriculum(active=NAMES, seed=seed), count, 20)
    assert all(len(set(names)) == count for names in asked)
    stream = [name for names in asked for name in names]
    for start in range(0, len(stream) - len(NAMES) + 1, len(NAMES)):
        assert sorted(stream[start : start + len(NAMES)]) == sorted(NAMES)


def test_the_order_comes_from_seed_and_epoch() -> None:
    first, _ = steps(Curriculum(active=NAMES, seed=1), 10, 2)
    again, _ = steps(Curriculum(active=NAMES, seed=1), 10, 2)
    other, _ = steps(Curriculum(active=NAMES, seed=2), 10, 2)
    assert first == again
    assert first[0] != first[1]
    assert first != other


def test_a_step_asks_all_there_are_when_few_are_left() -> None:
    names, curriculum = draw(Curriculum(active=("a", "b"), seed=0), 16)
    assert sorted(names) == ["a", "b"]
    assert sorted(draw(curriculum, 16)[0]) == ["a", "b"]
    assert draw(Curriculum(active=(), seed=0), 4)[0] == []


@settings(deadline=None)
@given(done=st.integers(0, 12), count=st.integers(1, 10))
def test_a_restored_curriculum_goes_on_the_same(done: int, count: int) -> None:
    _, curriculum = steps(Curriculum(active=NAMES, seed=4), count, done)
    curriculum = record(curriculum, {"a": Group(3, 2, 8)})
    copy = restore(json.loads(json.dumps(curriculum.state())))
    assert copy == curriculum
    assert steps(copy, count, 5)[0] == steps(curriculum, count, 5)[0]


def test_only_the_latest_group_decides() -> None:
    curriculum = Curriculum(active=NAMES, seed=0)
    curriculum = record(curriculum, {"a": Group(0, 8, 8), "b": Group(0, 7, 8), "c": Group(0, 8, 8)})
    curriculum = record(curriculum, {"a": Group(9, 7, 8), "b": Group(9, 8, 8), "c": Group(9, 0, 0)})
    # All samples of c's second group were lost: it says nothing.
    assert judge(curriculum, DifficultyFilter()).dropped == {"always solved": ("b", "c"), "never solved": ()}


def test_a_filter_sorts_problems_and_says_why() -> None:
    measured = {"a": Group(0, 8, 8), "b": Group(0, 7, 8), "c": Group(0, 0, 8)}
    curriculum = record(Curriculum(active=NAMES, seed=0), measured)
    found = judge(curriculum, DifficultyFilter(drop_unsolved=True))
    assert found.dropped == {"always solved": ("a",), "never solved": ("c",)}
    assert found.kept == tuple("bdefghij")
    assert judge(curriculum, DifficultyFilter(drop_solved=False)).kept == NAMES


def test_a_stage_that_drops_begins_an_epoch() -> None:
    _, curriculum = draw(Curriculum(active=NAMES, seed=0), 3)
    curriculum = record(curriculum, {"a": Group(0, 8, 8)})
    later = begin(curriculum, 5, judge(curriculum, DifficultyFilter()))
    assert "a" not in later.active
    assert (later.epoch, later.position, later.stage, later.first) == (1, 0, 1, 5)
    same = begin(curriculum, 5, None)
    assert (same.active, same.epoch, same.position) == (NAMES, 0, 3)


def test_a_stage_with_everything_solved_keeps_its_problems() -> None:
    curriculum = record(Curriculum(active=("a", "b"), seed=1), {"a": Group(0, 4, 4), "b": Group(0, 4, 4)})
    found = judge(curriculum, DifficultyFilter())
    assert (found.kept, found.dropped) == (("a", "b"), {"always solved": (), "never solved": ()})


def test_a_stage_is_over_when_its_steps_are_spent() -> None:
    stages = [Stage(steps=3), Stage(steps=2)]
    curriculum = Curriculum(active=NAMES, seed=0)
    assert is_over(curriculum, stages, 0)  # none has begun
    curriculum = begin(curriculum, 0, None)
    assert [is_over(curriculum, stages, step) for step in range(4)] == [False, False, False, True]
    curriculum = begin(curriculum, 3, None)
    assert [is_over(curriculum, stages, step) for step in (3, 4, 5)] == [False, False, True]


def test_a_stage_is_over_when_validations_bring_nothing() -> None:
    stop = EarlyStop(patience=2, gain=0.01)
    stages = [Stage(steps=100, early_stop=stop), Stage(steps=100, early_stop=stop)]
    curriculum = begin(Curriculum(active=NAMES, seed=0), 0, None)
    over = []
    for accuracy in (0.5, 0.505, 0.6, 0.6, 0.61):
        curriculum = validated(curriculum, accuracy, stop)
        over.append(is_over(curriculum, stages, 10))
    assert over == [False, False, False, False, True]
    assert not is_over(begin(curriculum, 10, None), stages, 10)


def test_calls_grow_by_step() -> None:
    stage = Stage(steps=300, calls=2, calls_from=((100, 3), (200, 4)))
    assert [stage.calls_at(step) for step in (0, 99, 100, 199, 200, 299)] == [2, 2, 3, 3, 4, 4]
    assert stage.most_calls == 4
    read = parse(Stage, {"steps": 300, "calls": 2, "calls_from": [[100, 3], [200, 4]]})
    assert read == stage
    assert parse(Stage, dump(stage)) == stage
    with pytest.raises(RecipeError, match="calls_from: steps must rise"):
        parse(Stage, {"steps": 300, "calls_from": [[200, 4], [100, 3]]})


def test_a_stage_may_have_its_own_algorithm_and_sampling() -> None:
    stage = parse(
        Stage, {"steps": 1, "algorithm": {"kind": "dapo", "dual_clip": 3.0}, "sampling": {"temperature": 0.8}}
    )
    assert stage.algorithm is not None
    assert (stage.algorithm.name, stage.algorithm.settings.dual_clip) == ("dapo", 3.0)
    assert stage.sampling == Sampling(temperature=0.8)
    assert parse(Stage, dump(stage)) == stage
    with pytest.raises(RecipeError, match="dap"):
        parse(Stage, {"steps": 1, "algorithm": "dap"})
