"""The page over live run folders: a small server on this machine.

It answers four questions, each by reading: the page, whether anything is new, one trajectory, a search. It takes no path from
a request, so it can show nothing but the folders it was started with. Listening on this machine only, it answers only to this
machine's names, so that a page of another origin can't reach it through a name of its own. What it does not have: a login.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import parse_qs, urlsplit

from ..errors import RunFolderError, ThincodeError
from ._library import Library
from ._math import Formulas
from ._page import inert_json, render

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",  # the page brings the rest
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Server(ThreadingHTTPServer):
    """Serves run folders until `shutdown`."""

    daemon_threads = True

    def __init__(self, folders: Sequence[Path], *, host: str, port: int) -> None:
        """Listen.

        Args:
            folders: run folders.
            host: address to listen on.
            port: 0 takes any that is free.

        Raises:
            RunFolderError: a folder is not there, or the address can't be listened on.
        """
        missing = next((folder for folder in folders if not folder.is_dir()), None)
        if missing is not None:
            raise RunFolderError(f"{missing}: no such run folder; give the folder that --out named")
        self.runs = Library(folders)
        self.lock = Lock()
        self.local = host in LOOPBACK
        self._page: tuple[str, bytes] = ("", b"")
        try:
            super().__init__((host, port), _Handler)
        except OSError as error:
            why = "is taken" if error.errno == errno.EADDRINUSE else f"can't be listened on ({error.strerror})"
            raise RunFolderError(f"{host}:{port} {why}; name another with --host or --port") from None

    @property
    def url(self) -> str:
        """Where the page is."""
        host, port = self.server_address[:2]
        return f"http://{host!s}:{port}/"

    def page(self) -> bytes:
        """The page as the folders are now."""
        with self.lock:
            version = self.runs.version()
            if self._page[0] != version:
                run, shelves = self.runs.refresh()
                text = render(run, shelves, Formulas(), live=version)
                self._page = (version, text.encode("utf-8", "replace"))
            return self._page[1]

    def answer(self, path: str, asked: Mapping[str, str]) -> Any:
        """What the page's script asks for; None where it asks for nothing there is."""
        if path == "/version":
            return {"version": self.runs.version()}
        with self.lock:
            if path == "/search":
                return self.runs.search(asked.get("q", ""))
            number = asked.get("i", "")
            if path == "/trajectory" and number.isascii() and number.isdigit():
                try:
                    return self.runs.trajectory(asked.get("c", ""), int(number))
                except LookupError:
                    return None
        return None


class _Handler(BaseHTTPRequestHandler):
    server: Server
    timeout = 30

    def do_GET(self) -> None:
        asked = urlsplit(self.path)
        if self.server.local and self._name() not in LOOPBACK:
            return self._send(HTTPStatus.MISDIRECTED_REQUEST, "text/plain", b"this page is for this machine only\n")
        try:
            if asked.path == "/":
                return self._send(HTTPStatus.OK, "text/html", self.server.page())
            found = self.server.answer(asked.path, {key: values[0] for key, values in parse_qs(asked.query).items()})
        except ThincodeError as error:  # half written, or nothing there yet: the browser asks again
            return self._send(
                HTTPStatus.SERVICE_UNAVAILABLE, "text/plain", f"{error}\n".encode("utf-8", "replace"), Refresh="3"
            )
        if found is None:
            return self._send(HTTPStatus.NOT_FOUND, "text/plain", b"nothing here\n")
        return self._send(HTTPStatus.OK, "application/json", inert_json(found).encode())

    def _name(self) -> str:
        """The host the browser believes to talk to."""
        return urlsplit(f"//{self.headers.get('Host', '')}").hostname or ""

    def _send(self, status: HTTPStatus, kind: str, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {**HEADERS, **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: a terminal full of requests helps nobody."""


def serve(folders: Sequence[Path], *, host: str, port: int, say: Callable[[str], None]) -> None:
    """See `thincode.report.view`."""
    with Server(folders, host=host, port=port) as server:
        say(server.url)
        if not server.local:
            say(f"anyone who reaches port {server.server_address[1]} can read these runs")
        server.serve_forever(poll_interval=0.2)
