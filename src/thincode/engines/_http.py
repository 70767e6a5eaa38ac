"""A client of OpenAI-compatible servers: limits, retries with back-off, server-sent events. Lives on one event loop.

A failure is one of four: the user's to mend (no server, wrong key, unknown model: `RecipeError`), a context that the server
finds too long (`TooLong`), one that goes away (tried again), or one that stays (`GenerationLostError` if the server answers
others meanwhile, else `InfrastructureError`).
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import GenerationLostError, InfrastructureError, RecipeError
from ..settings import PositiveFloat, PositiveInt, settings

if TYPE_CHECKING:
    import aiohttp

T = TypeVar("T")

_TRIES_AT_START = 4
_FIRST_DELAY_S, _LONGEST_DELAY_S = 0.25, 30.0
_PASSING = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 507, 520, 521, 522, 523, 524, 529})
"""Statuses that may be gone the next time."""
_TOO_LONG = re.compile(
    r"context.{0,20}(length|size|window|limit)|exceed.{0,20}context|too many tokens|prompt is too long", re.I
)


@settings
class Limits:
    """How much is asked of a server at once, and how long it is waited for."""

    concurrency: PositiveInt = 64
    """Requests in flight; also the episodes that are open at once."""
    requests_per_minute: PositiveFloat | None = None
    connect_s: PositiveFloat = 10.0
    silence_s: PositiveFloat = 120.0
    """Longest wait for the next byte of an answer."""
    request_s: PositiveFloat = 600.0
    """Longest time for one whole answer."""
    tries: PositiveInt = 8
    patience_s: PositiveFloat = 900.0
    """Longest time for one answer with all its retries and the pauses between them."""


class Fault(Exception):  # noqa: N818 - see TooLong
    """An answer that is worth another try."""

    def __init__(self, words: str, *, after_s: float = 0.0) -> None:
        """`after_s`: what the server asks to wait."""
        super().__init__(words)
        self.after_s = after_s


class TooLong(Exception):  # noqa: N818 - what happened, not the last word about it
    """The server says that the context is longer than it can hold."""


class Refused(Exception):  # noqa: N818 - see TooLong
    """A status that the same request would get again."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


def read_key(file: Path | None, variable: str | None, *, place: str) -> str | None:
    """The key from a file or an environment variable; None if neither is named.

    Raises:
        RecipeError: the file or variable named holds none.
    """
    import os

    if file is not None:
        try:
            key = file.expanduser().read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise RecipeError(f"{place}.key_file: {file}: can't be read ({error}); put the key alone into it") from None
        if not key:
            raise RecipeError(f"{place}.key_file: {file}: is empty; put the key alone into it")
        return key
    if variable is not None:
        key = os.environ.get(variable, "").strip()
        if not key:
            raise RecipeError(f"{place}.key_variable: {variable} is not set; export it, or name a key_file")
        return key
    return None


class Client:
    """One server."""

    def __init__(self, base_url: str, *, key: str | None, limits: Limits, place: str) -> None:
        """Connect to nothing yet.

        Args:
            base_url: up to and including `/v1`.
            key: sent as bearer token; never shown in a message.
            limits: see `Limits`.
            place: how messages name this engine.

        Raises:
            RecipeError: the address is none, or holds a password.
        """
        if not re.match(r"https?://[^/\s]+", base_url):
            raise RecipeError(
                f"{place}.base_url: {base_url!r} is no address; write for example http://127.0.0.1:8000/v1"
            )
        if "@" in base_url.split("/")[2]:
            raise RecipeError(
                f"{place}.base_url: holds a password, which run folders would keep; name a key_file instead"
            )
        self.place = place
        self.limits = limits
        self.base_url = base_url.rstrip("/")
        self._key = key
        self._session: aiohttp.ClientSession | None = None
        self._seats = asyncio.Semaphore(limits.concurrency)
        self._next_start = 0.0
        """When the next request may begin, by the rate limit and by what the server asked for."""
        self._answered_at = -1.0
        """When the server last gave an answer, after the start."""

    async def insist(
        self, attempt: Callable[[], Awaitable[T]], *, again: Callable[[], None] = lambda: None, starting: bool = False
    ) -> T:
        """What `attempt` gives, tried until it succeeds or patience ends; `again` is called before each further try.

        At the start a person waits: a few tries tell whether a server is there, and what is wrong is theirs to mend.

        Raises:
            TooLong, RecipeError: see the module.
            GenerationLostError: this request fails while the server answers others.
            InfrastructureError: the server fails.
        """
        import aiohttp

        async with self._seats:
            began = time.monotonic()
            end = began + self.limits.patience_s
            tries = min(self.limits.tries, _TRIES_AT_START) if starting else self.limits.tries
            for number in range(1, tries + 1):
                try:
                    await self._wait_for_start(end)
                    async with asyncio.timeout(min(self.limits.request_s, end - time.monotonic())):
                        found = await attempt()
                except Refused as refused:
                    raise self._refusal(refused) from None
                except (Fault, aiohttp.ClientError, TimeoutError, OSError) as failure:
                    delay = self._pause(failure, number)
                    if number == tries or time.monotonic() + delay >= end:
                        raise self._giving_up(failure, number, began, delay, starting=starting) from None
                    again()
                    await asyncio.sleep(delay)
                else:
                    self._answered_at = -1.0 if starting else time.monotonic()
                    return found
        raise AssertionError("unreachable: the last try returns or raises")

    async def get(self, path: str) -> Any:
        """The JSON behind `base_url/path`; to be called inside `insist`."""
        async with self._open("GET", path, None) as response:
            return _json(await response.read())

    async def post(self, path: str, body: Mapping[str, Any]) -> AsyncGenerator[Any, None]:
        """The JSON answer, or each event of a streamed one; to be called inside `insist`. Closing the iterator hangs up."""
        async with self._open("POST", path, body) as response:
            if "text/event-stream" not in response.headers.get("Content-Type", ""):
                yield _json(await response.read())
                return
            async for data in _events(response.content.iter_any()):
                if data == "[DONE]":
                    return
                yield _json(data)

    async def order(self, path: str, body: Mapping[str, Any]) -> None:
        """Have the server do something, whatever it says to that; to be called inside `insist`."""
        async with self._open("POST", path, body) as response:
            await response.read()

    async def close(self) -> None:
        """Hang up everywhere."""
        if self._session is not None:
            await self._session.close()

    # --- one request ---

    @asynccontextmanager
    async def _open(
        self, method: str, path: str, body: Mapping[str, Any] | None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        session = self._session or self._connect()
        async with session.request(method, f"{self.base_url}/{path}", json=body) as response:
            if response.status != 200:
                words = self._scrub(_message_of(await response.read())) or response.reason or "no reason given"
                self._judge(response.status, words, _retry_after(response.headers.get("Retry-After")))
            yield response

    def _connect(self) -> aiohttp.ClientSession:
        import aiohttp

        limits = self.limits
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=limits.connect_s, sock_read=limits.silence_s),
            headers={"Authorization": f"Bearer {self._key}"} if self._key else None,
        )
        return self._session

    def _judge(self, status: int, words: str, after_s: float) -> None:
        if status in (400, 413, 422) and _TOO_LONG.search(words):
            raise TooLong(words)
        if status in _PASSING:
            # Everybody waits, or the server would have to refuse each of them.
            self._next_start = max(self._next_start, time.monotonic() + after_s)
            raise Fault(f"{status} {words}", after_s=after_s)
        raise Refused(status, words)

    async def _wait_for_start(self, end: float) -> None:
        now = time.monotonic()
        start = max(now, self._next_start)
        if start >= end:
            raise Fault("it asks to wait", after_s=start - now)
        if self.limits.requests_per_minute is not None:
            self._next_start = start + 60.0 / self.limits.requests_per_minute
        if start > now:
            await asyncio.sleep(start - now)

    # --- what failed ---

    def _pause(self, failure: Exception, number: int) -> float:
        asked = failure.after_s if isinstance(failure, Fault) else 0.0
        return max(asked, min(_LONGEST_DELAY_S, _FIRST_DELAY_S * 2.0 ** (number - 1)))

    def _refusal(self, refused: Refused) -> Exception:
        where = f"{self.place}: {self.base_url} answers {refused.status}: {refused}"
        if refused.status in (401, 403):
            return RecipeError(f"{where}; the key is wrong or missing: set key_file or key_variable of {self.place}")
        if self._answered_at >= 0:
            return GenerationLostError(where)
        if refused.status == 404:
            return RecipeError(f"{where}; check {self.place}.model, and that base_url ends where the API begins (…/v1)")
        return RecipeError(f"{where}; fields that it does not know can be left out: {self.place}.omit: [NAME, …]")

    def _giving_up(self, failure: Exception, number: int, began: float, delay: float, *, starting: bool) -> Exception:
        last = self._scrub(str(failure)) or f"no answer in time ({type(failure).__name__})"
        last += f" (asks to wait {delay:.0f} s)" if delay > _LONGEST_DELAY_S else ""
        if starting:
            return RecipeError(
                f"{self.place}.base_url: {self.base_url} gives no usable answer: {last}; start a server there, or name another"
            )
        told = f"{self.place}: {self.base_url} failed {number} times in {time.monotonic() - began:.0f} s; last: {last}"
        if self._answered_at >= began:
            return GenerationLostError(told)
        return InfrastructureError(
            f"{told}. When the server is well again, go on with --resume; {self.place}.limits says how long it is waited for"
        )

    def _scrub(self, words: str) -> str:
        return words.replace(self._key, "***") if self._key else words


def _json(data: bytes | str) -> Any:
    try:
        found = json.loads(data)
    except ValueError:
        text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
        raise Fault(f"the answer is no JSON: {text[:80]!r}") from None
    if not isinstance(found, dict):
        raise Fault(f"the answer is no JSON object: {str(found)[:80]!r}")
    if found.get("error"):
        raise Fault(f"the answer holds an error: {_message_of(json.dumps(found).encode())}")
    return found


async def _events(chunks: AsyncIterator[bytes]) -> AsyncIterator[str]:
    """The data of each server-sent event."""
    rest = b""
    async for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                yield line[5:].strip().decode("utf-8", "replace")
    if rest.startswith(b"data:"):
        yield rest[5:].strip().decode("utf-8", "replace")


def _message_of(body: bytes) -> str:
    """What an error's body says, in whichever of the usual shapes."""
    text = body.decode("utf-8", "replace")
    try:
        found = json.loads(text)
    except ValueError:
        return " ".join(text.split())[:300]
    while isinstance(found, dict):
        found = next((found[key] for key in ("error", "message", "detail") if found.get(key)), str(found))
    return " ".join(str(found).split())[:300]


def _retry_after(header: str | None) -> float:
    """Seconds from now, given as seconds or as a date; 0 if neither."""
    if header is None:
        return 0.0
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
    except ValueError:
        return 0.0
