"""Ids to text, piece by piece. The pieces join to the text of all ids, and no piece ends inside a character."""

from __future__ import annotations

import codecs
import functools
import json
from collections.abc import Sequence
from typing import Any, Protocol


class Stream(Protocol):
    """Incremental text of one sequence of ids."""

    def feed(self, token_id: int) -> str:
        """The text that is certain now; empty while a character is incomplete."""

    def finish(self) -> str:
        """What was held back: replacement signs for a character that never became complete."""


@functools.cache
def _byte_of_sign() -> dict[str, int]:
    """GPT-2's printable sign for each byte, inverted: printable Latin-1 stands for itself, the rest from U+0100 on."""
    itself = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    moved = [byte for byte in range(256) if byte not in itself]
    return {chr(byte): byte for byte in itself} | {chr(256 + n): byte for n, byte in enumerate(moved)}


def bytes_of_token(sign: str) -> bytes:
    """The bytes a byte-level token stands for; a token with any other sign in it (an added one) stands for its text."""
    table = _byte_of_sign()
    try:
        return bytes(table[character] for character in sign)
    except KeyError:
        return sign.encode()


def is_byte_level(backend: Any) -> bool:
    """Whether the tokenizer's decoder is the byte-level one alone."""
    if backend.decoder is None:
        return False
    state = json.loads(backend.decoder.__getstate__())
    if state["type"] == "Sequence" and len(state["decoders"]) == 1:
        state = state["decoders"][0]
    return bool(state["type"] == "ByteLevel")


class ByteStream:
    """For byte-level tokenizers: linear, exact, also where the bytes are no UTF-8."""

    def __init__(self, bytes_of_id: Sequence[bytes]) -> None:
        self._bytes_of_id = bytes_of_id
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def feed(self, token_id: int) -> str:
        if not 0 <= token_id < len(self._bytes_of_id):
            return ""
        return self._decoder.decode(self._bytes_of_id[token_id])

    def finish(self) -> str:
        return self._decoder.decode(b"", final=True)


class WindowStream:
    """For every other decoder: decodes a short window twice and emits the difference.

    A run of fallback bytes is not held to its end, although `decode` judges it as a whole: a line break may be such a byte.
    """

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self._window: list[int] = []
        self._read = 0
        """Ids of the window whose text is out already; they stay as the context of the next piece."""

    def feed(self, token_id: int) -> str:
        self._window.append(token_id)
        piece = self._unread()
        if not piece or piece.endswith("�"):
            return ""
        self._window = self._window[self._read :]
        self._read = len(self._window)
        return piece

    def finish(self) -> str:
        piece = self._unread()
        self._read = len(self._window)
        return piece

    def _unread(self) -> str:
        known: str = self._backend.decode(self._window[: self._read], skip_special_tokens=False)
        whole: str = self._backend.decode(self._window, skip_special_tokens=False)
        return whole[len(known) :]
