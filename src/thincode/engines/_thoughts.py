"""Hidden thoughts: what a thinking model writes between `<think>` and `</think>` before it speaks."""

from __future__ import annotations

from enum import Enum, auto

OPEN, CLOSE = "<think>", "</think>"


class _At(Enum):
    START = auto()
    THOUGHT = auto()
    GAP = auto()
    """Behind a thought: the blank lines there are the template's."""
    SPEECH = auto()


class Thoughts:
    """Splits a stream of text into a hidden thought, which can only stand at its beginning, and what is said."""

    def __init__(self, *, opened: bool) -> None:
        """`opened`: the prompt has opened the thought already."""
        self._at = _At.THOUGHT if opened else _At.START
        self._held = ""
        """What may be the beginning of a tag."""

    def feed(self, piece: str) -> tuple[str, str]:
        """The next piece: its hidden part and its spoken part."""
        text, self._held = self._held + piece, ""
        hidden = ""
        if self._at is _At.START:
            begun = text.lstrip()
            if len(begun) < len(OPEN) and OPEN.startswith(begun):
                self._held = text
                return "", ""
            thinks = begun.startswith(OPEN)
            self._at, text = (_At.THOUGHT, begun[len(OPEN) :]) if thinks else (_At.SPEECH, text)
        if self._at is _At.THOUGHT:
            hidden, tag, rest = text.partition(CLOSE)
            if not tag:
                held = next((n for n in range(len(CLOSE) - 1, 0, -1) if text.endswith(CLOSE[:n])), 0)
                self._held = text[len(text) - held :]
                return text[: len(text) - held], ""
            self._at, text = _At.GAP, rest
        if self._at is _At.GAP:
            text = text.lstrip()
            self._at = _At.SPEECH if text else _At.GAP
        return hidden, text

    def finish(self) -> tuple[str, str]:
        """The stream is over: what was held back."""
        held, self._held = self._held, ""
        return (held, "") if self._at is _At.THOUGHT else ("", held)
