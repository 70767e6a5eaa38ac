"""Blocks of PARI/GP: a libpari loaded into the worker's process and asked line by line, as gp's prompt is; standard library only.

Being the worker itself, it has the session's isolation, its limits, its checkpoints and its branches, and no program is started.
"""

from __future__ import annotations

import ctypes
import re
import signal
from collections.abc import Iterator

from ._checkpoint import Checkpoint
from ._worker import Worker

STACK = 8 << 20
"""Bytes of PARI's stack at the start; it grows up to half of a session's memory, heap and clones have the other half."""
DEFAULTS = ('datadir,"."', "breakloop,0", "debugmem,0", "nbthreads,1", "secure,1")
"""No data packages, no prompt after an error, no word when the stack grows, no threads; secure mode, for good."""
NO_INPUT = ctypes.c_char_p(b"no input")
"""What `input` is called in a session: with nothing to read it would ask for ever."""
VERSION = (2, 15)
"""Of PARI: its `gp_embedded` gives the value back, that of 2.17 prints it; no other was tried."""
MEMORY = ("the PARI stack overflows", "not enough memory")

_VALUE = re.compile(r"%\d+ = (.*)\n", re.DOTALL)
# String, comment to the line's end, comment, end of a line that goes on, braces, end of a line.
_PIECE = re.compile(r'"(?:[^"\\\n]|\\.)*"?|\\\\[^\n]*|/\*.*?(?:\*/|\Z)|[\\=][ \t]*\n|[{}\n]', re.DOTALL)


class PariError(Exception):
    """What PARI said against a line."""


def inputs(code: str) -> Iterator[str]:
    """A block, cut as gp's prompt cuts what is typed: a line; more of them between braces, or after a final backslash or `=`."""
    start, inside = 0, False
    for piece in _PIECE.finditer(code):
        if piece[0] in "{}":
            inside = piece[0] == "{"
        elif piece[0] == "\n" and not inside:
            yield code[start : piece.end()]
            start = piece.end()
    yield code[start:]


def version_of(library: ctypes.CDLL) -> tuple[int, int]:
    """Major and minor version of a libpari; (0, 0) for another library."""
    try:
        code = ctypes.c_ulong.in_dll(library, "paricfg_version_code").value
    except ValueError:
        return 0, 0
    return code >> 16, code >> 8 & 255


class Pari:
    """A libpari in this process."""

    def __init__(self, library: str, *, stack_bytes: int) -> None:
        """Load and start it.

        Raises:
            OSError: it can't be loaded, is no libpari, or one of another version.
        """
        self.library = ctypes.CDLL(library)
        found = version_of(self.library)
        if found != VERSION:
            raise OSError(
                f"{library} is PARI {found[0]}.{found[1]}, and it must be 2.15: pip install 'thincode[gp]' brings one"
            )
        self.embedded, start = self.library.gp_embedded, self.library.gp_embedded_init
        self.embedded.restype, self.embedded.argtypes = ctypes.c_void_p, [ctypes.c_char_p]
        start.restype, start.argtypes = None, [ctypes.c_size_t] * 2
        self.c = ctypes.CDLL(None)
        self.handle = self.library.os_signal
        self.handle.restype, self.handle.argtypes = ctypes.c_void_p, [ctypes.c_int, ctypes.c_void_p]
        self.handler = ctypes.cast(self.library.pari_sighandler, ctypes.c_void_p)
        # PARI's handler notes an interrupt while the first one is set; it jumps out of what PARI is doing where it is not.
        self.held = ctypes.c_int.in_dll(self.library, "PARI_SIGINT_block")
        self.noted = ctypes.c_int.in_dll(self.library, "PARI_SIGINT_pending")
        before = signal.getsignal(signal.SIGINT)
        start(min(STACK, stack_bytes), stack_bytes)
        self.held.value = 1
        signal.signal(signal.SIGINT, before)
        # A line at a time, as `sys.stdout` here, so that what was printed is there when the process is killed.
        out = ctypes.c_void_p.in_dll(self.library, "pari_outfile")
        self.c.setvbuf(out, None, 1, 1 << 12)
        for default in DEFAULTS:
            self.tell(f"default({default});")
        self.library.is_entry.restype = ctypes.POINTER(ctypes.c_char_p)
        self.library.is_entry(b"input")[0] = NO_INPUT

    def tell(self, line: str) -> str:
        """Evaluate one input; its value as gp prints it, empty where there is none to show.

        Raises:
            PariError: what PARI says against it; SyntaxError and MemoryError where that is its kind.
            KeyboardInterrupt: it was interrupted.
        """
        if "\0" in line:
            raise SyntaxError("syntax error, unexpected NUL")
        source, held = line.encode("utf-8", "surrogatepass"), self.held
        held.value = 0
        place = self.embedded(source)
        held.value = 1
        told = ctypes.string_at(place).decode("utf-8", "replace")
        self.c.fflush(None)
        if self.noted.value:
            self.noted.value = 0
            raise KeyboardInterrupt
        value = _VALUE.fullmatch(told)
        if value or not told.strip():
            return value[1] if value else ""
        if told.startswith("user interrupt"):
            raise KeyboardInterrupt
        if told.startswith("syntax error"):
            raise SyntaxError(told)
        if told.startswith(MEMORY):
            raise MemoryError(told.partition("\n")[0])
        if told.startswith("Can't ask for confirmation"):
            told = "[secure mode]: not allowed in a session"
        raise PariError(told)

    def hear(self) -> None:
        """From now on an interrupt stops PARI, where Python would hear of it only afterwards."""
        self.noted.value = 0
        self.handle(signal.SIGINT, self.handler)


class GpWorker(Worker):
    """A worker whose blocks are lines for gp's prompt."""

    def __init__(
        self, channel: int, output: int, *, output_chars: int, checkpoint: Checkpoint, library: str, memory_mib: int
    ) -> None:
        super().__init__(channel, output, output_chars=output_chars, checkpoint=checkpoint)
        self.reserved = memory_mib << 19
        self.pari = Pari(library, stack_bytes=self.reserved)

    def seed(self, seed: int) -> None:
        self.pari.tell(f"setrand({seed % (1 << 64) + 1});")

    def _run(self, code: str) -> None:
        """Show each line's value unless `;` ends it, up to the first error; variables that its line assigned lose their values."""
        self.pari.hear()  # until the worker listens again, behind the block
        try:
            for line in inputs(code):
                shown = self.pari.tell(line) if line.strip() else ""
                if shown and self.saved.getpid() == self.pid:
                    self._echo(shown)
        except KeyboardInterrupt:
            self.saved.exit(1)  # PARI forgot what the line assigned: the session goes on from before the block

    def _report(self, error: BaseException) -> None:
        """As gp's last line of it."""
        self.stderr.write(f"  ***   {error}\n")
