"""A session of an isolated process: its blocks, what happens when its process dies, its branches."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from ..errors import InfrastructureError, IsolationError
from . import BlockResult, Limits, Status
from ._block import End, Ended, Stop
from ._process import Process
from ._replay import Past, Ran, names

if TYPE_CHECKING:
    from ._forked import ForkedInterpreter


@dataclass(frozen=True)
class Recovery:
    """What came of bringing a session's names back."""

    how: str
    """`checkpoint`, `replay`, `checkpoint and replay`; empty where nothing came back."""
    lost: tuple[Ran, ...]
    kept: int
    """Blocks whose names are there."""

    def __str__(self) -> str:
        if not self.lost and not self.kept:
            return ""  # nothing was there
        if not self.lost:
            return "Names are as they were before this block."
        if not self.kept:
            return "Names defined earlier are gone."
        return f"What {names(self.lost)} defined is gone; names from before are as they were."


class ForkedSession:
    """One stateful interpreter. When its process dies it goes on from a checkpoint, or from blocks run again, or anew."""

    def __init__(
        self, interpreter: ForkedInterpreter, *, seed: int, process: Process, past: Past | None = None
    ) -> None:
        self._interpreter = interpreter
        self._seed = seed
        self._process: Process | None = process
        self._past = past or Past()
        self._number = self._past.blocks[-1].number if self._past.blocks else 0
        self._stale = False
        """Whether a block was abandoned half-way: its process must go back before the next one."""
        self._busy = asyncio.Lock()
        self._closed = False

    @property
    def layers(self) -> dict[str, str]:
        """What isolation this session's process reported."""
        return self._process.layers if self._process is not None else {}

    async def run(self, code: str) -> BlockResult:
        """Run one block to its end or its limit; never raises for anything the code does."""
        async with self._busy:
            if self._closed:
                return BlockResult(Status.LOST, "", "the session is closed", state_kept=False)
            try:
                before = await self._ready()
                return await self._run(code, before)
            except (InfrastructureError, IsolationError) as error:
                return BlockResult(Status.LOST, "", str(error), state_kept=False)

    async def _run(self, code: str, before: Recovery | None) -> BlockResult:
        limits = self._interpreter.limits
        assert self._process is not None
        self._number += 1
        try:
            ended = await self._process.run(self._number, code, limits)
        except BaseException:
            self._abandon()  # the block may still run, its answer would come to the next one
            raise
        recovery = None
        if ended.end is End.LOST:
            self._forget()
        elif ended.process_lives:
            self._past.add(self._number, code, ended)
        else:
            recovery = await self._recover()
        result = result_of(ended, limits, recovery)
        if before is not None and before.lost:
            return replace(result, output=f"{before}\n{result.output}", state_kept=False)
        return result

    async def fork(self, n: int) -> list[ForkedSession]:
        """See the door.

        Raises:
            InfrastructureError: the session can't be copied; the message says why.
        """
        if n < 1:
            raise ValueError(f"fork: n is {n}, and must be at least 1")
        async with self._busy:
            if self._closed:
                raise InfrastructureError("fork: the session is closed; open another")
            await self._ready()
            assert self._process is not None
            try:
                made = await self._process.branch(self._number, n, self._interpreter.limits)
            except OSError as error:
                raise InfrastructureError(f"fork: no {n} copies of the session: {error}") from error
            past = self._past.blocks
            return [
                self._interpreter.adopt(ForkedSession(
                    self._interpreter, seed=self._seed, process=process,
                    past=Past(list(past), len(past) if process.checkpoint else 0),
                ))
                for process in made
            ]  # fmt: skip

    # --- when the process is gone ------------------------------------------------------------------------------------

    async def _ready(self) -> Recovery | None:
        """See to it that a process holds the session's names.

        Raises:
            InfrastructureError: no process can be made.
        """
        if self._process is not None and not self._stale:
            return None
        recovery = await self._recover()
        if self._process is None:
            raise InfrastructureError("no process for the session could be made")
        return recovery

    async def _recover(self) -> Recovery:
        """Bring the names back: from the checkpoint, and by running again what came after it."""
        past, goal = self._past, len(self._past.blocks)
        everything = tuple(past.blocks)
        try:
            while True:
                start = await self._go_back()
                assert self._process is not None
                reached = await past.repeat(self._process, start=start, end=goal, limits=self._interpreter.limits)
                if reached == goal:
                    break
                # Once more, without the block that went another way; and if that fails too, with none.
                goal = reached if goal == len(everything) else start
        except InfrastructureError:
            self._forget()
            return Recovery("", everything, 0)
        del past.blocks[goal:]
        self._stale = False
        how = [word for word, did in (("checkpoint", start > 0), ("replay", goal > start)) if did]
        return Recovery(" and ".join(how), everything[goal:], goal)

    async def _go_back(self) -> int:
        """Have a process that holds the first blocks of the past, and say how many.

        Raises:
            InfrastructureError: no process can be made.
        """
        if self._process is not None and await self._process.revive():
            return self._past.covered
        self._drop()
        self._past.covered = 0
        self._process = await self._interpreter.fork(self._seed)
        return 0

    def _abandon(self) -> None:
        self._stale = True
        if self._process is not None and self._process.checkpoint:
            self._process.halt()
        else:
            self._drop()

    def _forget(self) -> None:
        self._drop()
        self._past = Past()
        self._stale = False

    def _drop(self) -> None:
        if self._process is not None:
            self._process.close()
            self._process = None

    async def close(self) -> None:
        """End the session and everything it started."""
        self._closed = True
        self._drop()
        self._interpreter.forget(self)

    async def __aenter__(self) -> Self:
        """The session itself."""
        return self

    async def __aexit__(self, *details: object) -> None:
        """Close."""
        await self.close()


def result_of(ended: Ended, limits: Limits, recovery: Recovery | None = None) -> BlockResult:
    """The door's result for what the client saw; no measured time enters the text."""
    times: dict[str, Any] = {"wall_s": ended.wall_s, "cpu_s": ended.cpu_s}
    if ended.end is End.LOST:
        return BlockResult(Status.LOST, "", ended.detail, state_kept=False, **times)
    output, cut_chars = ended.output, ended.cut_chars
    if ended.stop is not None:
        if limits.deterministic:
            output, cut_chars = "", 0  # how far it came is a matter of timing
        took = f"{limits.cpu_s:g} s of CPU time" if ended.stop is Stop.CPU else f"{limits.wall_s:g} s"
        note, detail = f"Stopped: the block used up its {took}.", "time"
    elif ended.end is End.DIED:
        note, detail = f"The process died ({ended.detail}).", "died"
    elif ended.end is End.FORGED:
        note, detail = f"Stopped: the block tampered with its interpreter ({ended.detail}).", "tampered"
    else:
        status = Status.OK if ended.end is End.OK else Status.ERROR
        detail = ended.detail[:80] if ended.detail.isprintable() else "Exception"
        return BlockResult(status, output, "" if status is Status.OK else detail, cut_chars, **times)
    if output and not output.endswith("\n"):
        output += "\n"
    if recovery is None:
        return BlockResult(Status.LIMIT, f"{output}{note}\n", detail, cut_chars, **times)
    return BlockResult(
        Status.LIMIT, f"{output}{note} {recovery}".rstrip() + "\n", detail, cut_chars, state_kept=not recovery.lost,
        restored=recovery.how, **times,
    )  # fmt: skip
