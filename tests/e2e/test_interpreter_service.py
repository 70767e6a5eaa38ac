"""The shared service over a real loopback socket: SandboxFusion's own client, our backend, and everything that may go wrong."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from serving import Server

pytest.importorskip("aiohttp", reason="needs the extra: pip install 'thincode[remote]'")

from thincode.errors import InfrastructureError, RecipeError
from thincode.interpreter import BlockResult, Limits, Status
from thincode.interpreter.backends import remote
from thincode.interpreter.service import Settings, check_token
from thincode.settings import parse

LIMITS = Limits(cpu_s=5, wall_s=20, memory_mib=256, grace_s=0.2)
TOKEN = "a-secret-of-16-or-more"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server("at_once=8") as one:
        yield one


def call(url: str, body: object = None, *, headers: Mapping[str, str] | None = None) -> tuple[int, Any]:
    """POST where there is a body, else GET; status and JSON."""
    data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json", **(headers or {})})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


def in_background(work: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(work()))
    thread.start()
    return thread, found


def until(condition: Callable[[], bool], within_s: float = 20) -> None:
    end = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


# --- SandboxFusion's own client -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fusion() -> Any:
    return pytest.importorskip("sandbox_fusion", reason="needs SandboxFusion's client: pip install sandbox-fusion")


FINISHED, LATE = "Finished", "TimeLimitExceeded"


@pytest.mark.parametrize(
    ("code", "words", "status", "run", "return_code", "stdout", "stderr"),
    [
        ("print(6 * 7)", {}, "Success", FINISHED, 0, "42\n", ""),
        ("1 + 1", {}, "Success", FINISHED, 0, "", ""),
        (
            "import sys; print('a'); print('b', file=sys.stderr); print('c')",
            {},
            "Success",
            FINISHED,
            0,
            "a\nc\n",
            "b\n",
        ),
        ("print(input() + input())", {"stdin": "ab\ncd\n"}, "Success", FINISHED, 0, "abcd\n", ""),
        ("import sys; print(len(sys.stdin.read()))", {"stdin": None}, "Success", FINISHED, 0, "0\n", ""),
        ("raise SystemExit('why')", {}, "Failed", FINISHED, 1, "", "why\n"),
        ("import sys; sys.exit(3)", {}, "Failed", FINISHED, 3, "", ""),
        ("import os; print('x', flush=True); os._exit(4)", {}, "Failed", FINISHED, 4, "x\n", ""),
        ("import os; os.kill(os.getpid(), 15)", {}, "Failed", FINISHED, -15, "", ""),
        ("print('so far', flush=True)\nwhile True: pass", {"run_timeout": 0.3}, "Failed", LATE, None, "so far\n", ""),
        ("import sys; sys.stdout.write('\\x1b[1m\\r\\x00é')", {}, "Success", FINISHED, 0, "\x1b[1m\r\x00é", ""),
        ("if __name__ == '__main__': print(__file__)", {}, "Success", FINISHED, 0, "__main__.py\n", ""),
    ],
)
def test_its_client_reads_what_a_program_did(
    server: Server,
    fusion: Any,
    code: str,
    words: dict[str, Any],
    status: str,
    run: str,
    return_code: int | None,
    stdout: str,
    stderr: str,
) -> None:
    asked = fusion.RunCodeRequest(code=code, language="python", **words)
    told = fusion.run_code(asked, endpoint=server.url, max_attempts=1)
    assert (told.status, told.compile_result, told.run_result.status) == (status, None, run)
    assert (told.run_result.return_code, told.run_result.stdout, told.run_result.stderr) == (
        return_code,
        stdout,
        stderr,
    )
    assert told.run_result.execution_time > 0


def test_a_traceback_shows_the_program_alone(server: Server, fusion: Any) -> None:
    asked = fusion.RunCodeRequest(code="def f():\n    return 1 / 0\nf()", language="python")
    stderr = fusion.run_code(asked, endpoint=server.url, max_attempts=1).run_result.stderr
    assert re.findall(r'File "(.*?)", line (\d+)', stderr) == [("__main__.py", "3"), ("__main__.py", "2")]
    assert stderr.startswith("Traceback (most recent call last):\n")
    assert stderr.endswith("ZeroDivisionError: division by zero\n")


def test_files_go_in_and_come_out_and_the_next_program_sees_none(server: Server, fusion: Any) -> None:
    blob = bytes(range(256))
    asked = fusion.RunCodeRequest(
        code="import own\nopen('out.bin', 'wb').write(own.read()[::-1])",
        language="python",
        files={
            "own.py": base64.b64encode(b"def read(): return open('deep/in.bin', 'rb').read()").decode(),
            "deep/in.bin": base64.b64encode(blob).decode(),
            "nothing": None,
        },
        fetch_files=["out.bin", "missing"],
    )
    told = fusion.run_code(asked, endpoint=server.url, max_attempts=1)
    assert {name: base64.b64decode(text) for name, text in told.files.items()} == {"out.bin": blob[::-1]}
    after = fusion.RunCodeRequest(code="import os; print(sorted(os.listdir()))", language="python")
    assert fusion.run_code(after, endpoint=server.url, max_attempts=1).run_result.stdout == "['__main__.py']\n"


def test_a_program_that_kills_its_session_failed_and_never_succeeded(server: Server, fusion: Any) -> None:
    asked = fusion.RunCodeRequest(code="import os; os.kill(os.getppid(), 9)", language="python")
    told = fusion.run_code(asked, endpoint=server.url, max_attempts=1)
    assert (told.status, told.run_result.return_code) == ("Failed", -9)


def test_two_hundred_at_once_get_right_answers_though_the_server_starts_anew(fusion: Any) -> None:
    with Server("at_once=8", "queue=300", "drain_s=0.1") as server, ThreadPoolExecutor(200) as pool:
        done: list[int] = []

        def one(number: int) -> None:
            asked = fusion.RunCodeRequest(
                code=f"import time; time.sleep(0.05); print({number} ** 3, input())",
                language="python",
                stdin=f"in {number}",
            )
            told = fusion.run_code(asked, endpoint=server.url, max_attempts=12)
            assert (told.status, told.run_result.stdout) == ("Success", f"{number**3} in {number}\n")
            done.append(number)

        futures = [pool.submit(one, number) for number in range(200)]
        until(lambda: len(done) >= 20)
        assert server.stop() == 0
        between = len(done)
        server.start()
        for future in futures:
            future.result()
    assert 20 <= between < 200
    assert sorted(done) == list(range(200))


def test_its_asynchronous_client_too(server: Server, fusion: Any) -> None:
    async def both() -> list[Any]:
        asked = [fusion.RunCodeRequest(code=f"print({n})", language="python") for n in range(8)]
        return await asyncio.gather(*(fusion.run_code_async(one, endpoint=server.url, max_attempts=1) for one in asked))

    assert [told.run_result.stdout for told in asyncio.run(both())] == [f"{n}\n" for n in range(8)]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"language": "cpp"}, "language: 'cpp' is not offered here; offered: python"),
        ({"run_timeout": 1000}, "run_timeout: 1000 is outside 0 to 300 s"),
        ({"memory_limit_MB": 10**6}, "memory_limit_MB: 1000000 is above 4096"),
        ({"code": 5}, "code: "),
        ({"files": ["x"]}, "files: "),
    ],
)
def test_a_wrong_request_is_refused_and_says_why(server: Server, change: dict[str, Any], why: str) -> None:
    status, told = call(f"{server.url}/run_code", {"code": "1", "language": "python", **change})
    assert (status, told["status"]) == (400, "SandboxError")
    assert why in told["message"]


def test_fields_of_other_versions_are_no_mistake(server: Server) -> None:
    status, told = call(f"{server.url}/run_code", {"code": "print(1)", "language": "python", "args": [], "new": 1})
    assert (status, told["run_result"]["stdout"]) == (200, "1\n")


# --- who gets in ----------------------------------------------------------------------------------------------------


def test_the_token_stands_in_a_header_or_in_the_path() -> None:
    asked = {"code": "print(1)", "language": "python"}
    with Server(token=TOKEN) as server:
        ways = {
            "none": (f"{server.url}/run_code", {}),
            "wrong": (f"{server.url}/run_code", {"Authorization": "Bearer nonsense-nonsense"}),
            "wrong path": (f"{server.url}/{TOKEN}x/run_code", {}),
            "header": (f"{server.url}/run_code", {"Authorization": f"Bearer {TOKEN}"}),
            "path": (f"{server.url}/{TOKEN}/run_code", {}),
        }
        found = {name: call(url, asked, headers=headers) for name, (url, headers) in ways.items()}
    assert {name: status for name, (status, _) in found.items()} == {
        "none": 401, "wrong": 401, "wrong path": 401, "header": 200, "path": 200,
    }  # fmt: skip
    assert "THINCODE_TOKEN" in found["wrong"][1]["error"]


def test_a_page_in_the_browser_of_this_machine_does_not_get_in(server: Server) -> None:
    asked = {"code": "print(1)", "language": "python"}
    url = f"{server.url}/run_code"
    assert call(url, asked, headers={"Origin": "http://evil.example"})[0] == 403
    assert call(url, asked, headers={"Host": "evil.example"})[0] == 403
    assert call(url, asked, headers={"Content-Type": "text/plain"})[0] == 415


@pytest.mark.parametrize(
    ("host", "token", "why"),
    [
        ("0.0.0.0", None, "needed"),
        ("interpreter.example", None, "needed"),
        ("127.0.0.1", "short", "16 or more"),
        ("127.0.0.1", "with/slash/and/more", "16 or more"),
    ],
)
def test_no_start_without_a_token_that_protects(host: str, token: str | None, why: str) -> None:
    with pytest.raises(RecipeError, match=why):
        check_token(Settings(host=host), token)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_loopback_needs_no_token(host: str) -> None:
    check_token(Settings(host=host), None)


def test_a_service_of_a_service_is_a_mistake() -> None:
    with pytest.raises(RecipeError, match="backend: a service of a service"):
        parse(Settings, {"backend": {"kind": "remote"}})


# --- load, and the end ----------------------------------------------------------------------------------------------


def test_overload_is_said_at_once_and_the_next_step_named() -> None:
    asked = {"code": "import time; time.sleep(60)", "language": "python", "run_timeout": 1}
    with Server("at_once=1", "queue=1") as server:
        first, _ = in_background(lambda: call(f"{server.url}/run_code", asked))
        second, _ = in_background(lambda: call(f"{server.url}/run_code", asked))
        until(lambda: (now := call(f"{server.url}/v1/health")[1])["running"] == 1 == now["waiting"])
        status, told = call(f"{server.url}/run_code", asked)
        for thread in (first, second):
            thread.join()
    assert status == 429
    assert "larger `queue`" in told["error"]


def test_what_runs_may_end_and_nothing_new_begins() -> None:
    asked = {"code": "import time; time.sleep(0.5); print('done')", "language": "python"}
    with Server() as server:
        thread, found = in_background(lambda: call(f"{server.url}/run_code", asked))
        until(lambda: call(f"{server.url}/v1/health")[1]["running"] == 1)
        assert server.stop() == 0
        thread.join()
        with pytest.raises(OSError):
            call(f"{server.url}/v1/health")
    assert found[0][1]["run_result"]["stdout"] == "done\n"


def test_a_client_that_hangs_up_frees_its_turn() -> None:
    asked = json.dumps({"code": "import time; time.sleep(60)", "language": "python", "run_timeout": 60}).encode()
    with Server("at_once=1") as server:
        request = urllib.request.Request(f"{server.url}/run_code", asked, {"Content-Type": "application/json"})
        with pytest.raises(TimeoutError):
            urllib.request.urlopen(request, timeout=0.5)
        until(lambda: call(f"{server.url}/v1/health")[1]["running"] == 0)


def test_idle_sessions_end_and_there_are_only_so_many() -> None:
    with Server("sessions=1", "idle_s=0.2") as server:
        assert call(f"{server.url}/v1/sessions", {})[0] == 201
        status, told = call(f"{server.url}/v1/sessions", {})
        assert (status, told["error"].startswith("overloaded: 1 of 1 sessions live here")) == (429, True)
        until(lambda: call(f"{server.url}/v1/health")[1]["sessions"] == 0)
        status, told = call(f"{server.url}/v1/sessions", {})
        assert status == 201
        until(lambda: call(f"{server.url}/v1/health")[1]["sessions"] == 0)
        status, told = call(f"{server.url}/v1/sessions/{told['session']}/run", {"code": "1"})
    assert (status, told["error"].startswith("no such session")) == (404, True)


def test_a_port_that_is_taken_is_named(server: Server) -> None:
    port = server.url.rpartition(":")[2]
    ran = subprocess.run(
        [sys.executable, "-m", "thincode", "interpreter", "serve", f"port={port}"],
        env={"PYTHONPATH": "src"}, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert ran.returncode == 3
    assert f"127.0.0.1:{port} can't be listened on" in ran.stderr


# --- our backend ----------------------------------------------------------------------------------------------------


def use(server: Server, work: Callable[[remote.RemoteInterpreter], Any], *, patience_s: float = 20) -> Any:
    """Open the backend, run `work` on a loop, close."""

    async def all_of_it() -> Any:
        async with remote.open(remote.Settings(url=server.url, patience_s=patience_s), limits=LIMITS) as interpreter:
            return await work(interpreter)

    return asyncio.run(all_of_it())


def test_a_restart_loses_names_says_so_and_new_sessions_wait_for_it() -> None:
    with Server() as server:

        async def work(interpreter: remote.RemoteInterpreter) -> list[BlockResult]:
            async with await interpreter.session(seed=1) as session:
                first = await session.run("x = 5; x")
                await asyncio.to_thread(server.stop, signal.SIGKILL)
                starting = asyncio.create_task(asyncio.to_thread(server.start))
                async with await interpreter.session() as waited:
                    fresh = await waited.run("6 * 7")
                await starting
                return [first, fresh, await session.run("x"), await session.run("x")]

        first, fresh, lost, after = use(server, work)
    assert (first.output, fresh.output) == ("5\n", "42\n")
    assert (lost.status, lost.state_kept) == (Status.LOST, False)
    assert (after.status, after.detail) == (Status.ERROR, "NameError")


def test_no_server_is_said_before_any_work_and_when_it_goes() -> None:
    with Server() as server:

        async def work(interpreter: remote.RemoteInterpreter) -> BlockResult:
            async with await interpreter.session() as session:
                await asyncio.to_thread(server.stop)
                with pytest.raises(InfrastructureError, match="thincode interpreter serve"):
                    await interpreter.session()
                return await session.run("1")

        lost = use(server, work, patience_s=0.2)
        with pytest.raises(InfrastructureError, match="no interpreter server answers at http://127"):
            remote.open(remote.Settings(url=server.url), limits=LIMITS)
    assert (lost.status, lost.state_kept) == (Status.LOST, False)
    assert "thincode interpreter serve" in lost.detail


def test_the_token_comes_from_the_environment_and_a_wrong_one_is_the_users_to_mend(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def work(interpreter: remote.RemoteInterpreter) -> str:
        async with await interpreter.session() as session:
            return (await session.run("6 * 7")).output

    with Server(token=TOKEN) as server:
        monkeypatch.delenv("THINCODE_TOKEN", raising=False)
        with pytest.raises(RecipeError, match="Set THINCODE_TOKEN here"):
            remote.open(remote.Settings(url=server.url), limits=LIMITS)
        monkeypatch.setenv("THINCODE_TOKEN", TOKEN)
        assert use(server, work) == "42\n"


def test_limits_beyond_the_servers_are_named_before_any_work(server: Server) -> None:
    with pytest.raises(RecipeError, match=r"interpreter\.limits\.memory_mib: 9999 is above 4096"):
        remote.open(remote.Settings(url=server.url), limits=Limits(memory_mib=9999))


def test_a_canceled_block_never_answers_for_the_next_one(server: Server) -> None:
    async def work(interpreter: remote.RemoteInterpreter) -> BlockResult:
        async with await interpreter.session() as session:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(session.run("import time; time.sleep(0.5); 'late'"), 0.2)
            return await session.run("'next'")

    assert use(server, work).output == "'next'\n"


def test_overload_is_waited_for_and_then_lost() -> None:
    with Server("at_once=1", "queue=0") as server:

        async def work(interpreter: remote.RemoteInterpreter) -> list[BlockResult]:
            sessions = [await interpreter.session() for _ in range(2)]
            hog = asyncio.create_task(sessions[0].run("import time; time.sleep(2)"))
            await asyncio.sleep(0.3)
            lost = await sessions[1].run("1")
            await hog
            return [lost, await sessions[1].run("1")]

        lost, after = use(server, work, patience_s=0.5)
    assert (lost.status, after.output) == (Status.LOST, "1\n")
    assert "overloaded" in lost.detail


def test_something_else_at_that_address_is_not_taken_for_a_server() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), SimpleHTTPRequestHandler) as other:
        thread = threading.Thread(target=other.serve_forever)
        thread.start()
        try:
            with pytest.raises(InfrastructureError, match="not as an interpreter server"):
                remote.open(remote.Settings(url=f"http://127.0.0.1:{other.server_port}"), limits=LIMITS)
        finally:
            other.shutdown()
            thread.join()
