"""Published transcripts of the fenced family read as what they are."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from thincode.settings import kind
from thincode.trajectory import SegmentKind
from thincode.trajectory.formats import build

TIR = build(kind("thincode.trajectory.formats", "tir"))


@pytest.mark.parametrize("name", ["traj_tora_examples.jsonl", "traj_tora_gsm8k.jsonl"])
def test_every_block_of_a_tora_transcript_has_its_output(data_dir: Path, name: str) -> None:
    lines = [json.loads(line) for line in (data_dir / name).read_text(encoding="utf-8").splitlines()]
    answered = 0
    for line in lines:
        text = line["trajectory"]
        segments = TIR.parse(text)
        assert "".join(segment.text for segment in segments) == text
        kinds = [segment.kind for segment in segments]
        assert kinds.count(SegmentKind.CODE) == text.count("```python\n")
        assert kinds.count(SegmentKind.OUTPUT) == text.count("```output\n")
        assert all(
            after is SegmentKind.OUTPUT for before, after in itertools.pairwise(kinds) if before is SegmentKind.CODE
        ), line["id"]
        answered += TIR.answer(segments) is not None
    assert answered >= 0.95 * len(lines)
