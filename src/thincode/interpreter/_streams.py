"""What a block's `sys.stdout` and `sys.stderr` are: bounded, in order with direct writes; standard library only."""

from __future__ import annotations

import _thread
import builtins
import io
import os
from typing import Any

# As in `_worker`: what a block does to the module `builtins` must not reach this file.
globals()["__builtins__"] = dict(vars(builtins))

CONTINUATION = bytes(range(0x80, 0xC0))
"""UTF-8 bytes that start no character."""


class Output(io.FileIO):
    """Descriptor 1 as text's lower end: past `spill_at` bytes a block's output is kept as a tail only, and counted."""

    # Taken when this file is loaded: a block may have replaced them when a closed output is made anew.
    _put = staticmethod(os.write)
    _ident = staticmethod(_thread.get_ident)

    def __init__(self, *, spill_at: int, tail: int) -> None:
        super().__init__(1, "w", closefd=False)
        self.spill_at = spill_at
        self.tail_size = tail
        self.stale: frozenset[int] = frozenset()
        self.muted = False
        self.start()

    def start(self) -> None:
        self.written = 0
        self.dropped = 0
        self.tail = bytearray()

    def unheard(self) -> bool:
        """Whether the caller is a thread of an earlier block, whose words belong to no block."""
        return self.muted or (bool(self.stale) and self._ident() in self.stale)

    def write(self, data: Any) -> int:
        if self.unheard():
            return len(data)
        view = bytes(data)
        self.written += len(view)
        if self.written > self.spill_at:
            self.tail += view
            if len(self.tail) > 16 * self.tail_size:
                self._shorten()
        else:
            self._send(view)
        return len(view)

    def _shorten(self) -> None:
        gone = bytes(self.tail[: -self.tail_size])
        self.dropped += len(gone.translate(None, CONTINUATION))
        del self.tail[: -self.tail_size]

    def _send(self, view: bytes) -> None:
        while view:
            try:
                view = view[self._put(1, view) :]
            except OSError:  # the file is full or the code closed it: the rest is dropped
                self.dropped += len(view)
                return

    def finish(self) -> None:
        """Write the tail out; afterwards `dropped` counts the characters between head and tail."""
        if len(self.tail) > self.tail_size:
            self._shorten()
        self._send(bytes(self.tail))
        self.tail.clear()


class Text(io.TextIOWrapper):
    """`sys.stdout` and `sys.stderr`: a line at a time, so that direct writes to the descriptor keep their place."""

    def __init__(self, raw: Output) -> None:
        super().__init__(raw, "utf-8", errors="backslashreplace", newline="\n", line_buffering=True)
        self.raw_output = raw

    def write(self, text: str) -> int:
        # Here too: what a thread of an earlier block left in the buffer would go out with the next line.
        return len(text) if self.raw_output.stale and self.raw_output.unheard() else super().write(text)

    def forget(self) -> None:
        """Drop what stands in the buffer."""
        self.raw_output.muted = True
        try:
            self.flush()
        finally:
            self.raw_output.muted = False
