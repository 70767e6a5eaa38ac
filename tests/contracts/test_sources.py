"""What every source of problems must give; a new file in the room is tested by being there."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from thincode.problems import Problem
from thincode.settings import Kind, dump, kind, kinds, parse

ROOM = "thincode.problems.sources"
ROWS = [{"id": f"p{i}", "problem": f"What is {i} + {i}?", "answer": 2 * i} for i in range(1, 8)]


@pytest.fixture(params=kinds(ROOM))
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Kind:
    """Each source with small settings of its own."""
    file = tmp_path / "seven.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    settings: dict[str, dict[str, Any]] = {
        "drills": {"count": 40},
        "gym": {"count": 20},
        "hub": {"dataset": "aime25", "path": file},
        "jsonl": {"path": file},
        "mix": {
            "sources": [{"kind": "jsonl", "path": str(file)}, {"kind": "hub", "dataset": "aime25", "path": str(file)}]
        },
    }
    if request.param == "gym" and importlib.util.find_spec("reasoning_gym") is None:
        pytest.skip("needs reasoning-gym: pip install 'thincode[gym]'")
    return kind(ROOM, request.param, **settings[request.param])


def load(source: Kind) -> list[Problem]:
    return list(source.module.load(source.settings))


def test_the_same_settings_give_the_same_problems_in_the_same_order(source: Kind) -> None:
    assert load(source) == load(source)
    assert len(load(source)) >= 7


def test_ids_are_unique_and_questions_and_answers_are_text(source: Kind) -> None:
    problems = load(source)
    assert len({problem.id for problem in problems}) == len(problems)
    for problem in problems:
        for text in (problem.id, problem.question, problem.answer):
            assert isinstance(text, str)
            assert text == text.strip() != ""
        assert all(isinstance(key, str) and isinstance(value, str) for key, value in problem.tags.items())


def test_the_gold_answer_does_not_stand_among_the_tags(source: Kind) -> None:
    assert all("answer" not in problem.tags for problem in load(source))


def test_a_worked_solution_has_a_plan_and_three_blocks_or_is_none(source: Kind) -> None:
    for problem in load(source):
        solution = source.module.worked_solution(source.settings, problem, seed=0)
        if solution is not None:
            assert solution.plan
            assert len(solution.blocks) >= 3
            assert len(solution.thoughts) in (0, len(solution.blocks))


def test_settings_survive_writing_and_reading(source: Kind) -> None:
    assert parse(type(source.settings), dump(source.settings)) == source.settings
