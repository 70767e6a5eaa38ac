"""Verdicts over a folder of records: filters, a second run of the blocks, the funnel."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from thincode.errors import DataError, RunFolderError
from thincode.grading import records
from thincode.runlog import Progress, read_log
from thincode.runs import sieve
from thincode.runs.recipe import DistillSettings, Recipe
from thincode.runs.workshop import ShowProgress, Workshop
from thincode.settings import load, parse
from thincode.trajectory import Segment, SegmentKind
from thincode.trajectory.store import Store
from thincode.trajectory.tokenizer import Tokenizer
from unit.evaluation.build import row

SAME = row("same", "plan | 6*7 -> 42 | import math;;math.comb(9, 4) -> 126 | so 126", correct=True, answer="126")
FAILS = row("fails", "plan | 1/0 !> ZeroDivisionError: division by zero | so 1", correct=True, answer="1")
CLOCK = row("clock", "plan | import time;;time.time_ns() -> 17 | so 17", correct=True, answer="17")
DICE = row("dice", "plan | import random;;random.random() -> 0.25 | so 0.25", correct=True, answer="0.25")
WRONG = row("wrong", "plan | 1 -> 1 | so 2", answer="2")
RERUN = ["correct", "reexecution"]


@pytest.fixture(scope="module")
def shop() -> Iterator[Workshop]:
    with Workshop(load(Recipe, "tiny/micro").value) as opened:
        yield opened


def quiet(name: str, *, total: int | None, unit: str, done: int = 0) -> Progress:
    return Progress(name, total=total, unit=unit, done=done, quiet=True)


def folder(path: Path, *rows: Any) -> Path:
    with Store(path) as store:
        for number, graded in enumerate(rows):
            address = replace(graded.trajectory.address, stage="distill", sample=number)
            tags = {"family": "even" if number % 2 == 0 else "odd"}
            graded = replace(graded, problem=replace(graded.problem, tags=tags))
            store.append(replace(graded.trajectory, address=address), records.annotations(graded))
    return path


def judge(path: Path, shop: Workshop, *, filters: Any, progress: ShowProgress = quiet, **more: Any) -> dict[str, Any]:
    settings = parse(DistillSettings, {"filters": filters, **more})
    return sieve.run(settings, folder=path, shop=shop, progress=progress, flaws={"same": "a slip"}, more={})


def test_the_funnel_counts_every_record_once(tmp_path: Path, shop: Workshop) -> None:
    path = folder(tmp_path, SAME, WRONG, FAILS, SAME)
    funnel = judge(path, shop, filters=["correct", "blocks_ok", "duplicates"])
    assert funnel == {
        "problems": 3,
        "sampled": 4,
        "dropped": {"wrong: different": 1, "a block ended in error": 1, "duplicate": 1},
        "kept": 1,
        "lucky": 1,
        "by_source": {"even": {"sampled": 2, "kept": 1, "lucky": 1}, "odd": {"sampled": 2}},
    }
    assert json.loads((path / "funnel.json").read_text()) == funnel
    assert [trajectory.address.sample for trajectory in sieve.kept(path)] == [0]
    assert [line["reason"] for line in read_log(path / sieve.VERDICTS)] == [
        *("kept", "wrong: different", "a block ended in error", "duplicate"),
    ]
    assert sieve.lines(funnel) == [
        "        3          problems",
        "        4  100.0%  trajectories sampled",
        "       -1  -25.0%  dropped: wrong: different",
        "       -1  -25.0%  dropped: a block ended in error",
        "       -1  -25.0%  dropped: duplicate",
        "        1   25.0%  kept",
        "",
        "     kept   share  of what was sampled from",
        "        1   50.0%  even",
        "        0    0.0%  odd",
    ]


def test_other_filters_need_no_new_samples(tmp_path: Path, shop: Workshop) -> None:
    path = folder(tmp_path, SAME, WRONG)
    assert judge(path, shop, filters=["correct"])["kept"] == 1
    assert judge(path, shop, filters=[])["kept"] == 2
    assert len(sieve.kept(path)) == 2


def test_blocks_that_print_something_else_are_found(tmp_path: Path, shop: Workshop) -> None:
    path = folder(tmp_path, SAME, FAILS, CLOCK, DICE, WRONG)
    judge(path, shop, filters=RERUN)
    assert [line["reason"] for line in read_log(path / sieve.VERDICTS)] == [
        "kept",
        # A traceback is longer than the error that this table writes.
        *["a block prints something else when run again"] * 3,
        "wrong: different",
    ]
    again = {line["key"][3]: (line["same"], line["lost"]) for line in read_log(path / sieve.RERUNS)}
    assert again == {0: (2, False), 1: (0, False), 2: (0, False), 3: (0, False)}, (
        "what is wrong anyway is not run again"
    )


def test_no_block_is_run_a_third_time(tmp_path: Path, shop: Workshop) -> None:
    path = folder(tmp_path, SAME, CLOCK)
    judge(path, shop, filters=RERUN)
    before = (path / sieve.RERUNS).read_bytes()
    assert judge(path, shop, filters=RERUN)["kept"] == 1
    assert (path / sieve.RERUNS).read_bytes() == before


def test_lengths_are_counted_in_tokens_of_the_student(tmp_path: Path, shop: Workshop) -> None:
    Tokenizer.train(["plan", "6*7"] * 3, vocab_size=300, markers=["```python\n"]).save(tmp_path / "student")
    (tmp_path / "student" / "config.json").write_text("{}")
    (tmp_path / "student" / "model.safetensors").touch()
    text = Segment(SegmentKind.ANSWER, "```python\n" * 3, "")
    path = folder(tmp_path / "run", replace(SAME, trajectory=replace(SAME.trajectory, segments=(text,))))
    student = str(tmp_path / "student")
    for limit, kept in ((4, 1), (3, 0)):  # three markers and the end of the turn
        filters = [{"kind": "length", "max_tokens": limit}]
        assert judge(path, shop, filters=filters, student=student)["kept"] == kept
    assert judge(path, shop, filters=["length"])["dropped"] == {"no token ids to count; set distill.student": 1}


def test_a_folder_that_can_not_teach_says_why(tmp_path: Path, shop: Workshop) -> None:
    with pytest.raises(DataError, match="no distillation there"):
        sieve.kept(tmp_path)
    with pytest.raises(RunFolderError, match=r"not judged yet.*--resume"):
        sieve.kept(folder(tmp_path, SAME))
