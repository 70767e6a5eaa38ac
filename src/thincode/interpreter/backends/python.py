"""Isolated Python processes on this machine: each session is forked from a warm process, and replaced when it dies.

What a session can't do is decided by the layers this machine offers; `thincode doctor` lists them, and `tiers` says what they
amount to. What no layer here prevents: code can lie about its own output, and can use a hole in the kernel.

The preload takes 3 to 5 s of CPU for the default, and goes on behind the first session, which waits for its first module only.
An empty `preload` starts at once, and its blocks import for themselves. `sys.exit()` ends a block as `ok` when its argument
is nothing or 0, as `error` otherwise.
"""

from __future__ import annotations

import asyncio
import contextlib
import resource
import threading
import warnings
from typing import Any, Self

from ...errors import InfrastructureError
from ...settings import settings
from .. import Limits
from .._link import Link
from .._process import Process
from .._session import PythonSession
from ..tiers import NOTHING, Tier, demand

MAX_ASKED = 64
"""Session requests under way at once; a message holds three descriptors and the kernel bounds those in flight."""

ASK_S = 300.0
"""Seconds to wait for a session; the first one waits for the preload."""


@settings
class Settings:
    """How sessions are made."""

    preload: tuple[str, ...] = ("sympy", "mpmath", "numpy", "scipy")
    """Modules imported and exercised once, before any session. More makes a fork dearer: bare about 1 ms, all 20 ms."""
    pool: int = 2
    """Sessions forked ahead of need."""
    first_at_once: bool = True
    """Let the first session wait for the first module only; it imports the others for itself, on its blocks' CPU time.

    Not where limits are deterministic: all sessions are alike there.
    """
    tier: Tier | None = None
    """The least isolation that will do (see `tiers`); None: the best there is. T0 asks for none, and gets none."""


def open(settings: Settings, *, limits: Limits) -> PythonInterpreter:
    """Start the supervisor; the preload goes on in the background.

    Raises:
        InfrastructureError: it can't be started.
    """
    return PythonInterpreter(settings, limits=limits)


class PythonInterpreter:
    """A source of sessions; made in any thread, used on one event loop at a time."""

    def __init__(self, settings: Settings, *, limits: Limits, off: tuple[str, ...] | None = None) -> None:
        """Start the supervisor.

        Args:
            settings: how sessions are made.
            limits: what a block and a session may use.
            off: layers of isolation to do without, so that tests can see what each of them does; None: as the tier says.
        """
        self.settings = settings
        self.limits = limits
        self.off = off if off is not None else NOTHING if settings.tier is Tier.T0 else ()
        self.tier: Tier | None = None
        """What the first session reached; no later one may have less."""
        self._raise_descriptor_limit()
        self._lock = threading.Lock()
        self._supervisor: Link | None = self._link()
        self._sessions: set[PythonSession] = set()
        self._gate = asyncio.Semaphore(MAX_ASKED)
        self._closed = False

    def _link(self) -> Link:
        settings = self.settings
        return Link(
            preload=tuple(settings.preload), pool=settings.pool, limits=self.limits, off=self.off,
            first_at_once=settings.first_at_once and not self.limits.deterministic,
        )  # fmt: skip

    @staticmethod
    def _raise_descriptor_limit() -> None:
        """Three descriptors a session: let the soft limit be no obstacle."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = 16384 if hard == resource.RLIM_INFINITY else min(hard, 16384)
        if soft < wanted:
            with contextlib.suppress(ValueError, OSError):
                resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))

    async def session(self, *, seed: int = 0) -> PythonSession:
        """A fresh session; see the door.

        Raises:
            InfrastructureError: no session can be made.
            IsolationError: this machine gives less isolation than it must.
        """
        return self.adopt(PythonSession(self, seed=seed, process=await self.fork(seed)))

    def adopt(self, session: PythonSession) -> PythonSession:
        """Close this session too when the interpreter is closed."""
        self._sessions.add(session)
        return session

    async def fork(self, seed: int) -> Process:
        """A fresh process for a session; a new supervisor where the old one has died."""
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
        found = demand(layers, self.tier or self.settings.tier)
        if self.tier is None and found < Tier.T2 and self.settings.tier is None:
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

    def forget(self, session: PythonSession) -> None:
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
