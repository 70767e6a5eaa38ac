"""Problems from a JSONL file: one object a line with a question and a gold answer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from ... import _jsonl
from ...errors import DataError
from ...settings import settings
from .. import Problem
from ._rows import answer_text, field_at


@settings
class Settings:
    """Which file, and where the question and the answer stand in a line. Field names may reach in: `meta.answer`."""

    path: Path
    id_field: str = "id"
    """Lines without it are numbered: file name and line."""
    question_field: str = "problem"
    answer_field: str = "answer"
    tag_fields: tuple[str, ...] = ()
    """Fields that become tags; lines may lack them."""
    first: Annotated[int, Field(ge=0)] = 0
    """Problems left out at the start."""
    limit: Annotated[int, Field(ge=1)] | None = None
    """At most so many problems."""


def load(settings: Settings) -> Sequence[Problem]:
    """The problems in the file's order.

    Raises:
        DataError: the file is missing or holds no problem asked for; a line is no JSON object, lacks its question or
            its answer, or repeats an id (file and line named). Lines outside `first` and `limit` are checked too.
    """
    if not settings.path.is_file():
        raise DataError(f"{settings.path}: no such file; problems are read from a JSONL file, one object a line")
    problems: list[Problem] = []
    places: dict[str, int] = {}
    for number, row in _jsonl.read(settings.path):
        problem = _problem(settings, row, number)
        if problem.id in places:
            raise DataError(
                f"{settings.path}:{number}: id {problem.id!r} stands in line {places[problem.id]} already; ids must be "
                f"unique. Change one, or name another field with id_field"
            )
        places[problem.id] = number
        problems.append(problem)
    end = None if settings.limit is None else settings.first + settings.limit
    if not problems[settings.first : end]:
        raise DataError(
            f"{settings.path}: has {len(problems)} problems, none from number {settings.first} on; lower first"
        )
    return problems[settings.first : end]


def worked_solution(settings: Settings, problem: Problem, *, seed: int) -> None:
    """A file holds no programs: always None."""
    return


def _problem(settings: Settings, row: dict[str, Any], number: int) -> Problem:
    place = f"{settings.path}:{number}"
    known = ", ".join(row) or "none"
    question = field_at(row, settings.question_field)
    if not isinstance(question, str) or not question.strip():
        raise DataError(
            f"{place}: no question in {settings.question_field!r}, found {question!r}; it must be text. "
            f"Fields of this line: {known}. Name the right one with question_field"
        )
    raw = field_at(row, settings.answer_field)
    answer = answer_text(raw)
    if answer is None:
        raise DataError(
            f"{place}: no answer in {settings.answer_field!r}, found {raw!r}; it must be text or a number. "
            f"Fields of this line: {known}. Name the right one with answer_field"
        )
    name = answer_text(field_at(row, settings.id_field))
    found = {field: field_at(row, field) for field in settings.tag_fields}
    tags = {field: answer_text(value) or "" for field, value in found.items() if value is not None}
    return Problem(id=name or f"{settings.path.stem}:{number}", question=question.strip(), answer=answer, tags=tags)
