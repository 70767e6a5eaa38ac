"""A block's raw output as harmless text of bounded length."""

from __future__ import annotations

import os
import re
import tempfile

from ._streams import CONTINUATION

# CSI, OSC (ended by BEL or ST) and two-character escapes, as terminals read them.
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[@-Z\\^_])")
# What a terminal overwrites: everything on the line before a carriage return that has text after it.
_OVERWRITTEN = re.compile(r"[^\n]*\r(?=[^\n\r])")
# Controls, line and paragraph separators, direction overrides, byte-order marks, tag characters, lone surrogates.
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)


def memory_file() -> int:
    """A file of no name, in memory where there is such a thing: what stands in it outlives who wrote it."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("output", os.MFD_CLOEXEC)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def clean(raw: bytes) -> str:
    """Decode, drop terminal escapes, collapse carriage returns, and show every other control character escaped."""
    text = raw.decode("utf-8", "backslashreplace")
    if "\x1b" in text:
        text = _ESCAPE.sub("", text)
    if "\r" in text:
        text = _OVERWRITTEN.sub("", text.replace("\r\n", "\n")).replace("\r", "")
    return _CONTROL.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), text)


def cut(head: str, tail: str | None, *, limit: int, between: int) -> tuple[str, int]:
    """At most `limit` characters of a text: its first half, a line that counts what is missing, its last half.

    Args:
        head: the text, or its beginning when `tail` is given.
        tail: the end of the text when its middle was never read.
        limit: characters kept.
        between: characters already missing between `head` and `tail`.

    Returns:
        The text, and how many characters are missing.
    """
    if tail is None and between == 0 and len(head) <= limit:
        return head, 0
    front, back = (limit + 1) // 2, limit // 2
    whole = head if tail is None else tail
    kept_head = head[:front]
    kept_tail = whole[-back:] if back else ""
    if tail is None:
        missing = between + max(len(head) - front - back, 0)
        kept_tail = head[front:][-back:] if back else ""
    else:
        missing = between + len(head) - len(kept_head) + len(tail) - len(kept_tail)
    return f"{kept_head}\n[... {missing} characters cut ...]\n{kept_tail}", missing


def read(descriptor: int, *, limit: int, dropped: int = 0) -> tuple[str, int]:
    """What stands in an output file, cleaned and cut.

    Args:
        descriptor: the memory file a block wrote to.
        limit: characters kept.
        dropped: characters the writer itself left out of the middle.

    Returns:
        The text, and how many characters were cut.
    """
    size = os.fstat(descriptor).st_size
    window = 8 * limit + 4096  # four bytes a character at most, and room for what cleaning removes
    if size <= 2 * window:
        whole = os.pread(descriptor, size, 0)
        if not dropped:
            return cut(clean(whole), None, limit=limit, between=0)
        middle = len(whole) // 2
        return cut(clean(whole[:middle]), clean(whole[middle:]), limit=limit, between=dropped)
    head, tail = os.pread(descriptor, window, 0), os.pread(descriptor, window, size - window)
    between, at = dropped, window
    while at < size - window:
        chunk = os.pread(descriptor, min(1 << 20, size - window - at), at)
        if not chunk:
            break
        between += len(chunk.translate(None, CONTINUATION))
        at += len(chunk)
    return cut(clean(head), clean(tail.lstrip(CONTINUATION)), limit=limit, between=between)
