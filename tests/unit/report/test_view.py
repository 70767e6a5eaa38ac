"""`view`: the page over folders that grow, for this machine only, of which a request can name nothing but numbers."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from thincode.errors import RunFolderError
from thincode.report._server import Server
from thincode.trajectory.store import LOG, Store
from unit.report import folders
from unit.report.browsing import chromium, needs_chromium, tab
from unit.report.test_hostile import HOSTILE


@contextmanager
def served(*runs: Path) -> Iterator[Server]:
    with Server(runs, host="127.0.0.1", port=0) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def ask(server: Server, path: str, **headers: str) -> tuple[int, dict[str, str], str]:
    connection = HTTPConnection("127.0.0.1", server.server_address[1], timeout=60)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    found = (answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read().decode())
    connection.close()
    return found


def append(folder: Path, problem: str) -> None:
    with Store(folder) as store:
        store.append(folders.trajectory(problem, text="fresh"), folders.notes(correct=False))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folders.write_pipeline(tmp_path_factory.mktemp("view") / "run", hostile=HOSTILE)


@pytest.fixture(scope="module")
def server(run: Path) -> Iterator[Server]:
    with served(run) as found:
        yield found


def block(page: str, ident: str) -> Any:
    found = re.search(rf'id="{ident}">(.*?)</script>', page)
    assert found is not None
    return json.loads(found[1])


def test_the_page_has_every_row_but_no_segments(server: Server) -> None:
    status, headers, page = ask(server, "/")
    assert status == 200
    assert headers["content-type"] == "text/html; charset=utf-8"
    rows = block(page, "page-data")
    assert [(row["c"], row["i"]) for row in rows if row["c"] == "2-final"] == [("2-final", n) for n in range(3)]
    assert not any("s" in row for row in rows)
    assert "connect-src &#39;self&#39;" in page
    assert HOSTILE not in page


def test_a_trajectory_comes_when_it_is_asked_for(server: Server) -> None:
    ask(server, "/")
    status, headers, text = ask(server, "/trajectory?c=2-final&i=1")
    assert (status, headers["content-type"]) == (200, "application/json; charset=utf-8")
    found = json.loads(text)
    assert found["row"]["p"] == f"p1{HOSTILE}"
    assert "".join(part["x"] for part in found["row"]["s"]) == folders.trajectory("", text=HOSTILE).text
    assert "<" not in text


def test_a_search_looks_into_every_segment(server: Server) -> None:
    ask(server, "/")
    assert json.loads(ask(server, "/search?q=p2")[2]) == {"0-base": [2], "1-sft": [2], "2-final": [2]}
    assert json.loads(ask(server, "/search?q=NAMEERROR")[2]) == {
        key: [0, 1, 2] for key in ("0-base", "1-sft", "2-final")
    }
    assert json.loads(ask(server, "/search?q=nowhere+at+all")[2]) == {"0-base": [], "1-sft": [], "2-final": []}


@pytest.mark.parametrize(
    "path",
    [
        "/report.html", "/../recipe.resolved.yaml", "/%2e%2e/etc/passwd", "/evaluate/2-final/trajectories.jsonl", "//etc/passwd",
        "/trajectory", "/trajectory?c=2-final&i=99", "/trajectory?c=2-final&i=-1", "/trajectory?c=..&i=0",
        "/trajectory?c=2-final&i=%C2%B2",
    ],
)  # fmt: skip
def test_a_request_reaches_nothing_else(server: Server, path: str) -> None:
    ask(server, "/")
    status, _, text = ask(server, path)
    assert (status, text) == (404, "nothing here\n")


@pytest.mark.parametrize("name", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", ""])
def test_it_answers_to_the_names_of_this_machine_only(server: Server, name: str) -> None:
    assert ask(server, "/version", Host=name)[0] == 421
    assert ask(server, "/version", Host="localhost:1")[0] == 200


def test_every_answer_keeps_other_pages_out(server: Server) -> None:
    for path in ("/", "/version", "/nowhere"):
        headers = ask(server, path)[1]
        assert headers["content-security-policy"] == "frame-ancestors 'none'"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert "access-control-allow-origin" not in headers


def test_what_is_appended_is_on_the_next_page_and_a_torn_line_waits(tmp_path: Path) -> None:
    run = folders.write_pipeline(tmp_path / "run")
    with served(run) as server:
        first = json.loads(ask(server, "/version")[2])
        assert len(block(ask(server, "/")[2], "page-data")) == 9
        append(run / "evaluate" / "2-final", "new")
        assert json.loads(ask(server, "/version")[2]) != first
        assert len(block(ask(server, "/")[2], "page-data")) == 10
        assert json.loads(ask(server, "/trajectory?c=2-final&i=3")[2])["row"]["p"] == "new"
        log = run / "evaluate" / "2-final" / LOG
        whole = log.read_bytes()
        log.write_bytes(whole + b'{"schema": 1, "addr')
        assert len(block(ask(server, "/")[2], "page-data")) == 10
        log.write_bytes(whole[: whole.index(b"\n") + 1])  # a resumed run cuts what was not committed
        assert len(block(ask(server, "/")[2], "page-data")) == 7


def test_a_run_with_nothing_in_it_yet_is_asked_for_again(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        status, headers, text = ask(server, "/")
        assert (status, headers["refresh"]) == (503, "3")
        assert "nothing of a run in it" in text


def test_a_folder_or_a_port_that_cannot_be_had_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match="nowhere: no such run folder"):
        Server([tmp_path / "nowhere"], host="127.0.0.1", port=0)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(RunFolderError, match=r"127\.0\.0\.1:\d+ is taken; name another with --host or --port"):
            Server([tmp_path], host="127.0.0.1", port=taken.getsockname()[1])


@pytest.mark.slow
@needs_chromium
def test_in_a_browser_the_page_follows_a_run_that_grows(tmp_path: Path) -> None:
    run = folders.write_pipeline(tmp_path / "run", hostile=HOSTILE)
    with served(run) as server, chromium() as browser, tab(browser, server.url) as seen:
        seen.page.select_option("#f-beside", "1-sft")
        seen.page.wait_for_selector("#beside .question")
        assert HOSTILE[:60] in seen.page.locator("#reader .question").inner_text()
        seen.page.fill("#f-text", "p2<")
        seen.page.locator("#count", has_text="1 of 9 ").wait_for()
        append(run / "evaluate" / "2-final", "new")
        seen.page.click("#news")
        seen.page.locator("#count", has_text="1 of 10 ").wait_for()
        assert seen.page.input_value("#f-beside") == "1-sft"
        assert seen.page.title() == "small run · thincode report"
        assert seen.faults == []
