r"""How code is used and whether it runs (CIR, Table 4; definitions as printed by its code).

- block pass rate: ok blocks / executed blocks.
- full pass rate: trajectories whose blocks all ended ok / trajectories with an executed block.
- final pass rate: trajectories whose last executed block ended ok / the same.
- logic-flaw share: among wrong trajectories with code, those whose blocks all ran.
- code-use ratio: trajectories with an executed block / all.
- code before the answer: executed blocks that stand before the first `\boxed{` of the model's text / executed blocks (ToRL's
  share; what comes later can only confirm).
- calls: executed blocks a trajectory, over all. Lines: of all executed blocks of a trajectory, over trajectories with code:
  physical lines, and lines that are neither blank nor only a comment.
- calls not run: code segments that no interpreter saw, a trajectory, over all: of a tool that is not here, in JSON that can't be
  read, beyond the budget, or cut. Calls don't count them.

`error` and `limit` count as failures. n counts trajectories, for the block pass rate blocks. Lost trajectories and lost blocks
are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...grading import Graded
from ...settings import settings
from ...trajectory import BlockStatus, Segment, SegmentKind
from ...trajectory.formats import COMMENTS, language_of
from .. import Estimate
from ..intervals import normal
from ..samples import Looks, estimate, share

_WRITTEN = (SegmentKind.PLAN, SegmentKind.THOUGHT, SegmentKind.ANSWER)


@settings
class Settings:
    """Nothing to set."""


class Look(NamedTuple):
    """How one trajectory uses code."""

    oks: tuple[bool, ...]
    """Whether each executed block ended ok."""
    lines: int
    code_lines: int
    """Of all executed blocks: physical ones; neither blank nor only a comment."""
    idle: int
    """Code that never ran."""
    early: int
    """Executed blocks that stand before the first box in the model's own text."""


def look(settings: Settings, graded: Graded) -> Look:
    """How one trajectory uses code."""
    executed = [s for s in graded.trajectory.blocks if s.block and s.block.status is not BlockStatus.LOST]
    sources = [segment.content for segment in executed]
    comment = COMMENTS[language_of(graded.trajectory.format)]
    return Look(
        tuple(s.block is not None and s.block.status is BlockStatus.OK for s in executed),
        sum(map(lines, sources)),
        sum(code_lines(source, comment) for source in sources),
        sum(s.kind is SegmentKind.CODE and s.block is None for s in graded.trajectory.segments),
        _before_the_answer(graded.trajectory.segments),
    )


def sum_up(settings: Settings, looks: Looks[Look]) -> list[Estimate]:
    """All of the above; the three pass rates over all, over correct and over wrong trajectories."""
    note = looks.note
    estimates = []
    for part, found in looks.split().items():
        blocks = [one.oks for one in found if one.oks]
        flat = [ok for oks in blocks for ok in oks]
        estimates += [
            share(f"block pass rate{part}", sum(flat), len(flat), note="n counts blocks"),
            share(f"full pass rate{part}", sum(all(oks) for oks in blocks), len(blocks), note=note),
            share(f"final pass rate{part}", sum(oks[-1] for oks in blocks), len(blocks), note=note),
        ]
    every = looks.looks
    with_code = [one for one in every if one.oks]
    wrong = [one.look.oks for one in looks.seen if not one.row.correct and one.look.oks]
    early = sum(one.early for one in with_code)
    blocks_run = sum(len(one.oks) for one in with_code)
    return [
        *estimates,
        share("logic-flaw share", sum(all(oks) for oks in wrong), len(wrong), note=note),
        share("code-use ratio", len(with_code), len(every), note=note),
        share("code before the answer", early, blocks_run, note="n counts blocks"),
        _mean("calls", [len(one.oks) for one in every], "blocks"),
        _mean("calls not run", [one.idle for one in every], "blocks"),
        _mean("lines of code", [one.lines for one in with_code], "lines"),
        _mean("lines of code, non-blank non-comment", [one.code_lines for one in with_code], "lines"),
    ]


def _mean(name: str, values: Sequence[int], unit: str) -> Estimate:
    return estimate(name, normal(values), n=len(values), unit=unit)


def _before_the_answer(segments: Sequence[Segment]) -> int:
    count = 0
    for segment in segments:
        if segment.kind in _WRITTEN and "\\boxed{" in segment.text:
            break
        count += segment.block is not None and segment.block.status is not BlockStatus.LOST
    return count


def lines(source: str) -> int:
    """Physical lines, without empty ones at either end."""
    return len(source.strip().splitlines())


def code_lines(source: str, comment: str = "#") -> int:
    """Lines that are neither blank nor only a comment."""
    return sum(bool(line.strip()) and not line.strip().startswith(comment) for line in source.splitlines())
