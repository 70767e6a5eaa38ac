"""Transcripts of other systems become records, and nothing of them is lost."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from thincode.errors import DataError
from thincode.settings import kind
from thincode.trajectory import BlockStatus, EndReason, SegmentKind
from thincode.trajectory.formats import build
from thincode.trajectory.formats.mathcoder import CODE, END, EXECUTION, TEXT
from thincode.trajectory.published import Transcript, read, status_of, trajectory_of

ROOM = "thincode.trajectory.formats"
TORA, TIR, THINC, MATHCODER = (build(kind(ROOM, name)) for name in ("tora", "tir", "thinc", "mathcoder"))
FENCED = "Add.\n```python\r\nprint(1 + 2)\r\n```\n```output\n3\n```\nIt is \\boxed{3}."


# --- real ones ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "blocks", "failed", "unboxed"), [("traj_tora_examples", 25, 0, 0), ("traj_tora_gsm8k", 149, 1, 4)]
)
def test_tora_reads_without_loss(data_dir: Path, name: str, blocks: int, failed: int, unboxed: int) -> None:
    found = list(read(data_dir / f"{name}.jsonl", format=TORA))
    for transcript in found:
        text, segments = transcript.row["trajectory"], transcript.trajectory.segments
        assert transcript.trajectory.text == text
        kinds = [segment.kind for segment in segments]
        assert kinds.count(SegmentKind.CODE) == text.count("```python\n")
        assert kinds.count(SegmentKind.OUTPUT) == text.count("```output\n") == len(transcript.trajectory.blocks)
    assert _statuses(found) == +Counter(ok=blocks - failed, error=failed)
    # Three close with a sentence without a box, one with a program that nobody ran.
    assert sum(transcript.trajectory.answer is None for transcript in found) == unboxed
    unfinished = [t.row["id"] for t in found if t.trajectory.end is not EndReason.FINISHED]
    assert unfinished == ["tora-tora-code-34b-0146"] * (name == "traj_tora_gsm8k")


def test_mathcoder_reads_without_loss(data_dir: Path) -> None:
    found = list(read(data_dir / "traj_mathcoder.jsonl", format=MATHCODER))
    opener = {"text": TEXT, "code": CODE, "execution": EXECUTION}
    for transcript in found:
        pieces, trajectory = transcript.row["segments"], transcript.trajectory
        whole = [opener[piece["role"]] + piece["content"] + END for piece in pieces]
        assert [segment.text for segment in trajectory.segments] == whole
        reparsed = MATHCODER.parse(trajectory.text)
        assert [(s.kind, s.text, s.content) for s in reparsed] == [
            (s.kind, s.text, s.content) for s in trajectory.segments
        ]
        assert trajectory.answer == transcript.row["pred"].strip()
        assert trajectory.end is EndReason.FINISHED
        for segment, after in itertools.pairwise(trajectory.segments):
            assert (segment.block is not None) == (after.kind is SegmentKind.OUTPUT)
    executions = [p["content"] for t in found for p in t.row["segments"] if p["role"] == "execution"]
    # A hand count of all 498: 76 of IPython's tracebacks begin with its rule, and one SyntaxError has none.
    failed = sum(text.startswith("-----") or "SyntaxError: unmatched" in text for text in executions)
    assert _statuses(found) == Counter(ok=498 - failed, error=failed) == Counter(ok=421, error=77)


def _statuses(transcripts: list[Transcript]) -> Counter[str]:
    return Counter(s.block.status.value for t in transcripts for s in t.trajectory.blocks if s.block)


# --- rows of every shape --------------------------------------------------------------------------------------------


PIECES = [
    {"role": "text", "content": "Add."},
    {"role": "code", "content": "print(1 + 2)\r\n"},
    {"role": "execution", "content": "3"},
    {"role": "text", "content": "It is \\boxed{3}."},
]
TURNS = [
    {"role": "user", "content": "1 + 2?"},
    {"role": "assistant", "content": "Add.\n```python\nprint(1 + 2)\n```\n"},
    {"role": "tool", "content": "3"},
    {"role": "assistant", "content": "It is \\boxed{3}."},
]


@pytest.mark.parametrize("format", [TORA, TIR, THINC, MATHCODER], ids=lambda format: format.name)
@pytest.mark.parametrize(
    "row", [{"text": FENCED}, {"segments": PIECES}, {"messages": TURNS}], ids=["text", "segments", "messages"]
)
def test_a_row_is_a_record(format: Any, row: dict[str, Any]) -> None:
    if format is MATHCODER and "segments" not in row:
        pytest.skip("fences mean nothing to it")
    found = trajectory_of({"id": "p", "problem": "1 + 2?", "sample": 3, **row}, format=format)
    assert [segment.kind.value for segment in found.segments] == ["plan", "code", "output", "answer"]
    assert (found.question, found.address.problem, found.address.sample) == ("1 + 2?", "p", 3)
    (block,) = found.blocks
    assert block.content.strip() == "print(1 + 2)"
    assert "\r" not in block.content
    assert (found.answer, found.outputs[0].content) == ("3", "3")


def test_one_turn_with_everything_in_it_reads_like_its_text() -> None:
    message = {"messages": [{"role": "user", "content": "1 + 2?"}, {"role": "assistant", "content": FENCED}]}
    assert trajectory_of(message, format=TIR).segments == trajectory_of({"text": FENCED}, format=TIR).segments


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("\\boxed{3}", EndReason.FINISHED),
        ("```python\nx\n```\n```output\n3\n```\n", EndReason.CALLS),
        ("```python\nx\n```\n", EndReason.CALLS),
        ("```python\nx = [1,", EndReason.CONTEXT),
    ],
)
def test_the_end_is_read_off_what_stands_last(text: str, end: EndReason) -> None:
    assert trajectory_of({"text": text}, format=TIR).end is end


IPYTHON = (
    "-----------------\n NameError    Traceback (most recent call last)\n"
    "Cell \x1b[1;32mIn[3], line 1\x1b[0m\n----> 1 l \x1b[38;5;241m= n\n"
)


@pytest.mark.parametrize(
    ("printed", "status", "detail"),
    [
        ("3", BlockStatus.OK, ""),
        ("", BlockStatus.OK, ""),
        ("the error is small", BlockStatus.OK, ""),
        ("ValueError: taken as printed\n7", BlockStatus.OK, ""),
        ("NameError: name 'x' is not defined", BlockStatus.ERROR, "NameError"),
        ("sympy.polys.polyerrors.PolynomialError: no", BlockStatus.ERROR, "PolynomialError"),
        (
            'Traceback (most recent call last):\n  File "a", line 1\nZeroDivisionError: x',
            BlockStatus.ERROR,
            "ZeroDivisionError",
        ),
        (IPYTHON + " NameError: name 'n' is not defined", BlockStatus.ERROR, "NameError"),
        (IPYTHON + " ValueError: \nCan't calculate derivative wrt\n2*t.", BlockStatus.ERROR, "ValueError"),
        ('  File "<cell>", line 2\n    x = (\n        ^\nSyntaxError: never closed', BlockStatus.ERROR, "SyntaxError"),
        ("Timeout Error", BlockStatus.LIMIT, "Timeout Error"),
        ("TimeoutError: 5 seconds", BlockStatus.LIMIT, "TimeoutError"),
    ],
)
def test_the_status_is_read_off_what_was_shown(printed: str, status: BlockStatus, detail: str) -> None:
    block = status_of(printed)
    assert (block.status, block.detail) == (status, detail)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"id": "a", "problem": "?"}, r":1: no transcript.*Fields of this row: id, problem"),
        ({"segments": [{"role": "oracle", "content": "3"}]}, r":1: a piece with role 'oracle'.*execution"),
        ({"segments": [{"role": "code"}]}, r":1: a piece with role 'code' and fields role"),
    ],
)
def test_a_row_without_transcript_is_named(tmp_path: Path, line: dict[str, Any], message: str) -> None:
    path = tmp_path / "foreign.jsonl"
    path.write_text(json.dumps(line) + "\n")
    with pytest.raises(DataError, match=message):
        list(read(path, format=TIR))
    with pytest.raises(DataError, match="no such file"):
        list(read(tmp_path / "none.jsonl", format=TIR))
