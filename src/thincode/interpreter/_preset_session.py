"""Any backend, made to behave as a preset says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Self

from ..errors import InfrastructureError
from . import BlockResult, Interpreter, Session, Status
from .presets import Keeps, Preset


class PresetInterpreter:
    """Sessions of another interpreter, under a preset."""

    def __init__(self, inner: Interpreter, preset: Preset) -> None:
        self.inner = inner
        self.preset = preset

    async def session(self, *, seed: int = 0) -> PresetSession:
        """A fresh session; see the door.

        Raises:
            InfrastructureError: no session can be made.
        """
        session = PresetSession(self, seed=seed)
        await session.ready()
        return session

    async def close(self) -> None:
        """End all sessions."""
        await self.inner.close()

    async def __aenter__(self) -> Self:
        """The interpreter itself."""
        return self

    async def __aexit__(self, *details: object) -> None:
        """Close."""
        await self.close()


class PresetSession:
    """Blocks run in sessions of the inner interpreter: in one, or each in a fresh one."""

    def __init__(
        self, interpreter: PresetInterpreter, *, seed: int, ran: Sequence[tuple[str, bool]] = (),
        inner: Session | None = None,
    ) -> None:  # fmt: skip
        self._interpreter = interpreter
        self._preset = interpreter.preset
        self._seed = seed
        self._ran = list(ran)
        self._inner = inner
        self._closed = False

    async def ready(self) -> Session:
        """A session of the inner interpreter in which the next block can run.

        Raises:
            InfrastructureError: none can be made.
        """
        if self._inner is None:
            self._inner = await self._interpreter.inner.session(seed=self._seed)
            for code in [*([self._preset.prelude] if self._preset.prelude else []), *self._preset.earlier(self._ran)]:
                await self._inner.run(code)
        return self._inner

    async def run(self, code: str) -> BlockResult:
        """Run one block to its end or its limit; never raises for anything the code does."""
        if self._closed:
            return BlockResult(Status.LOST, "", "the session is closed", state_kept=False)
        try:
            inner = await self.ready()
        except InfrastructureError as error:
            return BlockResult(Status.LOST, "", str(error), state_kept=False)
        result = await inner.run(self._preset.source(code))
        if self._preset.keeps is not Keeps.ALL:
            await self._let_go()
        if result.status is Status.LOST:
            return result
        self._ran.append((code, result.status is Status.OK))
        failed = result.status is not Status.OK
        output, cut_chars = self._preset.show(result.output, failed=failed, detail=result.detail)
        return replace(result, output=output, cut_chars=result.cut_chars + cut_chars)

    async def fork(self, n: int) -> Sequence[PresetSession]:
        """See the door: where nothing is live, what ran is all there is to share.

        Raises:
            InfrastructureError: the backend can't copy a live session.
        """
        if n < 1:
            raise ValueError(f"fork: n is {n}, and must be at least 1")
        inner: Sequence[Session | None] = [None] * n
        if self._preset.keeps is Keeps.ALL:
            inner = await (await self.ready()).fork(n)
        return [PresetSession(self._interpreter, seed=self._seed, ran=self._ran, inner=one) for one in inner]

    async def _let_go(self) -> None:
        inner, self._inner = self._inner, None
        if inner is not None:
            await inner.close()

    async def close(self) -> None:
        """End the session and everything it started."""
        self._closed = True
        await self._let_go()

    async def __aenter__(self) -> Self:
        """The session itself."""
        return self

    async def __aexit__(self, *details: object) -> None:
        """Close."""
        await self.close()
