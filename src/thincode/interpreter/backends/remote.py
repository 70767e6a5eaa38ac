"""Sessions on a server that several machines share: `thincode interpreter serve` over there, this backend here.

The server's isolation and its machine's speed are what counts; this process runs no block. The token is read from the
environment variable THINCODE_TOKEN, or stands in the URL (`http://host:8080/TOKEN`). Traffic is not encrypted unless the URL
says https (a proxy before the server).

A new session waits up to `patience_s` for a server that is away, ending or overloaded, so a restart costs time and no sample.
A block under way when the connection breaks is `lost`, and the names of its session with it; the next block has a new session.
"""

from __future__ import annotations

import asyncio
import json
import os
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from ...errors import InfrastructureError, RecipeError, require
from ...settings import NonNegativeFloat, dump, settings
from .. import BlockResult, Limits, Status

if TYPE_CHECKING:
    import aiohttp

CONNECT_S = 5.0
BACKSTOP = 10
"""Deterministic limits let a block take this many times its wall seconds."""
PAUSE_S, LONGEST_PAUSE_S = 0.1, 2.0
"""Between attempts while the server has no room."""


@settings
class Settings:
    """Where the server is."""

    url: str = "http://127.0.0.1:8080"
    patience_s: NonNegativeFloat = 60.0
    """How long a session, or a block's turn, may be waited for."""

    def check(self) -> Iterator[tuple[str, str]]:
        """What the type can't say."""
        if not self.url.startswith(("http://", "https://")):
            yield "url", f"{self.url!r} is no http:// or https:// address"


def open(settings: Settings, *, limits: Limits) -> RemoteInterpreter:
    """Ask the server once whether it is there and gives these limits.

    Raises:
        MissingExtraError: aiohttp is not installed.
        InfrastructureError: nobody answers there.
        RecipeError: the token is wrong, or the server gives less than these limits.
    """
    require("aiohttp", extra="remote", needed_for="the interpreter backend `remote`")
    interpreter = RemoteInterpreter(settings, limits=limits)
    interpreter.look()
    return interpreter


class RemoteInterpreter:
    """A source of sessions; made in any thread, used on one event loop."""

    def __init__(self, settings: Settings, *, limits: Limits) -> None:
        token = os.environ.get("THINCODE_TOKEN")
        self.url = settings.url.rstrip("/")
        self.patience_s = settings.patience_s
        self.limits = limits
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.answer_s = limits.wall_s * (BACKSTOP if limits.deterministic else 1) + limits.grace_s + settings.patience_s
        self._client: aiohttp.ClientSession | None = None
        self._sessions: set[RemoteSession] = set()
        self._closed = False

    @property
    def place(self) -> str:
        """The server as messages name it, without a token."""
        scheme, _, rest = self.url.partition("://")
        return f"{scheme}://{rest.partition('/')[0]}"

    def look(self) -> None:
        """Ask how the server is, without an event loop."""
        request = urllib.request.Request(f"{self.url}/v1/health", headers=self.headers)
        try:
            with urllib.request.urlopen(request, timeout=CONNECT_S) as answer:
                most = json.load(answer)["most"]
        except urllib.error.HTTPError as error:
            with error:
                raise self.refused(error.code, error.read()) from None
        except (OSError, ValueError, KeyError) as error:
            raise self.away(error) from error
        mine = dump(self.limits)
        over = [name for name, value in mine.items() if name != "deterministic" and value > most.get(name, value)]
        if over:
            raise RecipeError(
                "\n".join(
                    f"interpreter.limits.{name}: {mine[name]:g} is above {most[name]:g}, the most {self.place} gives; "
                    f"ask for less, or start it with a larger most.{name}"
                    for name in over
                )
            )

    def away(self, error: object) -> InfrastructureError:
        """Nobody, or something else, answers."""
        return InfrastructureError(
            f"no interpreter server answers at {self.place} ({error}): start one there with `thincode interpreter serve`, "
            "or mend interpreter.backend.url"
        )

    def refused(self, status: int, body: bytes) -> InfrastructureError | RecipeError:
        """What the server's refusal means to us."""
        try:
            why = str(json.loads(body)["error"])
        except (ValueError, KeyError, TypeError):
            return self.away(f"it answers HTTP {status}, but not as an interpreter server")
        if status in (401, 403):
            return RecipeError(f"{self.place} refuses us: {why}. Set THINCODE_TOKEN here to what it has there")
        if status == 400:
            return RecipeError(f"{self.place}: {why}")
        return InfrastructureError(f"{self.place}: {why}")

    async def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Ask the server; while it is overloaded or ending, again, for `patience_s`.

        Raises:
            InfrastructureError: it is away, broken, or without room for too long.
            RecipeError: the request or the token is wrong.
        """
        import aiohttp

        loop = asyncio.get_running_loop()
        until, pause = loop.time() + self.patience_s, PAUSE_S
        while True:
            try:
                async with self._http().post(f"{self.url}{path}", json=body) as answer:
                    if answer.status < 300:
                        told: dict[str, Any] = await answer.json()
                        return told
                    failure: Exception = self.refused(answer.status, await answer.read())
                    again = answer.status in (429, 503)
            except aiohttp.ClientConnectorError as error:
                failure, again = self.away(error), True
            except (aiohttp.ClientError, TimeoutError, ValueError) as error:
                raise InfrastructureError(
                    f"the connection to {self.place} broke: {error or type(error).__name__}"
                ) from error
            if not again or loop.time() + pause > until:
                raise failure
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_S)

    def _http(self) -> aiohttp.ClientSession:
        import aiohttp

        if self._client is None:
            self._client = aiohttp.ClientSession(
                headers=self.headers,
                connector=aiohttp.TCPConnector(limit=0),
                timeout=aiohttp.ClientTimeout(total=self.answer_s, sock_connect=CONNECT_S),
            )
        return self._client

    async def session(self, *, seed: int = 0) -> RemoteSession:
        """A fresh session; see the door.

        Raises:
            InfrastructureError: no session can be made.
            RecipeError: the server refuses the token or the limits.
        """
        return self.adopt(seed, await self.begin(seed))

    def adopt(self, seed: int, name: str) -> RemoteSession:
        """A session of this name there; closed with the interpreter."""
        session = RemoteSession(self, seed=seed, name=name)
        self._sessions.add(session)
        return session

    async def begin(self, seed: int) -> str:
        """A new session on the server; its name."""
        if self._closed:
            raise InfrastructureError("the interpreter is closed; open another")
        told = await self.post("/v1/sessions", {"seed": seed, "limits": dump(self.limits)})
        return str(told["session"])

    async def end(self, name: str) -> None:
        """End a session on the server; where it is away, the session ends there by itself."""
        import aiohttp

        try:
            async with self._http().delete(f"{self.url}/v1/sessions/{name}"):
                pass
        except (aiohttp.ClientError, TimeoutError):
            pass

    def forget(self, session: RemoteSession) -> None:
        """Called by a session that was closed."""
        self._sessions.discard(session)

    async def close(self) -> None:
        """End our sessions; the server stays."""
        self._closed = True
        await asyncio.gather(*(session.close() for session in list(self._sessions)))
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def __aenter__(self) -> Self:
        """The interpreter itself."""
        return self

    async def __aexit__(self, *details: object) -> None:
        """Close."""
        await self.close()


class RemoteSession:
    """One session over there."""

    def __init__(self, interpreter: RemoteInterpreter, *, seed: int, name: str) -> None:
        self._interpreter = interpreter
        self._seed = seed
        self._name: str | None = name
        self._busy = asyncio.Lock()
        self._closed = False

    async def run(self, code: str) -> BlockResult:
        """Run one block to its end or its limit; never raises for anything the code does."""
        async with self._busy:
            if self._closed:
                return lost("the session is closed")
            try:
                if self._name is None:
                    self._name = await self._interpreter.begin(self._seed)
                told = await self._interpreter.post(f"/v1/sessions/{self._name}/run", {"code": code})
                return replace(BlockResult(**told), status=Status(told["status"]))
            except (InfrastructureError, RecipeError, TypeError, ValueError, KeyError) as error:
                await self._drop()
                return lost(str(error))
            except asyncio.CancelledError:
                await asyncio.shield(self._drop())  # its answer must not come to the next block
                raise

    async def fork(self, n: int) -> list[RemoteSession]:
        """See the door.

        Raises:
            InfrastructureError: the session can't be copied there, or is gone.
        """
        if n < 1:
            raise ValueError(f"fork: n is {n}, and must be at least 1")
        async with self._busy:
            if self._closed:
                raise InfrastructureError("fork: the session is closed; open another")
            if self._name is None:
                self._name = await self._interpreter.begin(self._seed)
            told = await self._interpreter.post(f"/v1/sessions/{self._name}/fork", {"n": n})
            return [self._interpreter.adopt(self._seed, name) for name in told["sessions"]]

    async def _drop(self) -> None:
        name, self._name = self._name, None
        if name is not None:
            await self._interpreter.end(name)

    async def close(self) -> None:
        """End the session and everything it started."""
        self._closed = True
        self._interpreter.forget(self)
        await self._drop()

    async def __aenter__(self) -> Self:
        """The session itself."""
        return self

    async def __aexit__(self, *details: object) -> None:
        """Close."""
        await self.close()


def lost(why: str) -> BlockResult:
    """A block of which nothing is known."""
    return BlockResult(Status.LOST, "", why, state_kept=False)
