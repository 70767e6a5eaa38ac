"""Sieve: which of a distillation's records teach the student, and why the others don't.

for each record, in the order it was written:   run its blocks again, where a filter asks for that
    keep it if every filter of the recipe lets it pass; else count it under the first one's reason

Verdicts stand in `verdicts.jsonl`, one line a record, and are made anew as a whole: other filters need no new samples. What a
second run of the blocks gave stands in `reruns.jsonl` and is not made twice.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from .. import atomic
from ..errors import DataError, RunFolderError
from ..grading import Graded, Rerun, Sieve, records
from ..interpreter import Interpreter, Status
from ..runlog import Log, read_log
from ..settings import Kind
from ..training import models
from ..trajectory import Trajectory
from ..trajectory.formats import Format
from ..trajectory.store import LOG, read
from ..trajectory.tokenizer import Tokenizer
from ..trajectory.tokens import encode
from .recipe import DistillSettings
from .workshop import ShowProgress, Workshop

VERDICTS = "verdicts.jsonl"
RERUNS = "reruns.jsonl"
AT_ONCE = 32
"""Trajectories run again at once."""

Key = tuple[str, int, str, int]


def run(
    settings: DistillSettings,
    *,
    folder: Path,
    shop: Workshop,
    progress: ShowProgress,
    flaws: Mapping[str, str],
    more: Mapping[str, Any],
) -> dict[str, Any]:
    """Judge every record of a folder.

    Args:
        settings: filters, and the student whose tokens are counted.
        folder: gets `verdicts.jsonl`, `funnel.json` and, where a filter asks for it, `reruns.jsonl`.
        shop: interpreter, event loop, format.
        progress: makes the line that shows how far it is.
        flaws: by problem id, what the teacher is known to do wrong there.
        more: what the funnel shall hold besides, such as the teacher's cost.

    Returns:
        The funnel.
    """
    student = Tokenizer.load(models.local_folder(settings.student)) if settings.student else None
    rows = _Rows(folder, shop.format, student)
    if any(getattr(kind.module, "RERUNS", False) for kind in settings.filters):
        _run_again(rows, settings.filters, shop, progress)
    sieve, funnel = Sieve(settings.filters), _Funnel(flaws)
    verdicts = []
    for graded in rows.all():
        verdict = sieve.judge(graded)
        funnel.add(graded, kept=verdict.keep, reason=verdict.reason)
        verdicts.append({"key": graded.trajectory.address.key, "keep": verdict.keep, "reason": verdict.reason})
    atomic.write_text(folder / VERDICTS, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in verdicts))
    found = {**funnel.json(), **more}
    atomic.write_json(folder / "funnel.json", found)
    return found


class _Rows:
    """The records of a folder, as filters see them."""

    def __init__(self, folder: Path, format: Format, student: Tokenizer | None) -> None:
        self.folder = folder
        self._format = format
        self._student = student

    def reruns(self) -> dict[Key, Rerun]:
        return {_key(line["key"]): Rerun(line["same"], line["lost"]) for line in read_log(self.folder / RERUNS)}

    def all(self) -> Iterator[Graded]:
        reruns = self.reruns()
        for record in read(self.folder, ids=self._student is None):
            graded = records.graded_from_record(record.trajectory, record.annotations)
            yield replace(
                graded,
                trajectory=self._counted(graded.trajectory),
                rerun=reruns.get(graded.trajectory.address.key),
            )

    def _counted(self, trajectory: Trajectory) -> Trajectory:
        """With the spans the student's tokenizer gives it."""
        if self._student is None:
            return trajectory
        # The teacher's prompt is not the student's; only what stands behind it is counted.
        return encode(replace(trajectory, tokens=None), self._format, self._student, prompt=trajectory.question + "\n")


def _run_again(rows: _Rows, filters: Sequence[Kind], shop: Workshop, progress: ShowProgress) -> None:
    """Run the blocks of every record again that the other pure filters let pass."""
    pure = Sieve([kind for kind in filters if hasattr(kind.module, "judge") and not hasattr(kind.module, "RERUNS")])
    there = rows.reruns()
    wanted = [graded.trajectory.address.key for graded in rows.all() if pure.judge(graded).keep]
    missing = {key for key in wanted if key not in there or there[key].lost}
    log = Log(rows.folder / RERUNS)
    with progress("run again", total=len(wanted), unit="trajectories", done=len(wanted) - len(missing)) as line:

        def note(trajectory: Trajectory, rerun: Rerun) -> None:
            log.append({"key": trajectory.address.key, "same": rerun.same, "lost": rerun.lost})
            line.advance(1)

        waiting = (graded.trajectory for graded in rows.all() if graded.trajectory.address.key in missing)

        async def worker() -> None:
            for trajectory in waiting:
                note(trajectory, await again(trajectory, interpreter=shop.interpreter, format=shop.format))

        async def crowd() -> None:
            async with asyncio.TaskGroup() as group:
                for _ in range(AT_ONCE):
                    group.create_task(worker())

        shop.loop.call(crowd())
    log.sync()
    log.close()


async def again(trajectory: Trajectory, *, interpreter: Interpreter, format: Format) -> Rerun:
    """Run a trajectory's blocks in a fresh session with a seed of its own, and compare what they print."""
    async with await interpreter.session(seed=trajectory.address.seed("rerun")) as session:
        for number, (block, output) in enumerate(zip(trajectory.blocks, trajectory.outputs, strict=True)):
            result = await session.run(block.content)
            if result.status is Status.LOST:
                return Rerun(number, lost=True)
            if format.output(result.output).body != output.content:
                return Rerun(number)
    return Rerun(len(trajectory.blocks))


class _Funnel:
    """From problems to kept trajectories."""

    def __init__(self, flaws: Mapping[str, str]) -> None:
        self._flaws = flaws
        self._problems: set[str] = set()
        self._dropped: Counter[str] = Counter()
        self._by_source: dict[str, Counter[str]] = defaultdict(Counter)

    def add(self, graded: Graded, *, kept: bool, reason: str) -> None:
        self._problems.add(graded.problem.id)
        tags = graded.problem.tags
        tally = self._by_source[tags.get("family") or tags.get("source") or "all"]
        tally["sampled"] += 1
        if kept:
            tally["kept"] += 1
            tally["lucky"] += bool(self._flaws.get(graded.problem.id))
        else:
            self._dropped[reason] += 1

    def json(self) -> dict[str, Any]:
        """`lucky` are kept programs that carry a flaw of the teacher."""
        total = sum(self._by_source.values(), Counter[str]())
        return {
            "problems": len(self._problems),
            "sampled": total["sampled"],
            "dropped": dict(self._dropped.most_common()),
            "kept": total["kept"],
            "lucky": total["lucky"],
            "by_source": {name: dict(tally) for name, tally in sorted(self._by_source.items())},
        }


def lines(funnel: Mapping[str, Any]) -> list[str]:
    """The funnel for a terminal: from problems to kept, and each source's share of what was kept."""
    sampled, kept = funnel["sampled"], funnel["kept"]

    def row(count: int, words: str, of: int) -> str:
        return f"{count:>9,}  {count / of if of else 0:>6.1%}  {words}"

    found = [f"{funnel['problems']:>9,}          problems", row(sampled, "trajectories sampled", sampled)]
    found += [row(-count, f"dropped: {reason}", sampled) for reason, count in funnel["dropped"].items()]
    found.append(row(kept, "kept", sampled))
    if len(funnel["by_source"]) > 1:
        found += ["", "     kept   share  of what was sampled from"]
        found += [row(tally.get("kept", 0), name, tally["sampled"]) for name, tally in funnel["by_source"].items()]
    return found


def kept(folder: Path) -> list[Trajectory]:
    """The trajectories that a distillation kept, in the order of their addresses.

    Raises:
        DataError: there is no distillation in the folder.
        RunFolderError: it was not finished.
    """
    if not (folder / LOG).is_file():
        raise DataError(f"{folder}: no distillation there (no {LOG}); name the folder that thincode distill wrote")
    keep = kept_keys(folder)
    found = [record.trajectory for record in read(folder, ids=False) if record.trajectory.address.key in keep]
    return sorted(found, key=lambda trajectory: trajectory.address)


def kept_keys(folder: Path) -> set[Key]:
    """The addresses of the trajectories that a distillation kept.

    Raises:
        RunFolderError: it was not finished.
    """
    if not (folder / VERDICTS).is_file():
        raise RunFolderError(
            f"{folder}: its records were not judged yet (no {VERDICTS}); finish it: thincode distill RECIPE --out {folder} --resume"
        )
    return {_key(line["key"]) for line in read_log(folder / VERDICTS) if line["keep"]}


def _key(values: Sequence[Any]) -> Key:
    stage, step, problem, sample = values
    return stage, step, problem, sample
