"""How every contest is loaded: from the hub or from a local file, whole or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ...errors import DataError
from ...problems import Problem
from ...problems.sources import hub
from ...settings import NonNegativeInt, PositiveInt, settings


@settings
class Place:
    """Where the problems are, and how many of them are wanted."""

    path: Path | None = None
    """A JSONL or parquet file with `problem` and `answer`; null takes the hub."""
    revision: str | None = None
    """Commit on the hub."""
    first: NonNegativeInt = 0
    """Problems left out at the start."""
    limit: PositiveInt | None = None
    """At most so many problems."""


def load(place: Place, *, name: str, dataset: str, count: int) -> Sequence[Problem]:
    """The chosen problems of a contest.

    Args:
        place: where they are and how many are wanted.
        name: value of the tag `benchmark`.
        dataset: a key of `problems.sources.hub.DATASETS`.
        count: how many problems the whole contest has.

    Raises:
        DataError: it has another number of problems, or none is left.
    """
    found = hub.load(hub.Settings(dataset=dataset, path=place.path, revision=place.revision))
    where = place.path or hub.DATASETS[dataset].hub
    if len(found) != count:
        raise DataError(
            f"{where}: {len(found)} problems, but {name} has {count}; give the whole contest and choose with first and "
            "limit, or read the file with `problems: {kind: jsonl, path: …}`, under no contest's name"
        )
    chosen = found[place.first :][: place.limit]
    if not chosen:
        raise DataError(f"{where}: {name} has {count} problems, none from number {place.first} on; lower first")
    return [replace(problem, tags={"benchmark": name, **problem.tags}) for problem in chosen]
