"""What a Jupyter kernel is told before its first block, so that its outcomes and texts are those of every backend.

The backend sends this file's source, with that of `_prompt.py`, to the kernel: the user's Python may not have thincode. Hence
the standard library and IPython only.
"""

from __future__ import annotations

import contextlib
import sys
import types
import warnings
from pathlib import Path
from typing import Any


def prepare(prompt_source: str, *, seed: int, memory_mib: int) -> None:
    """One order of outputs, tracebacks of the blocks alone, no input, a seed, a memory limit.

    Args:
        prompt_source: text of `_prompt.py`, whose tracebacks and seeds are used.
        seed: where `random` and numpy's global generator start.
        memory_mib: address space that blocks may add.
    """
    from IPython import get_ipython  # type: ignore[import-not-found, unused-ignore]

    prompt: Any = types.ModuleType("thincode_prompt")
    exec(compile(prompt_source, "<thincode>", "exec"), prompt.__dict__)
    shell: Any = get_ipython()
    sys.stderr = sys.stdout  # one stream has an order
    shell.display_formatter.formatters["text/plain"].pprint = False
    name_blocks(shell)
    for maker in (shell.InteractiveTB, shell.SyntaxTB):
        maker.structured_traceback = lambda kind, error, *rest, **words: prompt.describe(error).splitlines()
    shell.InteractiveTB.get_exception_only = lambda kind, error: []
    warnings.filterwarnings("ignore", message="To exit: use")
    shell.kernel.raw_input = shell.kernel.getpass = no_input
    shell.user_ns["exit"] = shell.user_ns["quit"] = sys.exit
    prompt.seed_generators(seed)
    bound_memory(memory_mib)


def name_blocks(shell: Any) -> None:
    """Code is `<block 1>`, `<block 2>`, … in tracebacks."""
    count = iter(range(1, sys.maxsize))
    shell.compile.get_code_name = lambda *_: f"<block {next(count)}>"


def no_input(*_: object, **__: object) -> str:
    """Nobody types."""
    raise EOFError("EOF when reading a line")


def bound_memory(memory_mib: int) -> None:
    """So much more than now; where the kernel (the machine's) does not say what now is, no bound."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + (memory_mib << 20)
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
