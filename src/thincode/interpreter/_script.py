"""A whole program as `python FILE` runs it, inside a session: own process, separate streams, standard input, files, exit status.

The service sends this file's source as a block and calls `main`; hence the standard library only. The program runs in a
child of the session's process, so an `os._exit` or a signal gives an exit status and its output stays.
"""

from __future__ import annotations

import atexit
import base64
import json
import os
import signal
import sys
import tempfile
import threading
import time
import types
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, NoReturn

NAME = "__main__.py"
KEPT = 1 << 20
"""Bytes of each stream that are reported, from its beginning."""
WAIT_S = 0.02
"""Longest pause between looks at the child."""


def main(order: str) -> None:
    """Run one program and print what came of it as JSON.

    Args:
        order: JSON of `code`, `stdin` (or null), `files` (path → base64, or null), `fetch_files`, `run_timeout` in seconds.
    """
    asked = json.loads(order)
    for name, content in asked["files"].items():
        if content is not None:
            path = Path(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(base64.b64decode(content))
    Path(NAME).write_text(asked["code"], encoding="utf-8", errors="surrogatepass")
    streams = [tempfile.TemporaryFile() for _ in range(3)]  # noqa: SIM115 - they end with the session
    streams[0].write((asked["stdin"] or "").encode("utf-8", "surrogatepass"))
    streams[0].seek(0)
    started = time.monotonic()
    child = os.fork()
    if child == 0:
        become(asked["code"], streams)
    status, cpu_s = wait(child, asked["run_timeout"])
    report = {
        "return_code": status,
        "execution_time": time.monotonic() - started,
        "cpu_time": cpu_s,
        "stdout": beginning(streams[1]),
        "stderr": beginning(streams[2]),
        "files": {name: fetched(Path(name)) for name in asked["fetch_files"] if Path(name).is_file()},
    }
    print(json.dumps(report))


def fetched(path: Path) -> str:
    """A file as base64."""
    return base64.b64encode(path.read_bytes()).decode("ascii")


def beginning(stream: IO[bytes]) -> str:
    """The first bytes of what was written."""
    return os.pread(stream.fileno(), KEPT, 0).decode("utf-8", "replace")


def wait(child: int, limit_s: float) -> tuple[int | None, float]:
    """The child's exit status (minus the signal that ended it; None when it was stopped at the limit), its CPU seconds."""
    deadline, pause = time.monotonic() + limit_s, 0.0005
    ended, status, used = os.wait4(child, os.WNOHANG)
    while not ended:
        left = deadline - time.monotonic()
        if left <= 0:
            os.kill(child, signal.SIGKILL)
            _, _, used = os.wait4(child, 0)
            return None, used.ru_utime + used.ru_stime
        time.sleep(min(pause, left))
        pause = min(1.3 * pause, WAIT_S)
        ended, status, used = os.wait4(child, os.WNOHANG)
    return os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime


def become(code: str, streams: Sequence[IO[bytes]]) -> NoReturn:
    """Be the program: what a fresh Python has, then its end."""
    status = 120
    try:
        for number, stream in enumerate(streams):
            os.dup2(stream.fileno(), number)
        os.closerange(3, 1 << 12)  # the session's own channel above all
        signal.signal(signal.SIGINT, signal.default_int_handler)
        _before = sys.stdin, sys.stdout, sys.stderr  # their end would close our descriptors
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)  # noqa: SIM115
        sys.argv[:] = [NAME]
        sys.path.insert(0, str(Path.cwd()))
        module: Any = types.ModuleType("__main__")
        module.__file__ = NAME
        sys.modules["__main__"] = module
        status = end_of(code, module.__dict__)
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status)


def end_of(code: str, names: dict[str, Any]) -> int:
    """Run it; its exit status."""
    try:
        exec(compile(code, NAME, "exec", dont_inherit=True), names)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return (end.code or 0) & 0xFF
        print(end.code, file=sys.stderr)
        return 1
    except BaseException as error:
        trace = error.__traceback__
        own = error.with_traceback(trace and trace.tb_next)
        sys.excepthook(type(error), own, own.__traceback__)
        return 1
    return 0
