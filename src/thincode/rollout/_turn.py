"""What the model writes between two insertions: the sink an engine pushes into."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..trajectory.formats import Call, Scanner

if TYPE_CHECKING:
    from ..trajectory.tokenizer import Tokenizer

Watch = Callable[[str], None]
"""Shown each piece as it comes, for a live view."""


class Turn:
    """Collects one turn and says stop at the first complete block, or when time is up."""

    def __init__(
        self,
        scanner: Callable[[], Scanner],
        tokenizer: Tokenizer | None,
        *,
        deadline: float | None = None,
        watch: Watch | None = None,
    ) -> None:
        """Begin a turn; `scanner` makes fresh ones; `deadline` is on `time.monotonic`'s clock."""
        self._make_scanner = scanner
        self._tokenizer = tokenizer
        self._deadline = deadline
        self._watch = watch
        self._eos = frozenset(tokenizer.eos_ids) if tokenizer is not None else frozenset()
        self.again()

    def again(self) -> None:
        """Forget everything: the engine begins the turn anew."""
        self.call: Call | None = None
        self.out_of_time = False
        self.ended = False
        """The model ended its turn by an end-of-sequence token, which is kept in `end_id`."""
        self.end_id: tuple[int, float] | None = None
        self.ids: list[int] = []
        self.logprobs: list[float] = []
        self.starts: list[int] = []
        """Where in the text each token starts."""
        self.hidden_chars = 0
        """Of hidden thoughts that count against the context."""
        self._pieces: list[str] = []
        self._length = 0
        self._scanner = self._make_scanner()
        self._stream = self._tokenizer.stream() if self._tokenizer is not None else None

    @property
    def body(self) -> str:
        """The text so far."""
        return "".join(self._pieces)

    def token(self, token_id: int, logprob: float) -> bool:
        """Take one sampled token; True means stop."""
        if token_id in self._eos:
            self.end_id = (token_id, logprob)
            self.ended = True
            return True
        assert self._stream is not None, "an engine that speaks ids needs a tokenizer"
        self.ids.append(token_id)
        self.logprobs.append(logprob)
        self.starts.append(self._length)
        return self.text(self._stream.feed(token_id))

    def text(self, piece: str) -> bool:
        """Take a piece of text; True means stop."""
        self._add(piece)
        return self._is_late() or self.call is not None

    def hidden(self, piece: str, *, counted: bool) -> bool:
        """Take a piece of a hidden thought, of which only the length is kept; True means stop."""
        self.hidden_chars += len(piece) if counted else 0
        return self._is_late()

    def _is_late(self) -> bool:
        self.out_of_time = self.out_of_time or (self._deadline is not None and time.monotonic() > self._deadline)
        return self.out_of_time

    def _add(self, piece: str) -> None:
        if piece:
            self._pieces.append(piece)
            self._length += len(piece)
            if self._watch is not None:
                self._watch(piece)
            self.call = self._scanner.feed(piece)

    def finish(self) -> Call | None:
        """The engine stopped. A closer at the very end of an ended turn makes its block complete now."""
        if self._stream is not None:
            self._add(self._stream.finish())  # a character the turn left incomplete
        if self.call is None and not self.out_of_time and self.ended:
            self.call = self._scanner.finish()
        return self.call

    def kept_tokens(self, end: int) -> int:
        """How many tokens lie wholly inside the first `end` characters."""
        kept = len(self.ids)
        while kept > 0:
            stop = self.starts[kept] if kept < len(self.ids) else self._length
            if stop <= end:
                break
            kept -= 1
        return kept


class Deaf:
    """Hears no call: where blocks are not run, the model's text just goes on."""

    def feed(self, text: str) -> Call | None:
        return None

    def finish(self) -> Call | None:
        return None
