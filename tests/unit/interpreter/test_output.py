"""Output becomes harmless text of bounded length."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thincode.interpreter import _output


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"plain\n\ttext\n", "plain\n\ttext\n"),
        ("π ≈ 3\n".encode(), "π ≈ 3\n"),
        (b"\xff\xfe", "\\xff\\xfe"),
        (b"a\x00b\x07\x08", "a\\x00b\\x07\\x08"),
        (b"\x1b[31mred\x1b[0m \x1b]0;title\x07done", "red done"),
        (b"\x1b\x1b[31m", "\\x1b"),
        (b"10%\r20%\r30%\nend", "30%\nend"),
        (b"windows\r\nlines\r\n", "windows\nlines\n"),
        (b"last\r", "last"),
        ("a\u2028b\u202ec\ufeff".encode(), "a\\u2028b\\u202ec\\ufeff"),
        ("👩\u200d🔬".encode(), "👩\u200d🔬"),
        ("\U000e0041".encode(), "\\U000e0041"),
    ],
)
def test_clean(raw: bytes, text: str) -> None:
    assert _output.clean(raw) == text


@given(st.binary(max_size=300))
def test_clean_leaves_no_control_character_and_no_escape(raw: bytes) -> None:
    text = _output.clean(raw)
    assert not any((ord(c) < 32 and c not in "\n\t") or 127 <= ord(c) < 160 for c in text)
    text.encode()


@pytest.mark.parametrize(
    ("text", "limit", "kept", "missing"),
    [
        ("abcdef", 6, "abcdef", 0),
        ("abcdefg", 6, "abc\n[... 1 characters cut ...]\nefg", 1),
        ("abcdefg", 5, "abc\n[... 2 characters cut ...]\nfg", 2),
        ("abcdefg", 1, "a\n[... 6 characters cut ...]\n", 6),
        ("abcdefg", 0, "\n[... 7 characters cut ...]\n", 7),
    ],
)
def test_cut(text: str, limit: int, kept: str, missing: int) -> None:
    assert _output.cut(text, None, limit=limit, between=0) == (kept, missing)


@pytest.fixture
def file(tmp_path: Path) -> Iterator[int]:
    descriptor = os.open(tmp_path / "out", os.O_RDWR | os.O_CREAT)
    yield descriptor
    os.close(descriptor)


@pytest.mark.parametrize("unit", ["x", "é", "漢", "🙂"])
@pytest.mark.parametrize("count", [5, 3000, 20_000, 700_001])
def test_read_counts_every_character_it_leaves_out(file: int, unit: str, count: int) -> None:
    os.write(file, (unit * count).encode())
    text, missing = _output.read(file, limit=100)
    assert missing == max(count - 100, 0)
    assert text.count(unit) == (min(count, 100) if unit != "x" else text.count(unit))


def test_read_adds_what_the_writer_dropped(file: int) -> None:
    os.write(file, b"a" * 100 + b"z" * 100)
    text, missing = _output.read(file, limit=1000, dropped=50)
    assert (text, missing) == (f"{'a' * 100}\n[... 50 characters cut ...]\n{'z' * 100}", 50)
