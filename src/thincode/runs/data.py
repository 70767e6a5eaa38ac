"""Looking at records: figures of a folder or a file, its first trajectories, and what differs between two of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import DataError
from ..grading.spans import has_spans, length, plan_share
from ..runlog import read_log
from ..trajectory import SegmentKind, Trajectory
from ..trajectory.formats import Format
from ..trajectory.published import read as read_published
from ..trajectory.store import LOG, read
from . import sieve

QUANTILES = (0.05, 0.5, 0.95, 1.0)
SHOWN = 10
"""Names listed of what differs."""


@dataclass(frozen=True)
class Item:
    """A trajectory and what is known about it."""

    trajectory: Trajectory
    correct: bool | None = None
    verdict: str | None = None
    """`kept`, or the reason a filter dropped it for."""

    @property
    def name(self) -> str:
        """Problem and sample, with the stage and step where a folder has several."""
        stage, step, problem, sample = self.trajectory.address.key
        return f"{stage}/{step}/{problem}#{sample}"


def items(place: Path, *, format: Format) -> Iterator[Item]:
    """The trajectories of a run folder, or of a JSONL file of transcripts in `format`.

    Raises:
        DataError: neither is there.
    """
    if place.is_dir():
        if not (place / LOG).is_file():
            raise DataError(f"{place}: no records there (no {LOG}); name a run folder that holds some")
        verdicts = {tuple(line["key"]): line["reason"] for line in read_log(place / sieve.VERDICTS)}
        for record in read(place, ids=False):
            grade = record.annotations.get("grade")
            correct = bool(grade["correct"]) if grade else None
            yield Item(record.trajectory, correct, verdicts.get(record.trajectory.address.key))
    else:
        yield from (Item(transcript.trajectory) for transcript in read_published(place, format=format))


def stats(found: Sequence[Item]) -> dict[str, Any]:
    """Counts by format, end, block status and verdict; quantiles of length, blocks and plan share."""
    trajectories = [item.trajectory for item in found]
    blocks = [segment.block for trajectory in trajectories for segment in trajectory.blocks if segment.block]
    units = {"tokens" if has_spans(trajectory) else "characters" for trajectory in trajectories}
    lengths = {
        unit: [length(t).total for t in trajectories if has_spans(t) == (unit == "tokens")] for unit in sorted(units)
    }
    shares = [share.value for trajectory in trajectories if (share := plan_share(trajectory)) is not None]
    return {
        "trajectories": len(trajectories),
        "problems": len({trajectory.address.problem for trajectory in trajectories}),
        "formats": _counts(trajectory.format for trajectory in trajectories),
        "ends": _counts(trajectory.end.value for trajectory in trajectories),
        "answered": sum(trajectory.answer is not None for trajectory in trajectories),
        "correct": sum(item.correct for item in found if item.correct is not None),
        "blocks": _counts(block.status.value for block in blocks),
        "verdicts": _counts(item.verdict for item in found if item.verdict is not None),
        "quantiles": {
            **{f"length in {unit}": _quantiles(values) for unit, values in lengths.items()},
            "blocks": _quantiles([len(trajectory.blocks) for trajectory in trajectories]),
            "lines of code": _quantiles([_code_lines(trajectory) for trajectory in trajectories]),
            "plan share": _quantiles(shares),
        },
    }


def stat_lines(found: Mapping[str, Any]) -> list[str]:
    """`stats` for a terminal."""
    plain = [f"{name:<12} {found[name]:,}" for name in ("trajectories", "problems", "answered", "correct")]
    for name in ("formats", "ends", "blocks", "verdicts"):
        plain += [f"{name:<12} {count:>9,}  {value}" for value, count in found[name].items()]
    head = f"\n{'':<22}" + "".join(f"{f'{share:.0%}':>10}" for share in QUANTILES)
    rows = [
        f"{name:<22}" + "".join(f"{value:>10,.4g}" for value in row) for name, row in found["quantiles"].items() if row
    ]
    return [*plain, head, *rows]


def head_lines(item: Item) -> list[str]:
    """One trajectory as text, each segment under its name."""
    trajectory = item.trajectory
    facts = [trajectory.format, trajectory.end.value, f"answer {trajectory.answer}"]
    facts += [] if item.correct is None else ["right" if item.correct else "wrong"]
    facts += [] if item.verdict is None else [item.verdict]
    lines = [f"=== {item.name}: {', '.join(facts)}", trajectory.question.rstrip()]
    for segment in trajectory.segments:
        ran = segment.block
        status = f" ({ran.status.value}{f', {ran.detail}' if ran.detail else ''})" if ran else ""
        lines += [f"--- {segment.kind.value}{status}", segment.content or segment.text.rstrip()]
    return lines


def diff(one: Sequence[Item], other: Sequence[Item]) -> dict[str, Any]:
    """What stands in one only, and what differs under the same name: question, text, block statuses, grade or verdict."""
    left, right = ({item.name: item for item in found} for found in (one, other))
    both = [name for name in left if name in right]
    changed: dict[str, list[str]] = {}
    for name in both:
        for what in _differences(left[name], right[name]):
            changed.setdefault(what, []).append(name)
    return {
        "only in the first": [name for name in left if name not in right],
        "only in the second": [name for name in right if name not in left],
        "in both": len(both),
        "different": changed,
    }


def diff_lines(found: Mapping[str, Any]) -> list[str]:
    """`diff` for a terminal; long lists are cut, and say so."""
    lists = {key: found[key] for key in ("only in the first", "only in the second")}
    lists |= {f"{what} differs": names for what, names in found["different"].items()}
    lines = [f"{found['in both']:>9,}  in both"]
    for what, names in lists.items():
        lines.append(f"{len(names):>9,}  {what}")
        lines += [f"{'':>11}{name}" for name in names[:SHOWN]]
        lines += [f"{'':>11}and {len(names) - SHOWN:,} more"] if len(names) > SHOWN else []
    return lines


def _differences(one: Item, other: Item) -> Iterator[str]:
    pairs = {
        "question": (one.trajectory.question, other.trajectory.question),
        "text": (one.trajectory.text, other.trajectory.text),
        "block status": tuple([s.block and s.block.status for s in item.trajectory.blocks] for item in (one, other)),
        "grade": (one.correct, other.correct),
        "verdict": (one.verdict, other.verdict),
    }
    yield from (what for what, (left, right) in pairs.items() if left != right)


def _counts(values: Any) -> dict[str, int]:
    return dict(Counter(values).most_common())


def _quantiles(values: Sequence[float]) -> list[float]:
    return [round(float(value), 4) for value in np.quantile(values, QUANTILES)] if values else []


def _code_lines(trajectory: Trajectory) -> int:
    return sum(s.content.count("\n") + 1 for s in trajectory.segments if s.kind is SegmentKind.CODE and s.block)
