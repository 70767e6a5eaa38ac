"""The process a block runs in: reads a block, runs it, answers; standard library only.

It shares its interpreter with the code it runs, so it keeps its own references to everything it needs, and nothing it
says is trusted beyond what the host can see: the host measures time, reads the output and learns of a death by itself.

Frames, both ways: length (4 bytes, of the rest), nonce (16), sequence (8), kind (1), body (UTF-8).
"""

from __future__ import annotations

import _thread
import ast
import builtins
import io
import linecache
import os
import signal
import struct
import sys
import traceback
import types
from collections.abc import Callable
from typing import Any

# Functions look their builtins up here: what a block does to the module `builtins` must not reach this file.
globals()["__builtins__"] = dict(vars(builtins))

HEAD = struct.Struct("!I16sQB")
PREFIX = 4
READY, BEGIN, BLOCK = 1, 2, 3
OK, ERROR, INTERRUPTED = 10, 11, 12

TRACEBACK_LINES = 10
FUTURE_FLAGS = 0x1FF0000
"""Compiler flags of `from __future__ import …`, which hold for later blocks as they do at the prompt."""
CONTINUATION = bytes(range(0x80, 0xC0))
"""UTF-8 bytes that start no character."""


def pack(nonce: bytes, sequence: int, kind: int, body: bytes) -> bytes:
    """One frame."""
    return HEAD.pack(HEAD.size - PREFIX + len(body), nonce, sequence, kind) + body


class Output(io.FileIO):
    """Descriptor 1 as text's lower end: past `spill_at` bytes a block's output is kept as a tail only, and counted."""

    def __init__(self, *, spill_at: int, tail: int) -> None:
        super().__init__(1, "w", closefd=False)
        self.spill_at = spill_at
        self.tail_size = tail
        self.stale: frozenset[int] = frozenset()
        self.muted = False
        self.start()
        self._put = os.write
        self._ident = _thread.get_ident

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


class Worker:
    """The loop over blocks of one process. May be made in the process that forks it: descriptors are used from `serve` on."""

    def __init__(self, channel: int, output: int, *, output_chars: int) -> None:
        self.channel = channel
        self.output = output
        self.raw = Output(spill_at=max(1 << 20, 16 * output_chars), tail=max(1 << 14, 8 * output_chars))
        self.namespace: dict[str, Any] = {}
        self.armed = False
        self.flags = 0
        self.count = 0
        self.pid = os.getpid()
        self.main = _thread.get_ident()
        # The code may patch modules and builtins; these are the originals.
        self.saved = types.SimpleNamespace(
            read=os.read, write=os.write, getpid=os.getpid, exit=os._exit, dup2=os.dup2, compile=compile, exec=exec,
            eval=eval, repr=repr, signal=signal.signal, mask=signal.pthread_sigmask, frames=sys._current_frames,
            threads=_thread._count, unpack=HEAD.unpack, pack=pack, waitpid=os.waitpid, kill=os.kill,
            recursion=sys.getrecursionlimit(), alarm=signal.setitimer, settrace=sys.settrace,
            setprofile=sys.setprofile, truncate=os.ftruncate, seek=os.lseek,
        )  # fmt: skip
        self.stdout = self.stderr = Text(self.raw)
        self.fresh_namespace()

    def fresh_namespace(self) -> None:
        """A real `__main__` module, so that classes, pickling by name and `__name__` work as in a script."""
        main = types.ModuleType("__main__")
        sys.modules["__main__"] = main
        self.module = main
        self.namespace = main.__dict__
        # The blocks' own copy of the builtins: they see what they patch, the standard library does not.
        self.builtins = types.ModuleType("builtins")
        self.builtins.__dict__.update(vars(builtins))
        sys.modules["builtins"] = self.builtins
        self.namespace["__builtins__"] = self.builtins

    # --- the wire --------------------------------------------------------------------------------------------------

    def receive(self, size: int) -> bytes:
        parts = b""
        while len(parts) < size:
            part = self.saved.read(self.channel, min(size - len(parts), 1 << 20))
            if not part:
                self.saved.exit(0)  # the host hung up
            parts += part
        return parts

    def send(self, frame: bytes) -> None:
        while frame:
            frame = frame[self.saved.write(self.channel, frame) :]

    def serve(self, ready: bytes) -> None:
        """Answer blocks until the host hangs up; never returns."""
        self.pid = self.saved.getpid()  # made before the fork, served after it
        self.saved.signal(signal.SIGINT, self._interrupt)
        self.send(self.saved.pack(bytes(16), 0, READY, ready))
        while True:
            length, nonce, sequence, kind = self.saved.unpack(self.receive(HEAD.size))
            body = self.receive(length - HEAD.size + PREFIX)
            if kind == BEGIN:
                seed_generators(int(body))
                continue
            answer, detail = self.block(body.decode("utf-8", "surrogatepass"))
            text = f"{self.raw.dropped} {detail}".encode("utf-8", "backslashreplace")
            self.send(self.saved.pack(nonce, sequence, answer, text))

    # --- one block -------------------------------------------------------------------------------------------------

    def _interrupt(self, number: int, frame: object) -> None:
        if self.armed:
            raise KeyboardInterrupt

    def block(self, code: str) -> tuple[int, str]:
        """Run one block; (kind of answer, the exception's type name)."""
        self._before()
        try:
            try:
                self.armed = True
                answer = self._guarded(code)
            finally:
                self.armed = False
                self.saved.settrace(None)  # before anything else is called: a trace function would see it
                self.saved.setprofile(None)
        except BaseException as error:  # an interrupt between the two lines above, or in the reporting itself
            answer = INTERRUPTED if isinstance(error, KeyboardInterrupt) else ERROR, type(error).__name__
        if self.saved.getpid() != self.pid:
            self.saved.exit(0)  # a child the block forked must not answer for it
        self._after()
        return answer

    def _before(self) -> None:
        """Mend what an earlier block may have bent, where later blocks could not run without it."""
        saved = self.saved
        saved.dup2(self.output, 1)
        saved.dup2(self.output, 2)
        saved.signal(signal.SIGINT, self._interrupt)
        saved.mask(signal.SIG_SETMASK, ())
        sys.setrecursionlimit(saved.recursion)
        if self.stdout.closed:
            self.raw = Output(spill_at=self.raw.spill_at, tail=self.raw.tail_size)
            self.stdout = self.stderr = Text(self.raw)
        self.raw.start()
        self.raw.stale = frozenset(saved.frames()) - {self.main} if saved.threads() else frozenset()
        self.stdout.forget()
        # The host did so too when it sent the block; a thread may have written since.
        saved.truncate(self.output, 0)
        saved.seek(self.output, 0, os.SEEK_SET)
        sys.stdout = self.stdout
        sys.stderr = self.stderr
        sys.modules["__main__"] = self.module
        self.count += 1

    def _after(self) -> None:
        self.saved.signal(signal.SIGINT, self._interrupt)
        self.saved.alarm(signal.ITIMER_REAL, 0)
        try:
            self.stdout.flush()
            self.raw.finish()
        except BaseException:  # closed or broken by the code: its output is what arrived
            pass
        self._sweep()

    def _sweep(self) -> None:
        """Kill what the block forked and left; as subreaper this process also adopts the orphans."""
        for _ in range(100):
            try:
                pid, _status = self.saved.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                for child in children():
                    self.saved.kill(child, signal.SIGKILL)
                try:
                    self.saved.waitpid(-1, 0)
                except ChildProcessError:
                    return

    def _guarded(self, code: str) -> tuple[int, str]:
        try:
            self._run(code)
        except SystemExit as end:
            if end.code is None or end.code == 0:
                return OK, ""
            if not isinstance(end.code, int):
                self.stderr.write(f"{end.code}\n")
            return ERROR, "SystemExit"
        except KeyboardInterrupt:
            return INTERRUPTED, "KeyboardInterrupt"
        except BaseException as error:
            if self.saved.getpid() == self.pid:
                self._report(error)
            return ERROR, type(error).__name__
        return OK, ""

    def _run(self, code: str) -> None:
        """Compile and run, inside the limits; a last line that is an expression shows its value."""
        saved, name = self.saved, f"<block {self.count}>"
        lines = code.splitlines(keepends=True)
        linecache.cache[name] = (len(code), None, lines, name)
        tree = saved.compile(code, name, "exec", ast.PyCF_ONLY_AST | self.flags, True)
        last: ast.Expression | None = None
        if tree.body and isinstance(tree.body[-1], ast.Expr):
            last = ast.Expression(tree.body.pop().value)
        body = saved.compile(tree, name, "exec", self.flags, True)
        self.flags |= body.co_flags & FUTURE_FLAGS
        shown = saved.compile(last, name, "eval", self.flags, True) if last else None
        saved.exec(body, self.namespace)
        if shown is not None:
            value = saved.eval(shown, self.namespace)
            if value is not None and saved.getpid() == self.pid:
                self._echo(saved.repr(value))

    def _echo(self, text: str) -> None:
        self.stdout.write(text + "\n")

    def _report(self, error: BaseException) -> None:
        """The user's frames, the type, the message; the last lines of it."""
        try:
            text = describe(error)
        except (RecursionError, MemoryError):
            text = f"{type(error).__name__}\n"
        self.stderr.write(text)


def describe(error: BaseException) -> str:
    """A traceback of the blocks' own frames; library frames would show the host's paths and cost tokens."""
    frames: list[traceback.FrameSummary] = []
    entry = error.__traceback__
    while entry is not None:
        code = entry.tb_frame.f_code
        if code.co_filename.startswith("<block "):
            frames.append(traceback.FrameSummary(code.co_filename, entry.tb_lineno, code.co_name, lookup_line=True))
            del frames[:-TRACEBACK_LINES]
        entry = entry.tb_next
    text = "".join(traceback.format_list(frames)) if frames else ""
    # Python 3.11 appends notes and marks here; the chain of causes is left out.
    text += "".join(traceback.format_exception_only(type(error), error))
    lines = text.splitlines(keepends=True)
    if len(lines) > TRACEBACK_LINES:
        return "".join(lines[-TRACEBACK_LINES:])
    return ("Traceback (most recent call last):\n" if frames else "") + text


def children() -> list[int]:
    """Direct children; empty where there is no /proc and no namespace to read them from."""
    return list_children()


list_children: Callable[[], list[int]] = list
"""Set by whoever knows how: see `_zygote`."""


def seed_generators(seed: int) -> None:
    """Start `random`, and numpy's global generator now or when it is imported, from `seed`."""
    import random

    random.seed(seed)
    loaded = sys.modules.get("numpy.random")
    if loaded is not None:
        loaded.seed(seed % 2**32)
    else:
        sys.meta_path.insert(0, _SeedOnImport(seed))


class _SeedOnImport:
    """Seeds numpy's global generator right after its module was executed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def find_spec(self, name: str, path: object = None, target: object = None) -> Any:
        if name != "numpy.random":
            return None
        import importlib.util

        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module: types.ModuleType) -> None:
            execute(module)
            module.seed(self.seed % 2**32)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec
