"""Isolated Python processes on this machine: each session is forked from a warm process, and replaced when it dies.

What a session can't do is decided by the layers this machine offers; `thincode doctor` lists them, and `tiers` says what they
amount to. What no layer here prevents: code can lie about its own output, and can use a hole in the kernel.

The preload takes 3 to 5 s of CPU for the default, and goes on behind the first session, which waits for its first module only.
An empty `preload` starts at once, and its blocks import for themselves. `sys.exit()` ends a block as `ok` when its argument
is nothing or 0, as `error` otherwise.
"""

from __future__ import annotations

from ...settings import settings
from .. import Limits
from .._forked import ForkedInterpreter
from ..tiers import Tier


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


class PythonInterpreter(ForkedInterpreter):
    """A source of sessions of Python."""

    def __init__(self, settings: Settings, *, limits: Limits, off: tuple[str, ...] | None = None) -> None:
        """Start the supervisor.

        Args:
            settings: how sessions are made.
            limits: what a block and a session may use.
            off: layers of isolation to do without, so that tests can see what each of them does; None: as the tier says.
        """
        self.settings = settings
        super().__init__(
            limits=limits, tier=settings.tier, pool=settings.pool, preload=tuple(settings.preload), off=off,
            first_at_once=settings.first_at_once and not limits.deterministic,
        )  # fmt: skip
