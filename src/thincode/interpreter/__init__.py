r"""What is run: stateful Python sessions in processes of their own.

    async with open_interpreter() as interpreter:
        async with await interpreter.session(seed=1) as session:
            result = await session.run("x = 6 * 7\nx")
            print(result.status, result.output)  # ok 42

What it does not protect: see `backends/python.py` for the isolation there is on this machine. Code in a session can lie
about its own output; nothing that grades may trust more than "text a block printed".
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol, Self, cast

from ..errors import RecipeError
from ..settings import Kind, kind, settings

if TYPE_CHECKING:
    from .presets import Keeps


class Status(StrEnum):
    """How a block ended."""

    OK = "ok"
    """Ran to its end; output too long is cut, counted, and still ok."""
    ERROR = "error"
    """An exception reached the top (SyntaxError and MemoryError included)."""
    LIMIT = "limit"
    """We stopped it: time, memory, processes, or its process died."""
    LOST = "lost"
    """Our infrastructure failed; says nothing about the code."""


@settings
class Limits:
    """What one block, and one session, may use."""

    cpu_s: float = 10.0
    """CPU seconds a block may burn."""
    wall_s: float = 20.0
    """Wall seconds a block may take; ignored where `deterministic` is set, except as a backstop of ten times."""
    memory_mib: int = 1024
    """Address space the session may add to what it starts with."""
    output_chars: int = 2000
    """Characters of a block's output that are kept: the first half and the last half; the cut is said and counted."""
    processes: int = 32
    disk_mib: int = 64
    """Largest file, and where the isolation allows it, the whole scratch folder."""
    files: int = 256
    """Open descriptors."""
    grace_s: float = 1.0
    """Between the interrupt and the kill."""
    deterministic: bool = False
    """Judge time by CPU seconds alone, so that a busy machine changes no outcome."""


@dataclass(frozen=True)
class BlockResult:
    """What running one block gave."""

    status: Status
    output: str
    """Standard output, standard error and the echo of a last expression, in order; on an error the traceback's end."""
    detail: str = ""
    """The exception's type name; `time`, `memory`, `processes`, `died`; or what of ours failed."""
    cut_chars: int = 0
    state_kept: bool = True
    """False when names defined earlier are gone, all or some; the output says which."""
    restored: str = field(default="", compare=False)
    """How names outlived their process: `checkpoint`, `replay`, `checkpoint and replay`; empty where it lived."""
    wall_s: float = field(default=0.0, compare=False)
    cpu_s: float = field(default=0.0, compare=False)


class Session(Protocol):
    """One stateful interpreter: names defined by a block are there for the next."""

    async def run(self, code: str) -> BlockResult:
        """Run one block to its end or its limit; never raises for anything the code does."""

    async def fork(self, n: int) -> Sequence[Session]:
        """Further sessions that share what was executed so far: several continuations of one trajectory.

        Nothing is executed again. Each has all names, the state of its random generators, and open files that share their
        position with the others'; each is closed by itself, and lives on when this one is closed. Branches share one
        scratch folder, one count of processes (`Limits.processes`) and each other's sight.

        Args:
            n: how many; at least 1.

        Raises:
            InfrastructureError: this backend, or this session as it is now, can't be copied; the message says why.
        """

    async def close(self) -> None:
        """End the session and everything it started."""

    async def __aenter__(self) -> Self:
        """The session itself."""

    async def __aexit__(self, *details: object) -> None:
        """Close."""


class Interpreter(Protocol):
    """A source of sessions."""

    async def session(self, *, seed: int = 0) -> Session:
        """A fresh session whose random generators start from `seed`.

        Raises:
            InfrastructureError: no session can be made.
        """

    async def close(self) -> None:
        """End all sessions; two seconds later no process, mount or file of ours is left."""

    async def __aenter__(self) -> Self:
        """The interpreter itself."""

    async def __aexit__(self, *details: object) -> None:
        """Close."""


def language_of(backend: Kind) -> str:
    """What a backend's blocks are written in: its module's `LANGUAGE`, or else `python`."""
    return str(getattr(backend.module, "LANGUAGE", "python"))


def open_interpreter(
    backend: Kind | None = None,
    *,
    limits: Limits | None = None,
    preset: str | None = None,
    keeps: Keeps | None = None,
    last_line: bool | None = None,
) -> Interpreter:
    """The interpreter a recipe names; by default isolated Python processes on this machine.

    Call it before torch is imported: the supervisor is started by exec, and must not inherit a process with threads.

    Args:
        backend: what runs the blocks.
        limits: what they may use.
        preset: behave as that system's interpreter, whose time, memory and output limits then hold; see `presets`.
        keeps: what a block finds of earlier ones, in place of the preset's.
        last_line: whether a failed block shows only the last line of its error, in place of the preset's.

    Raises:
        RecipeError: there is no such preset, or the blocks are not in Python.
        InfrastructureError: it can't be started.
    """
    chosen = backend or kind("thincode.interpreter.backends", "python")
    limits = limits or Limits()
    changed: dict[str, Any] = {
        name: value for name, value in (("keeps", keeps), ("last_line", last_line)) if value is not None
    }
    if preset is None and not changed:
        return cast("Interpreter", chosen.module.open(chosen.settings, limits=limits))
    from . import _preset_session, presets

    if preset is not None and language_of(chosen) != "python":
        raise RecipeError(
            f"preset {preset!r} runs Python, and interpreter.backend={chosen.name} does not; leave one of them out"
        )
    sheet = presets.preset(preset) if preset is not None else presets.AS_IT_IS
    limits = sheet.limits(limits) if preset is not None else limits
    inner = cast("Interpreter", chosen.module.open(chosen.settings, limits=limits))
    return _preset_session.PresetInterpreter(inner, dataclasses.replace(sheet, **changed))
