"""The process a block runs in: reads a block, runs it, answers; like its streams and checkpoints, standard library only.

It shares its interpreter with the code it runs, so it keeps its own references to everything it needs, and nothing it
says is trusted beyond what the host can see: the host measures time, reads the output and learns of a death by itself.

Frames, both ways: length (4 bytes, of the rest), nonce (16), sequence (8), kind (1), body (UTF-8).
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # what `signal` wraps: its enums cost a tiny block a tenth of its time
import _thread
import ast
import builtins
import gc
import linecache
import os
import signal
import socket
import struct
import sys
import time
import types
from typing import TYPE_CHECKING, Any

from ._prompt import describe, seed_generators
from ._streams import Output, Text

if TYPE_CHECKING:
    from ._checkpoint import Checkpoint

# Functions look their builtins up here: what a block does to the module `builtins` must not reach this file.
globals()["__builtins__"] = dict(vars(builtins))

HEAD = struct.Struct("!I16sQB")
PREFIX = 4
READY, BEGIN, BLOCK, BRANCH = 1, 2, 3, 4
OK, ERROR, INTERRUPTED = 10, 11, 12

FUTURE_FLAGS = 0x1FF0000
"""Compiler flags of `from __future__ import …`, which hold for later blocks as they do at the prompt."""


def pack(nonce: bytes, sequence: int, kind: int, body: bytes) -> bytes:
    """One frame."""
    return HEAD.pack(HEAD.size - PREFIX + len(body), nonce, sequence, kind) + body


class Worker:
    """The loop over blocks of one process. May be made in the process that forks it: descriptors are used from `serve` on."""

    reserved = 0
    """Bytes of address space taken in advance out of what a session may add."""

    def __init__(self, channel: int, output: int, *, output_chars: int, checkpoint: Checkpoint) -> None:
        self.channel = channel
        self.output = output
        self.checkpoint = checkpoint
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
            eval=eval, repr=repr, signal=_signal.signal, mask=_signal.pthread_sigmask, frames=sys._current_frames,
            threads=_thread._count, unpack=HEAD.unpack, pack=pack, waitpid=os.waitpid, cpu=time.process_time,
            clock=time.monotonic, set_blocking=os.set_blocking, socket=socket.socket, recv_fds=socket.recv_fds,
            close=os.close, getppid=os.getppid, collect=gc.collect,
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

    def seed(self, seed: int) -> None:
        """Start the random generators."""
        seed_generators(seed)

    # --- the wire --------------------------------------------------------------------------------------------------

    def receive(self, size: int) -> bytes:
        parts = b""
        while len(parts) < size:
            try:
                part = self.saved.read(self.channel, min(size - len(parts), 1 << 20))
            except BlockingIOError:  # a block changed it
                self.saved.set_blocking(self.channel, True)
                continue
            if not part:
                self.saved.exit(0)  # the host hung up
            parts += part
        return parts

    def send(self, frame: bytes) -> None:
        while frame:
            try:
                frame = frame[self.saved.write(self.channel, frame) :]
            except BlockingIOError:
                self.saved.set_blocking(self.channel, True)

    def serve(self, layers: str) -> None:
        """Answer blocks until the host hangs up; never returns.

        Args:
            layers: what isolation there is, as JSON.
        """
        self.checkpoint.root = self.saved.getppid()
        self._here(f', "layers": {layers}')
        while True:
            length, nonce, number, kind = self.saved.unpack(self.receive(HEAD.size))
            body = self.receive(length - HEAD.size + PREFIX)
            if kind == BEGIN:
                self.seed(int(body))
                continue
            if kind == BRANCH:
                self._branch(nonce, number, int(body))
                continue
            cpu_s, wall_s = self.saved.cpu(), self.saved.clock()
            answer, detail = self.block(number, body.decode("utf-8", "surrogatepass"))
            left = self._left()
            cpu_s, wall_s = self.saved.cpu() - cpu_s, self.saved.clock() - wall_s
            if self.checkpoint.after(cpu_s=cpu_s, wall_s=wall_s, stopped=answer == INTERRUPTED):
                self._wake()
            else:
                self._answer(nonce, number, answer, detail, left=left)

    def _answer(self, nonce: bytes, number: int, kind: int, detail: str, *, left: bool = False) -> None:
        """Characters dropped, the checkpoint's process, whether processes of the block still run, and the detail."""
        text = f"{self.raw.dropped} {self.checkpoint.pid} {int(left)} {detail}"
        self.send(self.saved.pack(nonce, number, kind, text.encode("utf-8", "backslashreplace")))

    def _here(self, more: str = "") -> None:
        """This process is the worker now: say so. The kernel adds who it is."""
        self.pid = self.saved.getpid()
        self.saved.signal(signal.SIGINT, self._interrupt)
        told = f'{{"pid": {self.pid}, "checkpoint": {self.checkpoint.pid}{more}}}'
        self.send(self.saved.pack(bytes(16), 0, READY, told.encode()))

    def _wake(self) -> None:
        """Go on where this copy was made: whatever stands in the channel was for the worker that died."""
        saved, woken = self.saved, True
        while woken:
            saved.set_blocking(self.channel, False)
            try:
                while saved.read(self.channel, 1 << 16):
                    pass
            except BlockingIOError:
                pass
            saved.set_blocking(self.channel, True)
            woken = self.checkpoint.make()  # so that the next death finds one too: there it comes back as True
        self._here()

    def _branch(self, nonce: bytes, number: int, count: int) -> None:
        """Make copies of this process that go on beside it, each on a channel and an output that the host sends."""
        saved, pids, failed = self.saved, list[int](), ""
        channel = saved.socket(socket.AF_UNIX, socket.SOCK_STREAM, fileno=self.channel)
        for _ in range(count):
            _, ends, _, _ = saved.recv_fds(channel, 1, 2)
            try:
                if len(ends) != 2:
                    raise OSError("no descriptors are left")
                if not failed:
                    pids.append(self.checkpoint.copier.copy())
            except (OSError, RuntimeError) as error:
                failed = str(error)
            copied = pids[-1:] == [0]
            if copied:
                saved.dup2(ends[0], self.channel, False)
                saved.dup2(ends[1], self.output, False)
            for descriptor in ends:
                saved.close(descriptor)
            if copied:
                break
        channel.detach()
        if pids[-1:] != [0]:
            self.checkpoint.pid = 0
            self._answer(nonce, number, ERROR if failed else OK, failed or " ".join(map(str, pids)))
        elif self.checkpoint.branched():
            self._wake()
        else:
            self._here()

    # --- one block -------------------------------------------------------------------------------------------------

    def _interrupt(self, number: int, frame: object) -> None:
        if self.armed:
            raise KeyboardInterrupt

    def block(self, number: int, code: str) -> tuple[int, str]:
        """Run one block; (kind of answer, the exception's type name)."""
        self.count = number
        self._before()
        try:
            try:
                self.armed = True
                answer = self._guarded(code)
                if answer[0] == ERROR:
                    # In a later block's output, the last words of what its frames held would be a riddle.
                    self.saved.collect(1)
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
        self._left()
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

    def _after(self) -> None:
        self.saved.signal(signal.SIGINT, self._interrupt)
        self.saved.alarm(signal.ITIMER_REAL, 0)
        try:
            self.stdout.flush()
            self.raw.finish()
        except BaseException:  # closed or broken by the code: its output is what arrived
            pass

    def _left(self) -> bool:
        """Reap what blocks forked and what has ended; whether some still run. Their end is the session's first process's work.

        As subreaper this process also adopts the orphans.
        """
        try:
            while self.saved.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return False
        return True

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
        body = saved.compile(tree, name, "exec", self.flags, True) if tree.body else None
        self.flags |= body.co_flags & FUTURE_FLAGS if body else 0
        shown = saved.compile(last, name, "eval", self.flags, True) if last else None
        if body is not None:
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
