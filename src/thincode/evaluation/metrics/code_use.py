"""How code is used and whether it runs (CIR, Table 4; definitions as printed by its code).

- block pass rate: ok blocks / executed blocks.
- full pass rate: trajectories whose blocks all ended ok / trajectories with an executed block.
- final pass rate: trajectories whose last executed block ended ok / the same.
- logic-flaw share: among wrong trajectories with code, those whose blocks all ran.
- code-use ratio: trajectories with an executed block / all.
- calls: executed blocks a trajectory, over all. Lines: of all executed blocks of a trajectory, over trajectories with code:
  physical lines, and lines that are neither blank nor only a comment.

`error` and `limit` count as failures. n counts trajectories, for the block pass rate blocks. Lost trajectories and lost blocks
are left out.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...grading import Graded
from ...settings import settings
from ...trajectory import BlockStatus, Segment
from .. import Estimate
from ..intervals import normal
from ..samples import estimate, finished, lost_note, share, split


@settings
class Settings:
    """Nothing to set."""


def measure(settings: Settings, rows: Sequence[Graded]) -> list[Estimate]:
    """All of the above; the three pass rates over all, over correct and over wrong trajectories."""
    kept, note = finished(rows), lost_note(rows)
    estimates = []
    for part, found in split(kept).items():
        blocks = [_oks(row) for row in found if _oks(row)]
        flat = [ok for oks in blocks for ok in oks]
        estimates += [
            share(f"block pass rate{part}", sum(flat), len(flat), note="n counts blocks"),
            share(f"full pass rate{part}", sum(all(oks) for oks in blocks), len(blocks), note=note),
            share(f"final pass rate{part}", sum(oks[-1] for oks in blocks), len(blocks), note=note),
        ]
    wrong = [_oks(row) for row in kept if not row.grade.correct and _oks(row)]
    used = [_executed(row) for row in kept]
    sources = [[segment.content for segment in segments] for segments in used if segments]
    return [
        *estimates,
        share("logic-flaw share", sum(all(oks) for oks in wrong), len(wrong), note=note),
        share("code-use ratio", sum(bool(segments) for segments in used), len(used), note=note),
        _mean("calls", [len(segments) for segments in used], "blocks"),
        _mean("lines of code", [sum(map(lines, found)) for found in sources], "lines"),
        _mean("lines of code, non-blank non-comment", [sum(map(code_lines, found)) for found in sources], "lines"),
    ]


def _mean(name: str, values: Sequence[int], unit: str) -> Estimate:
    return estimate(name, normal(values), n=len(values), unit=unit)


def _executed(row: Graded) -> list[Segment]:
    blocks = row.trajectory.blocks
    return [segment for segment in blocks if segment.block and segment.block.status is not BlockStatus.LOST]


def _oks(row: Graded) -> list[bool]:
    return [segment.block is not None and segment.block.status is BlockStatus.OK for segment in _executed(row)]


def lines(source: str) -> int:
    """Physical lines, without empty ones at either end."""
    return len(source.strip().splitlines())


def code_lines(source: str) -> int:
    """Lines that are neither blank nor only a comment."""
    return sum(bool(line.strip()) and not line.strip().startswith("#") for line in source.splitlines())
