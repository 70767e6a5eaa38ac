"""An interpreter that several machines share, over HTTP: our sessions, and SandboxFusion's `POST /run_code`.

    POST   /v1/sessions            {"seed": 1, "limits": {…}}   → 201 {"session": NAME}
    POST   /v1/sessions/NAME/run   {"code": "…"}                → 200, a BlockResult
    POST   /v1/sessions/NAME/fork  {"n": 2}                     → 201 {"sessions": [NAME, NAME]}
    DELETE /v1/sessions/NAME                                    → 204
    GET    /v1/health                                           → 200, what it does now, and the most it gives
    POST   /run_code               SandboxFusion's request      → 200, SandboxFusion's response

Every path may be led by `/TOKEN`, for clients that send no header; others send `Authorization: Bearer TOKEN`. A refusal is
`{"error": "…"}`: 400 a mistake in the request, 401 the token, 404 no such session, 429 overloaded, 503 ending or broken.

What it does not protect: the wire is not encrypted (put a TLS proxy or a private network before it), and whoever has the
token may run any code that the isolation allows.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import ipaddress
import re
import signal
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import asdict, fields
from typing import Annotated, Any

from aiohttp import web

from ..errors import InfrastructureError, RecipeError
from ..settings import (
    In,
    Kind,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    dump,
    kind,
    parse,
    settings,
)
from . import Limits, _fusion, open_interpreter
from ._lodging import Gate, Guest, Guests, OverloadedError, Warm

BODY_BYTES = 64 << 20
"""Largest request."""
TOKEN = re.compile(r"[A-Za-z0-9._~-]{16,}")
"""What a token looks like: it may stand in a URL."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def _python() -> Kind:
    return kind("thincode.interpreter.backends", "python")


@settings
class Settings:
    """How a service is run."""

    host: str = "127.0.0.1"
    """Address to listen on; anything but loopback needs a token."""
    port: NonNegativeInt = 8080
    """0 takes a free one."""
    backend: Annotated[Kind, In("thincode.interpreter.backends")] = _python()
    """What runs the blocks."""
    most: Limits = Limits(
        cpu_s=120, wall_s=300, memory_mib=4096, output_chars=1 << 20, processes=64, disk_mib=256, files=1024, grace_s=5
    )
    """The most a client may ask for."""
    at_once: PositiveInt = 16
    """Blocks that run at the same time."""
    queue: NonNegativeInt = 2048
    """Requests that wait for their turn; more are refused with 429."""
    sessions: PositiveInt = 2048
    """Live sessions."""
    kinds: PositiveInt = 4
    """Different limits in use at the same time; each keeps a warm process."""
    idle_s: PositiveFloat = 900.0
    """A session that nobody used for so long is ended."""
    drain_s: NonNegativeFloat = 30.0
    """After SIGTERM, seconds that running blocks have to end."""

    def check(self) -> Iterator[tuple[str, str]]:
        """What one field's type can't say."""
        if self.backend.name == "remote":
            yield "backend", "a service of a service is not offered; point the clients at the first one"


class Service:
    """The handlers and what they share; made and used on one event loop."""

    def __init__(self, words: Settings, *, token: str | None) -> None:
        self.words = words
        self.token = token
        self.gate = Gate(at_once=words.at_once, queue=words.queue)
        self.warm = Warm(lambda limits: open_interpreter(words.backend, limits=limits), kinds=words.kinds)
        self.guests = Guests(self.warm, most=words.sessions, idle_s=words.idle_s)
        self.draining = False
        self.under_way = 0

    def app(self) -> web.Application:
        """The routes."""
        app = web.Application(middlewares=[self._door], client_max_size=BODY_BYTES)
        for led_by in ("", "/{token}"):
            app.router.add_get(f"{led_by}/v1/health", self.health)
            app.router.add_post(f"{led_by}/v1/sessions", self.admit)
            app.router.add_post(f"{led_by}/v1/sessions/{{name}}/run", self.run)
            app.router.add_post(f"{led_by}/v1/sessions/{{name}}/fork", self.fork)
            app.router.add_delete(f"{led_by}/v1/sessions/{{name}}", self.leave)
            app.router.add_post(f"{led_by}/run_code", self.run_code)
        return app

    # --- the door --------------------------------------------------------------------------------------------------

    @web.middleware
    async def _door(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Who may come in, and every failure as JSON."""
        self.under_way += 1
        try:
            self._authorize(request)
            if self.draining and request.method == "POST":
                return refusal(503, "this server is ending; ask again when it has started anew")
            return await handler(request)
        except OverloadedError as error:
            return refusal(429, str(error), headers={"Retry-After": "1"})
        except InfrastructureError as error:
            return refusal(503, str(error))
        except RecipeError as error:
            return refusal(400, str(error))
        except web.HTTPException as error:
            return refusal(error.status, error.text or error.reason)
        finally:
            self.under_way -= 1

    def _authorize(self, request: web.Request) -> None:
        """Compare the token; without one, keep web pages of this machine's browser out."""
        if self.token is None:
            if "Origin" in request.headers or not loopback(request.url.host or ""):
                raise web.HTTPForbidden(text="without a token this server answers programs on its own machine only")
            return
        given = request.match_info.get("token") or request.headers.get("Authorization", "").removeprefix("Bearer ")
        if not hmac.compare_digest(given.encode("utf-8", "replace"), self.token.encode()):
            raise web.HTTPUnauthorized(
                text="wrong or missing token: send `Authorization: Bearer TOKEN`, or put /TOKEN before the path; "
                "it is the server's THINCODE_TOKEN"
            )

    @staticmethod
    async def _body(request: web.Request) -> Mapping[str, Any]:
        if request.content_type != "application/json":
            raise web.HTTPUnsupportedMediaType(text="the body must be application/json")
        try:
            body = await request.json()
        except ValueError as error:
            raise RecipeError(f"the body is no JSON: {error}") from None
        if not isinstance(body, dict):
            raise RecipeError(f"the body must be an object, found {type(body).__name__}")
        return body

    # --- what it offers --------------------------------------------------------------------------------------------

    async def health(self, request: web.Request) -> web.Response:
        """What goes on."""
        return web.json_response(
            {
                "service": "thincode interpreter",
                "running": self.gate.running,
                "waiting": self.gate.waiting,
                "sessions": len(self.guests),
                "draining": self.draining,
                "most": dump(self.words.most),
            }
        )

    async def admit(self, request: web.Request) -> web.Response:
        """A new session."""
        body = await self._body(request)
        limits = parse(Limits, body.get("limits", {}), place="limits")
        at_most(limits, self.words.most)
        seed = body.get("seed", 0)
        if not isinstance(seed, int):
            raise RecipeError(f"seed: expected an integer, found {seed!r}")
        async with self.gate.turn():
            name = await self.guests.admit(seed, limits)
        return web.json_response({"session": name}, status=201)

    async def run(self, request: web.Request) -> web.Response:
        """One block."""
        code = (await self._body(request)).get("code")
        if not isinstance(code, str):
            raise RecipeError(f"code: expected text, found {code!r}")
        with self._visit(request) as guest:
            async with self.gate.turn():
                result = await guest.session.run(code)
        return web.json_response(asdict(result))

    async def fork(self, request: web.Request) -> web.Response:
        """Branches of a session."""
        count = (await self._body(request)).get("n")
        if not isinstance(count, int) or not 1 <= count <= self.words.sessions:
            raise RecipeError(f"n: expected 1 to {self.words.sessions}, found {count!r}")
        with self._visit(request) as guest:
            async with self.gate.turn():
                names = await self.guests.branch(guest, count)
        return web.json_response({"sessions": names}, status=201)

    def _visit(self, request: web.Request) -> contextlib.AbstractContextManager[Guest]:
        name = request.match_info["name"]
        if name not in self.guests:
            raise web.HTTPNotFound(
                text="no such session: it was idle for too long, was closed, or the server has started anew"
            )
        return self.guests.visit(name)

    async def leave(self, request: web.Request) -> web.Response:
        """End a session."""
        await self.guests.leave(request.match_info["name"])
        return web.Response(status=204)

    async def run_code(self, request: web.Request) -> web.Response:
        """SandboxFusion's."""
        try:
            asked = _fusion.read(await self._body(request), self.words.most)
        except RecipeError as error:
            return web.json_response(_fusion.response("SandboxError", str(error)), status=400)
        async with self.gate.turn(), self.warm.use(_fusion.limits(asked, self.words.most)) as interpreter:
            return web.json_response(await _fusion.answer(asked, interpreter))

    # --- its end ---------------------------------------------------------------------------------------------------

    async def drain(self, *, hurry: asyncio.Event) -> None:
        """Take nothing new and wait for what runs, until `drain_s` are over or `hurry` is set."""
        self.draining = True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.words.drain_s):
                while self.under_way and not hurry.is_set():
                    await asyncio.sleep(0.02)

    async def sweep(self) -> None:
        """End idle sessions, for ever."""
        while True:
            await asyncio.sleep(min(self.words.idle_s / 4, 30.0))
            await self.guests.expire()

    async def close(self) -> None:
        """End every session and interpreter."""
        await self.guests.close()
        await self.warm.close()


def refusal(status: int, why: str, *, headers: Mapping[str, str] | None = None) -> web.Response:
    """An error as every client of ours reads it."""
    return web.json_response({"error": why}, status=status, headers=headers)


def at_most(limits: Limits, most: Limits) -> None:
    """Nothing above what the server gives.

    Raises:
        RecipeError: names each limit that is.
    """
    over = [
        f"limits.{one.name}: {getattr(limits, one.name):g} is above {getattr(most, one.name):g}, the most this server "
        f"gives; ask for less, or start it with a larger most.{one.name}"
        for one in fields(Limits)
        if getattr(limits, one.name) > getattr(most, one.name) and one.name != "deterministic"
    ]
    if over:
        raise RecipeError("\n".join(over))


def loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    return host == "localhost"


def check_token(words: Settings, token: str | None) -> None:
    """Whether this service may start with this token, or without one.

    Raises:
        RecipeError: it is needed and missing, or can't stand in a URL.
    """
    hint = "for example THINCODE_TOKEN=$(python -c 'import secrets; print(secrets.token_urlsafe(24))')"
    if token is None and not loopback(words.host):
        raise RecipeError(
            f"host: {words.host} can be reached by others, so a token is needed: set THINCODE_TOKEN, {hint}, here and for "
            "the clients; or leave host at 127.0.0.1"
        )
    if token is not None and not TOKEN.fullmatch(token):
        raise RecipeError(
            f"THINCODE_TOKEN must be 16 or more letters, digits or . _ ~ - (it may stand in a URL): {hint}"
        )


async def serve(words: Settings, *, token: str | None, ready: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT, then let running blocks end; a second signal does not wait for them.

    Args:
        words: how.
        token: the secret that clients must send; None on loopback only.
        ready: called with the URL once requests are taken.

    Raises:
        RecipeError: no token where one is needed.
        InfrastructureError: the address can't be listened on.
    """
    check_token(words, token)
    service = Service(words, token=token)
    loop = asyncio.get_running_loop()
    stop, hurry = asyncio.Event(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, lambda: hurry.set() if stop.is_set() else stop.set())
    runner = web.AppRunner(service.app(), access_log=None, handler_cancellation=True, shutdown_timeout=1.0)
    await runner.setup()
    sweeper = asyncio.create_task(service.sweep())
    try:
        site = web.TCPSite(runner, words.host, words.port, backlog=words.queue + words.at_once)
        try:
            await site.start()
        except OSError as error:
            raise InfrastructureError(
                f"{words.host}:{words.port} can't be listened on: {error.strerror}; name another with port=NUMBER"
            ) from error
        ready(f"http://{words.host}:{runner.addresses[0][1]}")
        await stop.wait()
        await site.stop()
        await service.drain(hurry=hurry)
    finally:
        sweeper.cancel()
        await runner.cleanup()
        await service.close()
