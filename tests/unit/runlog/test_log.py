"""Records are there exactly once, whatever happens to the process or the disk."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thincode.errors import DataError
from thincode.runlog import Log, read_log

TORN = [
    (b"", [], 0),
    (b'{"a":1}\n', [{"a": 1}], 8),
    (b'{"a":1}\n{"a"', [{"a": 1}], 8),
    (b'{"a"', [], 0),
    (b'{"a":1}\n\n'[:-1], [{"a": 1}], 8),
    (b"1\n" + b'"' + b"x" * 200_000, [1], 2),
]


@pytest.mark.parametrize(("content", "records", "length"), TORN, ids=[content[:12].decode() for content, _, _ in TORN])
def test_a_torn_last_line_is_not_read_and_is_cut_on_opening(
    content: bytes, records: list[object], length: int, tmp_path: Path
) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(content)
    assert list(read_log(path)) == records
    log = Log(path)
    assert log.offset == length
    log.append("next")
    log.close()
    assert list(read_log(path)) == [*records, "next"]


def test_a_missing_log_has_no_records(tmp_path: Path) -> None:
    assert list(read_log(tmp_path / "none.jsonl")) == []


def test_a_spoiled_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"1\nnix\n3\n")
    with pytest.raises(DataError, match=r"log\.jsonl:2: not JSON"):
        list(read_log(path))


@given(st.lists(st.recursive(st.none() | st.text() | st.integers(), st.lists, max_leaves=3), max_size=5))
def test_what_is_appended_reads_back(tmp_path_factory: pytest.TempPathFactory, records: list[object]) -> None:
    path = tmp_path_factory.mktemp("log") / "log.jsonl"
    log = Log(path)
    for record in [*records, "\ud800 lone surrogate", "line\u2028separator"]:
        log.append(record)
    assert log.sync() == path.stat().st_size
    log.close()
    assert list(read_log(path)) == [*records, "\ud800 lone surrogate", "line\u2028separator"]


FULL_DISK = """
import resource, sys
from pathlib import Path
from thincode import atomic
from thincode.errors import InfrastructureError
from thincode.runlog import Log, read_log
folder = Path(sys.argv[1])
log = Log(folder / "log.jsonl")
atomic.write_text(folder / "whole.txt", "before")
resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))
try:
    for number in range(1000):
        log.append({"number": number, "text": "x" * 90})
except InfrastructureError as error:
    print(error)
log.close()
records = list(read_log(folder / "log.jsonl"))
assert (folder / "log.jsonl").read_bytes().endswith(b"\\n")
print(len(records), [record["number"] for record in records] == list(range(len(records))))
try:
    atomic.write_text(folder / "whole.txt", "y" * 5000)
except InfrastructureError as error:
    print(error)
print((folder / "whole.txt").read_text(), sorted(item.name for item in folder.iterdir()))
"""


def test_a_full_disk_is_said_and_leaves_whole_records(tmp_path: Path) -> None:
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY
    ran = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(tmp_path)], capture_output=True, text=True, check=True, timeout=60
    )
    first, records, second, left = ran.stdout.splitlines()
    for message in (first, second):
        assert message.startswith(f"{tmp_path}: the file is as large as")
        assert "--resume" in message
    assert records.endswith("True")
    assert int(records.split()[0]) > 20
    assert left == "before ['log.jsonl', 'whole.txt']"
