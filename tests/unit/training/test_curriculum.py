"""Which problems are asked, and which are dropped."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from thincode.training.curriculum import Curriculum, DropSolved, Group, Stage, begin, draw, record, restore, solved

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
    assert solved(curriculum) == ["b", "c"]  # all samples of c's second group were lost: it says nothing


def test_a_stage_drops_what_is_solved_and_begins_an_epoch() -> None:
    _, curriculum = draw(Curriculum(active=NAMES, seed=0), 3)
    curriculum = record(curriculum, {"a": Group(0, 8, 8), "b": Group(0, 7, 8)})
    stage = Stage(steps=5, drop_solved=DropSolved.LAST_EPOCH)
    later, dropped = begin(curriculum, stage)
    assert dropped == ["a"]
    assert "a" not in later.active
    assert (later.epoch, later.position) == (1, 0)
    assert begin(curriculum, Stage(steps=5)) == (curriculum, [])


def test_a_stage_with_everything_solved_keeps_its_problems() -> None:
    curriculum = record(Curriculum(active=("a", "b"), seed=1), {"a": Group(0, 4, 4), "b": Group(0, 4, 4)})
    assert begin(curriculum, Stage(steps=1, drop_solved=DropSolved.LAST_EPOCH)) == (curriculum, [])
