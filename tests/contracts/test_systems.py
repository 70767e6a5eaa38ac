"""Every system of the papers can be run, read and measured; a new format is walked by being there."""

from __future__ import annotations

import pytest

from systems import ANSWER, BLOCKS, DRILL, GOLDEN_ANSWER, ROOM, Row, walk
from thincode.settings import kinds
from thincode.trajectory import BlockStatus, EndReason, SegmentKind

PUBLISHED = {
    *("ThinC", "CIR", "Interleaved TIR", "PAL", "PoT", "ToRA", "ReTool", "ReTool (verl)", "ASTER", "Tool-Star"),
    *("rStar2-Agent", "CoRT", "DemyAgent", "ToRL", "SimpleTIR", "Plain CoT", "Qwen3, thinking", "R1-Distill"),
    *("OpenReasoning-Nemotron", "gpt-oss", "PRIME", "OAT-ZERO"),
}
ONE_PROGRAM = {"pal", "pot"}


def row_of(name: str) -> Row:
    return next(row for row in walk() if row.name == name)


def test_every_system_has_its_row() -> None:
    systems = [row.sheet.system for row in walk()]
    assert set(systems) >= PUBLISHED
    assert len(set(systems)) == len(systems)
    assert sorted(row.name for row in walk()) == kinds(ROOM)


@pytest.mark.parametrize("name", kinds(ROOM))
def test_a_system_runs_on_its_own_interpreter(name: str) -> None:
    row = row_of(name)
    if row.ran is None:
        pytest.skip(f"this machine has no interpreter for it: backend {row.backend}")
    assert (row.ran.end, row.ran.answer) == (EndReason.FINISHED, ANSWER)
    expected = 0 if row.sheet.calls == 0 else 1 if name in ONE_PROGRAM else len(BLOCKS)
    assert [block.block.status for block in row.ran.blocks if block.block] == [BlockStatus.OK] * expected
    assert len(row.ran.outputs) == expected


@pytest.mark.parametrize("name", kinds(ROOM))
def test_the_drills_teacher_writes_it(name: str) -> None:
    taught = row_of(name).taught
    if taught is None:
        pytest.skip("this machine has no interpreter for it")
    assert (taught.end, taught.answer) == (EndReason.FINISHED, DRILL.answer)


@pytest.mark.parametrize("name", kinds(ROOM))
def test_a_system_is_read_from_text(name: str) -> None:
    golden = row_of(name).golden
    assert (golden.end, golden.answer) == (EndReason.FINISHED, GOLDEN_ANSWER)
    if golden.blocks:
        assert SegmentKind.OUTPUT in {segment.kind for segment in golden.segments}


@pytest.mark.parametrize("name", kinds(ROOM))
def test_a_system_is_measured_by_every_metric(name: str) -> None:
    row = row_of(name)
    values = {estimate.name: estimate for estimate in row.measured.estimates}
    assert set(values) == {estimate.name for estimate in row_of("thinc").measured.estimates}
    assert values["avg@1"].value == 1.0
    assert values["calls"].value == len(row.golden.blocks)
    assert values["grounded"].value == (1.0 if row.golden.blocks else 0.0)
