"""Several sources as one, in their order; a question that stands in two of them is asked once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

from ...errors import DataError
from ...settings import In, Kind, settings
from .. import Problem, WorkedSolution


@settings
class Settings:
    """Which sources."""

    sources: tuple[Annotated[Kind, In("thincode.problems.sources")], ...]

    def check(self) -> Iterator[tuple[str, str]]:
        """A mix of nothing is a mistake."""
        if not self.sources:
            yield "sources", "empty; name at least one source"


def load(settings: Settings) -> Sequence[Problem]:
    """The problems of all sources; of two with the same question the first counts.

    Raises:
        DataError: two sources give different problems the same id; or see the sources.
    """
    by_id: dict[str, Problem] = {}
    asked: set[str] = set()
    for source in settings.sources:
        for problem in source.module.load(source.settings):
            if problem.question in asked:
                continue
            if problem.id in by_id:
                raise DataError(
                    f"id {problem.id!r} stands in two sources of the mix, for different questions; rename one, or "
                    "name another id_field"
                )
            asked.add(problem.question)
            by_id[problem.id] = problem
    return tuple(by_id.values())


def worked_solution(settings: Settings, problem: Problem, *, seed: int) -> WorkedSolution | None:
    """What the first source that knows a program for `problem` writes."""
    for source in settings.sources:
        try:
            solution: WorkedSolution | None = source.module.worked_solution(source.settings, problem, seed=seed)
        except DataError:  # not one of its problems
            continue
        if solution is not None:
            return solution
    return None
