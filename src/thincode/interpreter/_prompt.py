"""What a block finds at the prompt: tracebacks of its own lines, generators that start from a seed; standard library only."""

from __future__ import annotations

import builtins
import errno
import sys
import traceback
import types
from typing import Any

# As in `_worker`: what a block does to the module `builtins` must not reach this file.
globals()["__builtins__"] = dict(vars(builtins))

TRACEBACK_LINES = 10
REFUSED = "a session has no network, starts no programs and has no privileges"
"""Why a system call was refused, for who wonders: a model that knows it tries something else."""


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
    told = "".join(traceback.format_exception_only(type(error), error))
    # What a file's rights refuse has another number (EACCES).
    text += f"{told.rstrip()} ({REFUSED})\n" if isinstance(error, OSError) and error.errno == errno.EPERM else told
    lines = text.splitlines(keepends=True)
    if len(lines) > TRACEBACK_LINES:
        return "".join(lines[-TRACEBACK_LINES:])
    return ("Traceback (most recent call last):\n" if frames else "") + text


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
