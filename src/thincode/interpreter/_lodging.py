"""Who gets in, what stays warm, who still lives here: the service without its wire."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field

from ..errors import InfrastructureError
from . import Interpreter, Limits, Session


class OverloadedError(InfrastructureError):
    """No room now; the same request may be made again soon."""


class Gate:
    """At most `at_once` holders, at most `queue` who wait; everybody else hears it at once."""

    def __init__(self, *, at_once: int, queue: int) -> None:
        self.at_once = at_once
        self.queue = queue
        self.running = 0
        self.waiting = 0
        self._slots = asyncio.Semaphore(at_once)

    @contextlib.asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for a slot and hold it.

        Raises:
            OverloadedError: the queue is full.
        """
        if self._slots.locked() and self.waiting >= self.queue:
            raise OverloadedError(
                f"overloaded: {self.running} blocks run and {self.waiting} wait; ask again later, start a server on another "
                "machine, or start this one with a larger `queue`"
            )
        self.waiting += 1
        try:
            await self._slots.acquire()
        finally:
            self.waiting -= 1
        self.running += 1
        try:
            yield
        finally:
            self.running -= 1
            self._slots.release()


class Warm:
    """Interpreters by their limits, opened when first asked for; each keeps a warm process, so there are few."""

    def __init__(self, opener: Callable[[Limits], Interpreter], *, kinds: int) -> None:
        self._opener = opener
        self._kinds = kinds
        self._open: dict[Limits, Interpreter] = {}
        self._users: Counter[Limits] = Counter()

    @contextlib.asynccontextmanager
    async def use(self, limits: Limits) -> AsyncIterator[Interpreter]:
        """The interpreter with these limits; it stays open while it is used.

        Raises:
            OverloadedError: as many kinds of limits as there may be are in use.
        """
        self._users[limits] += 1
        try:
            yield await self._get(limits)
        finally:
            self._users[limits] -= 1

    async def _get(self, limits: Limits) -> Interpreter:
        if limits not in self._open:
            if len(self._open) >= self._kinds:
                idle = [one for one in self._open if not self._users[one]]
                if not idle:
                    raise OverloadedError(
                        f"overloaded: sessions with {self._kinds} different limits live here; ask for the limits of one of "
                        "them, wait, or start the server with a larger `kinds`"
                    )
                closing = self._open.pop(idle[0])
                await closing.close()
            if limits not in self._open:
                self._open[limits] = self._opener(limits)
        self._open[limits] = self._open.pop(limits)  # the least recently used comes first
        return self._open[limits]

    async def close(self) -> None:
        """Close them all."""
        while self._open:
            _, interpreter = self._open.popitem()
            await interpreter.close()


@dataclass
class Guest:
    """One live session of a client."""

    session: Session
    limits: Limits
    stay: contextlib.AsyncExitStack
    last: float
    busy: int = 0


@dataclass
class Guests:
    """Live sessions by name; one that nobody used for `idle_s` is closed."""

    warm: Warm
    most: int
    idle_s: float
    clock: Callable[[], float] = time.monotonic
    _rooms: dict[str, Guest] = field(default_factory=dict)
    _arriving: int = 0

    def __len__(self) -> int:
        return len(self._rooms)

    def __contains__(self, name: str) -> bool:
        return name in self._rooms

    async def admit(self, seed: int, limits: Limits) -> str:
        """A fresh session; its name.

        Raises:
            OverloadedError: too many live.
            InfrastructureError: no session can be made.
        """
        with self._room_for(1):
            async with contextlib.AsyncExitStack() as stack:
                interpreter = await stack.enter_async_context(self.warm.use(limits))
                session = await stack.enter_async_context(await interpreter.session(seed=seed))
                return self._settle(session, limits, stack.pop_all())

    async def branch(self, guest: Guest, count: int) -> list[str]:
        """Copies of a session; their names.

        Raises:
            OverloadedError: too many live.
            InfrastructureError: it can't be copied.
        """
        names = []
        with self._room_for(count):
            for session in await guest.session.fork(count):
                stay = contextlib.AsyncExitStack()
                await stay.enter_async_context(self.warm.use(guest.limits))
                names.append(self._settle(await stay.enter_async_context(session), guest.limits, stay))
        return names

    @contextlib.contextmanager
    def _room_for(self, count: int) -> Iterator[None]:
        if len(self._rooms) + self._arriving + count > self.most:
            raise OverloadedError(
                f"overloaded: {len(self._rooms)} of {self.most} sessions live here; close some, wait until idle ones end "
                f"after {self.idle_s:g} s, or start the server with a larger `sessions`"
            )
        self._arriving += count
        try:
            yield
        finally:
            self._arriving -= count

    def _settle(self, session: Session, limits: Limits, stay: contextlib.AsyncExitStack) -> str:
        name = secrets.token_urlsafe(16)
        self._rooms[name] = Guest(session, limits, stay, self.clock())
        return name

    @contextlib.contextmanager
    def visit(self, name: str) -> Iterator[Guest]:
        """Use a session that is here; it does not expire meanwhile."""
        guest = self._rooms[name]
        guest.busy += 1
        try:
            yield guest
        finally:
            guest.busy -= 1
            guest.last = self.clock()

    async def leave(self, name: str) -> None:
        """End a session; one that is not there is no mistake."""
        guest = self._rooms.pop(name, None)
        if guest is not None:
            await guest.stay.aclose()

    async def expire(self) -> None:
        """End those that were idle for too long."""
        before = self.clock() - self.idle_s
        for name in [name for name, guest in self._rooms.items() if not guest.busy and guest.last < before]:
            await self.leave(name)

    async def close(self) -> None:
        """End all."""
        for name in list(self._rooms):
            await self.leave(name)
