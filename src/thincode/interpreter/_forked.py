"""What backends share whose sessions are forked from a warm process; each of them says what runs in it."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import threading
import warnings
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from ..errors import InfrastructureError
from . import Limits
from ._link import Link
from .tiers import NOTHING, Tier, demand

if TYPE_CHECKING:
    from ._process import Process
    from ._session import ForkedSession

MAX_ASKED = 64
"""Session requests under way at once; a message holds three descriptors and the kernel bounds those in flight."""

ASK_S = 300.0
"""Seconds to wait for a session; the first one waits for the preload."""


class ForkedInterpreter:
    """A source of sessions; made in any thread, used on one event loop at a time."""

    def __init__(
        self, *, limits: Limits, tier: Tier | None, pool: int, preload: tuple[str, ...] = (),
        first_at_once: bool = False, off: tuple[str, ...] | None = None, library: str = "",
    ) -> None:  # fmt: skip
        """Start the supervisor.

        Args:
            limits: what a block and a session may use.
            tier: the least isolation that will do; None: the best there is.
            pool: sessions forked ahead of need.
            preload: modules imported before any session.
            first_at_once: let the first session wait for the first module only.
            off: layers of isolation to do without, so that tests can see what each of them does; None: as the tier says.
            library: the libpari whose language the blocks are in; empty: they are Python.
        """
        self.limits = limits
        self.off = off if off is not None else NOTHING if tier is Tier.T0 else ()
        self.tier: Tier | None = None
        """What the first session reached; no later one may have less."""
        self._asked = tier
        self._link = partial(
            Link, preload=preload, pool=pool, limits=limits, off=self.off, first_at_once=first_at_once, library=library
        )
        self._raise_descriptor_limit()
        self._lock = threading.Lock()
        self._supervisor: Link | None = self._link()
        self._sessions: set[ForkedSession] = set()
        self._gate = asyncio.Semaphore(MAX_ASKED)
        self._closed = False

    @staticmethod
    def _raise_descriptor_limit() -> None:
        """Three descriptors a session: let the soft limit be no obstacle."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = 16384 if hard == resource.RLIM_INFINITY else min(hard, 16384)
        if soft < wanted:
            with contextlib.suppress(ValueError, OSError):
                resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))

    async def session(self, *, seed: int = 0) -> ForkedSession:
        """A fresh session; see the door.

        Raises:
            InfrastructureError: no session can be made.
            IsolationError: this machine gives less isolation than it must.
        """
        from ._session import ForkedSession  # here and in `fork`: while they are loaded, the supervisor starts

        return self.adopt(ForkedSession(self, seed=seed, process=await self.fork(seed)))

    def adopt(self, session: ForkedSession) -> ForkedSession:
        """Close this session too when the interpreter is closed."""
        self._sessions.add(session)
        return session

    async def fork(self, seed: int) -> Process:
        """A fresh process for a session; a new supervisor where the old one has died."""
        from ._process import Process

        if self._closed:
            raise InfrastructureError("the interpreter is closed; open another")
        async with self._gate:
            for _ in range(3):
                with self._lock:
                    if self._supervisor is None or self._supervisor.dead:
                        if self._supervisor is not None:
                            self._supervisor.close()
                        self._supervisor = self._link()
                    supervisor = self._supervisor
                try:
                    process = Process(await asyncio.wait_for(supervisor.ask(), ASK_S))
                except InfrastructureError as error:
                    failure = error
                    continue
                except TimeoutError:
                    raise InfrastructureError(f"the interpreter made no session in {ASK_S:g} s") from None
                try:
                    if await process.begin(seed):
                        self._look_at_tier({**self.isolation.get("layers", {}), **process.layers})
                        return process
                except BaseException:
                    process.close()
                    raise
                process.close()
                failure = InfrastructureError("a session's process died before it was ready")
        raise failure

    def _look_at_tier(self, layers: dict[str, str]) -> None:
        found = demand(layers, self.tier or self._asked)
        if self.tier is None and found < Tier.T2 and self._asked is None:
            warnings.warn(
                f"blocks run with little isolation (tier {found}): they can read, write and connect to what you can. "
                "`thincode doctor` says why; interpreter.backend.tier says which tier will do",
                RuntimeWarning,
                stacklevel=2,
            )
        self.tier = self.tier or found

    @property
    def isolation(self) -> dict[str, Any]:
        """What the zygote reported: its layers and what it preloaded; empty before the first session."""
        return self._supervisor.isolation if self._supervisor is not None else {}

    def forget(self, session: ForkedSession) -> None:
        """Called by a session that was closed."""
        self._sessions.discard(session)

    async def close(self) -> None:
        """End all sessions and the supervisor; nothing of ours is left."""
        self._closed = True
        for session in list(self._sessions):
            await session.close()
        supervisor, self._supervisor = self._supervisor, None
        if supervisor is not None:
            await asyncio.get_running_loop().run_in_executor(None, supervisor.close)

    async def __aenter__(self) -> Self:
        """The interpreter itself."""
        return self

    async def __aexit__(self, *details: object) -> None:
        """Close."""
        await self.close()
