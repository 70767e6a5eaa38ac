"""Several sources as one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from thincode.errors import DataError, RecipeError
from thincode.problems import Problem
from thincode.settings import Kind, kind

ROOM = "thincode.problems.sources"


def jsonl(path: Path, rows: list[tuple[str, str]]) -> dict[str, str]:
    path.write_text("".join(json.dumps({"id": id, "problem": asked, "answer": "1"}) + "\n" for id, asked in rows))
    return {"kind": "jsonl", "path": str(path)}


def load(mix: Kind) -> list[Problem]:
    return list(mix.module.load(mix.settings))


def test_a_question_that_stands_in_two_sources_is_asked_once(tmp_path: Path) -> None:
    first = jsonl(tmp_path / "a.jsonl", [("a1", "1?"), ("a2", "2?")])
    second = jsonl(tmp_path / "b.jsonl", [("b1", "2?"), ("b2", "3?")])
    assert [problem.id for problem in load(kind(ROOM, "mix", sources=[first, second]))] == ["a1", "a2", "b2"]


def test_one_id_for_two_questions_is_refused(tmp_path: Path) -> None:
    first, second = jsonl(tmp_path / "a.jsonl", [("x", "1?")]), jsonl(tmp_path / "b.jsonl", [("x", "2?")])
    with pytest.raises(DataError, match="id 'x' stands in two sources"):
        load(kind(ROOM, "mix", sources=[first, second]))


def test_a_source_that_knows_a_program_teaches(tmp_path: Path) -> None:
    mix = kind(ROOM, "mix", sources=[jsonl(tmp_path / "a.jsonl", [("a1", "1?")]), {"kind": "drills", "count": 20}])
    taught = [mix.module.worked_solution(mix.settings, problem, seed=0) is not None for problem in load(mix)]
    assert taught == [False] + [True] * 20


def test_a_mix_of_nothing_is_refused() -> None:
    with pytest.raises(RecipeError, match="sources: empty; name at least one source"):
        kind(ROOM, "mix", sources=[])
