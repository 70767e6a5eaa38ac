"""Compare evaluations that are there: each with the first, on the same problems."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..errors import DataError, RunFolderError
from ..evaluation import Scorecard
from ..evaluation.paired import compare
from ..evaluation.scorecard import read
from ..grading import Graded, records
from ..trajectory import store


def run(folders: Sequence[Path], *, groups: Sequence[str] = (), seed: int = 0) -> list[Scorecard]:
    """Paired figures of every evaluation against the first one.

    Args:
        folders: two or more; see `evaluation_of`.
        groups: problem tags by which the difference is split.
        seed: of the bootstrap.

    Returns:
        One scorecard a pair, named `b against a`.

    Raises:
        RunFolderError: a folder holds no evaluation.
        DataError: fewer than two folders, or they don't have the same problems and samples.
    """
    if len(folders) < 2:
        raise DataError("name two runs or more: the first is what the others are compared with")
    first, *others = [evaluation_of(folder) for folder in folders]
    before = graded(first)
    cards = []
    for other in others:
        after = graded(other)
        found = compare(before, after, groups=groups, seed=seed)
        problems = {row.problem.id for row in after}
        cards.append(Scorecard(f"{other} against {first}", len(problems), len(after) // len(problems), tuple(found)))
    return cards


def evaluation_of(folder: Path) -> Path:
    """The folder itself if it holds trajectories, else the last evaluation of the pipeline that wrote it.

    Raises:
        RunFolderError: neither.
    """
    if (folder / store.LOG).is_file():
        return folder
    numbered = [path for path in (folder / "evaluate").glob("*-*") if (path / store.LOG).is_file()]
    if not numbered:
        raise RunFolderError(
            f"{folder}: no evaluation there (looked for {store.LOG}, and for evaluate/N-NAME/{store.LOG})"
        )
    return max(numbered, key=lambda path: int(path.name.split("-")[0]))


def graded(folder: Path) -> list[Graded]:
    """All graded trajectories of an evaluation."""
    found = store.read(folder, ids=False)
    return [records.graded_from_record(record.trajectory, record.annotations) for record in found]


def scorecards(folders: Sequence[Path]) -> list[Scorecard]:
    """The scorecards that stand in run folders, each under its folder's name; of a pipeline all that it has.

    Raises:
        RunFolderError: a folder holds none.
        DataError: a file is no scorecard.
    """
    cards = []
    for folder in folders:
        here = [folder] if (folder / "scorecard.json").is_file() else sorted((folder / "evaluate").glob("*-*"))
        found = [path for path in here if (path / "scorecard.json").is_file()]
        if not found:
            raise RunFolderError(
                f"{folder}: no scorecard.json there, nor in evaluate/N-NAME; is the evaluation finished?"
            )
        cards += [read(path / "scorecard.json") for path in found]
    return cards
