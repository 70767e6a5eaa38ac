"""Records on disk: what is read is what was written, and a kill loses nothing that was there."""

from __future__ import annotations

import contextlib
import json
import math
import os
import random
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thincode.errors import DataError, RunFolderError
from thincode.trajectory import Address, Block, BlockStatus, EndReason, Segment, SegmentKind, Tokens, Trajectory
from thincode.trajectory.store import Store, read

SOURCE = Path(__file__).parents[3] / "src"


@pytest.fixture
def opened():
    """Opens stores that are closed after the test."""
    with contextlib.ExitStack() as stack:
        yield lambda *args, **options: stack.enter_context(Store(*args, **options))


def tokens(length: int, seed: int = 0) -> Tokens:
    draw = np.random.default_rng(seed)
    logprob = draw.normal(size=length).astype(np.float32)
    logprob[::3] = np.nan
    return Tokens(
        draw.integers(0, 2**31 - 1, length, dtype=np.int32), draw.integers(0, 4, length).astype(np.uint8), logprob
    )


def trajectory(
    sample: int = 0, *, stage: str = "rl-1/validation", step: int = 3, text: str = "Plan.", **more
) -> Trajectory:
    return Trajectory(
        address=Address(run=1, stage=stage, step=step, problem="p/1", sample=sample),
        question=text,
        format="thinc",
        prompt=f"<|user|>{text}",
        segments=(
            Segment(SegmentKind.PLAN, text, text, 2, 5),
            Segment(
                SegmentKind.CODE, "```python\nx\n```\n", "x", 5, 9, Block(BlockStatus.ERROR, "NameError", 7, 0.25, 0.1)
            ),
            Segment(SegmentKind.OUTPUT, "```output\nx\n```\n", "x"),
        ),
        end=EndReason.CALLS,
        answer=None,
        **{"tokens": tokens(40, sample), "versions": {"thincode": "0"}, "generate_s": 1.5, "execute_s": 1 / 3, **more},
    )


ANNOTATIONS = {
    "gold": "033",
    "tags": {"family": "sum"},
    "reward": {"total": math.inf, "parts": {}},
    "verdicts": [1, None],
}


def test_a_record_comes_back_equal_with_its_seconds(tmp_path: Path, opened) -> None:
    store = opened(tmp_path)
    written = [trajectory(0), trajectory(1, tokens=None), trajectory(2, step=4), trajectory(3, stage="distill")]
    for one in written:
        store.append(one, ANNOTATIONS)
    for found in (list(store.records()), list(read(tmp_path)), list(opened(tmp_path).records())):
        assert [record.trajectory for record in found] == written
        assert all(record.annotations == ANNOTATIONS for record in found)
    back = found[0].trajectory
    assert (back.generate_s, back.execute_s) == (1.5, 1 / 3)
    assert (back.segments[1].block.wall_s, back.segments[1].block.cpu_s) == (0.25, 0.1)
    assert back.tokens.logprob.tobytes() == written[0].tokens.logprob.tobytes()
    assert store.keys() == {one.address.key for one in written}
    assert sorted(path.name for path in (tmp_path / "ids").iterdir()) == [
        "distill-000003.z",
        "rl-1-validation-000003.z",
        "rl-1-validation-000004.z",
    ]


@given(text=st.text(alphabet=st.characters() | st.sampled_from("\ud800\udfff\0\r\n\u2028"), min_size=1))
def test_any_text_survives(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder, Store(folder) as store:
        store.append(trajectory(text=text), {"gold": text})
        (record,) = store.records()
    assert record.trajectory == trajectory(text=text)
    assert record.annotations == {"gold": text}


def test_ids_are_optional(tmp_path: Path, opened) -> None:
    opened(tmp_path / "without", keep_ids=False).append(trajectory())
    assert [record.trajectory for record in read(tmp_path / "without")] == [trajectory(tokens=None)]
    assert not (tmp_path / "without" / "ids").exists()
    opened(tmp_path / "with").append(trajectory())
    assert [record.trajectory for record in read(tmp_path / "with", ids=False)] == [trajectory(tokens=None)]


def test_one_record_for_an_address(tmp_path: Path, opened) -> None:
    opened(tmp_path).append(trajectory())
    with pytest.raises(ValueError, match="already"):
        opened(tmp_path).append(trajectory())


def test_going_back_leaves_no_stale_record_and_no_stale_ids(tmp_path: Path, opened) -> None:
    store = opened(tmp_path)
    store.append(trajectory(0))
    offsets = store.sync()
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    store.append(trajectory(1))
    store.append(trajectory(2, step=4))
    store.truncate(offsets)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    assert store.keys() == {trajectory(0).address.key}
    store.append(trajectory(1))
    assert [record.trajectory for record in store.records()] == [trajectory(0), trajectory(1)]


def test_a_log_shorter_than_its_checkpoint_is_refused(tmp_path: Path, opened) -> None:
    store = opened(tmp_path)
    store.append(trajectory())
    with pytest.raises(RunFolderError, match="the file was changed"):
        store.truncate({"trajectories.jsonl": store.sync()["trajectories.jsonl"] + 1})


def test_half_written_ends_are_cut(tmp_path: Path, opened) -> None:
    store = opened(tmp_path)
    store.append(trajectory(0))
    whole = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    store.append(trajectory(1))
    for path, kept in whole.items():
        path.write_bytes(path.read_bytes()[: len(kept) + 9])
    (tmp_path / "ids" / "rl-1-000099.z").write_bytes(b"left behind")
    again = opened(tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == whole
    again.append(trajectory(1))
    assert [record.trajectory for record in again.records()] == [trajectory(0), trajectory(1)]


def test_lines_whose_ids_the_machine_lost_are_cut(tmp_path: Path, opened) -> None:
    store = opened(tmp_path)
    store.append(trajectory(0))
    (path,) = (tmp_path / "ids").iterdir()
    size = path.stat().st_size
    store.append(trajectory(1))
    os.truncate(path, size + 3)
    assert [record.trajectory for record in opened(tmp_path).records()] == [trajectory(0)]


def test_a_newer_schema_is_named(tmp_path: Path, opened) -> None:
    (tmp_path / "trajectories.jsonl").write_text('{"schema": 2}\n')
    for attempt in (lambda: opened(tmp_path), lambda: list(read(tmp_path))):
        with pytest.raises(RunFolderError, match="schema 2, this thincode reads up to 1"):
            attempt()


def test_a_foreign_line_and_damaged_ids_are_named(tmp_path: Path, opened) -> None:
    opened(tmp_path).append(trajectory())
    (path,) = (tmp_path / "ids").iterdir()
    path.write_bytes(bytes(len(path.read_bytes())))
    with pytest.raises(DataError, match=r"trajectories\.jsonl:1"):
        list(read(tmp_path))
    (tmp_path / "trajectories.jsonl").write_text(json.dumps({"question": "?"}) + "\n")
    for attempt in (lambda: opened(tmp_path), lambda: list(read(tmp_path))):
        with pytest.raises(DataError, match=r"trajectories\.jsonl:1"):
            attempt()


WRITER = textwrap.dedent(
    """
    import sys
    sys.path[:0] = sys.argv[2:]
    from unit_store import trajectory
    from thincode.trajectory.store import Store
    store = Store(sys.argv[1])
    for sample in range(len(store.keys()), 100_000):
        store.append(trajectory(sample, step=sample // 20), {"n": sample})
        if sample % 10 == 9:
            print(sample + 1, store.sync()["trajectories.jsonl"], flush=True)
    """
)


def test_a_killed_writer_loses_nothing_it_committed(tmp_path: Path, opened) -> None:
    (tmp_path / "unit_store.py").write_text(Path(__file__).read_text())
    run = tmp_path / "run"
    chance = random.Random(5)
    committed, offset = 0, 0
    for _ in range(4):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(run), str(tmp_path), str(SOURCE)], stdout=subprocess.PIPE
        )
        committed, offset = map(int, process.stdout.readline().split())
        time.sleep(chance.uniform(0, 0.2))
        os.kill(process.pid, signal.SIGKILL)
        for said in process.communicate()[0].splitlines(keepends=True):
            if said.endswith(b"\n"):
                committed, offset = map(int, said.split())
        store = opened(run)
        found = list(store.records())
        assert len(found) >= committed
        assert [record.trajectory for record in found] == [trajectory(n, step=n // 20) for n in range(len(found))]
        store.truncate({"trajectories.jsonl": offset})
        assert [record.annotations["n"] for record in store.records()] == list(range(committed))
        assert len(list((run / "ids").iterdir())) == math.ceil(committed / 20)
        store.close()
