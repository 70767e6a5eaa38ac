"""PARI/GP keeps every promise of a session, in its own words, and gets no further than Python does."""

from __future__ import annotations

import asyncio
import ctypes.util
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from thincode.errors import InfrastructureError, MissingExtraError, RecipeError
from thincode.interpreter import BlockResult, Limits, Status, doctor, open_interpreter
from thincode.interpreter._gp import inputs
from thincode.interpreter.backends import gp, python
from thincode.settings import kind

LIMITS = Limits(cpu_s=0.5, wall_s=20, memory_mib=256, output_chars=300, grace_s=0.3, deterministic=True)
pytestmark = pytest.mark.skipif(not gp.find(), reason="needs PARI's library: pip install 'thincode[gp]'")


class Bench:
    """One interpreter on a loop of its own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.interpreter = gp.open(gp.Settings(pool=1), limits=LIMITS)

    def run(self, *blocks: str, seed: int = 0) -> list[BlockResult]:
        async def all_blocks() -> list[BlockResult]:
            async with await self.interpreter.session(seed=seed) as session:
                return [await session.run(block) for block in blocks]

        return self.loop.run_until_complete(all_blocks())


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.loop.run_until_complete(made.interpreter.close())
    made.loop.run_until_complete(made.loop.shutdown_default_executor())
    made.loop.close()


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("1\n2", ["1", "2"]),
        ("f(x) = {\n  x\n}\nf(3)", ["f(x) = {\n  x\n}", "f(3)"]),
        ('a = "{"\n1', ['a = "{"', "1"]),
        ("1 \\\\ {\n2", ["1 \\\\ {", "2"]),
        ("/* {\n1 */ 2\n3", ["/* {\n1 */ 2", "3"]),
        ("x = \\\n 5\n6", ["x = \\\n 5", "6"]),
        ("f(x) =\n x\n7", ["f(x) =\n x", "7"]),
        ("{ 1", ["{ 1"]),
        ('"open\n2', ['"open', "2"]),
    ],
)
def test_a_block_is_cut_as_the_prompt_cuts_what_is_typed(code: str, found: list[str]) -> None:
    assert [line.rstrip("\n") for line in inputs(code)] == found
    assert "".join(inputs(code)) == code


@pytest.mark.parametrize(
    ("code", "output"),
    [
        ("factor(360)", "[2, 3; 3, 2; 5, 1]\n"),
        ("x = 6 * 7;", ""),
        ("2\n3;\nprint(5)", "2\n5\n"),
        ("f(n) = {\n  my(m = n);\n  m^2\n}\nf(7);\nf(8)", "(n)->my(m=n);m^2\n64\n"),
        ('print1("a"); print("b")\n/* nothing */\n\\\\ nothing', "ab\n"),
        ('Str("é")', "é\n"),
        ("znorder(Mod(10, 7))", "6\n"),
        ("lift(Mod(3, 1000007)^(10^6))", f"{pow(3, 10**6, 1000007)}\n"),
    ],
)
def test_what_is_shown(bench: Bench, code: str, output: str) -> None:
    (result,) = bench.run(code)
    assert (result.status, result.output) == (Status.OK, output)


@pytest.mark.parametrize(
    ("code", "detail", "output"),
    [
        ("1/0", "PariError", "  ***   impossible inverse"),
        ("f(", "SyntaxError", "  ***   syntax error, unexpected end of file"),
        ('print("before")\nerror("why")', "PariError", "before\n  ***   user error: why"),
        ('error("%1 = 5")', "PariError", "  ***   user error: %1 = 5"),
        ("vector(10^9)", "MemoryError", "  ***   the PARI stack overflows"),
        ("l = List(); for(i = 1, 10^8, listput(l, i))", "", ""),
        ("f(n) = f(n + 1);\nf(1)", "PariError", "  ***   deep recursion"),
        ("input()", "PariError", "  ***   not a function in function call"),
        ("\0", "SyntaxError", "  ***   syntax error, unexpected NUL"),
    ],
)
def test_an_error_keeps_the_session_and_is_gps_last_line(bench: Bench, code: str, detail: str, output: str) -> None:
    _, first, after = bench.run("kept = 5;", code, "kept")
    if detail:
        assert (first.status, first.detail, first.state_kept) == (Status.ERROR, detail, True)
        assert first.output.startswith(output)
        assert first.output.count("***") == 1
    else:  # the heap is bounded: by memory or, on a slow machine, by time
        assert first.status in (Status.ERROR, Status.LIMIT)
    assert after.output == "5\n"


def test_a_failed_line_undoes_what_it_assigned_and_no_other(bench: Bench) -> None:
    _, after = bench.run("a = 1;\nb = 2; 1/0\nc = 3;", "[a, b, c]")
    assert after.output == "[1, b, c]\n"


SLOW = ["while(1,)", "kept = 6;\nwhile(1, kept++)", "factor((10^89 - 1) * nextprime(10^60))", "\n".join(["1;"] * 10**6)]


@pytest.mark.parametrize("code", SLOW, ids=["a loop", "an assignment", "inside PARI", "between lines"])
def test_time_runs_out_and_names_are_as_before_the_block(bench: Bench, code: str) -> None:
    _, stopped, after = bench.run("kept = 5;", code, "kept")
    assert (stopped.status, stopped.detail, stopped.state_kept) == (Status.LIMIT, "time", True)
    assert (
        stopped.output
        == "Stopped: the block used up its 0.5 s of CPU time. Names are as they were before this block.\n"
    )
    assert after.output == "5\n"


def test_a_process_that_dies_leaves_its_names(bench: Bench) -> None:
    _, died, after = bench.run("kept = 5;", "default(parisizemax, 10^12)", "kept")
    assert (died.status, died.state_kept) == (Status.LIMIT, True)
    assert died.restored
    assert after.output == "5\n"


def test_output_is_cut_and_counted(bench: Bench) -> None:
    (result,) = bench.run("for(i = 1, 2000, print1(7))")
    assert (result.status, result.cut_chars) == (Status.OK, 1701)


def test_branches_share_what_was_executed_and_nothing_later(bench: Bench) -> None:
    async def work() -> list[str]:
        async with await bench.interpreter.session(seed=3) as trunk:
            await trunk.run("x = 1;")
            branches = await trunk.fork(2)
            found = [(await one.run("x++; [x, random(10^9)]")).output for one in [trunk, *branches]]
            for branch in branches:
                await branch.close()
            return found

    here, *there = bench.loop.run_until_complete(work())
    assert here.startswith("[2, ")
    assert there == [here, here]


def test_the_seed_decides_what_is_random(bench: Bench) -> None:
    texts = [bench.run("random(10^9)", seed=seed)[0].output for seed in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]


def test_a_session_has_the_layers_of_one_of_python(bench: Bench) -> None:
    async def layers() -> list[dict[str, str]]:
        other = python.open(python.Settings(preload=(), pool=0), limits=LIMITS)
        async with other, await bench.interpreter.session() as ours, await other.session() as theirs:
            assert bench.interpreter.tier == other.tier
            return [ours.layers, theirs.layers, bench.interpreter.isolation["layers"], other.isolation["layers"]]

    ours, theirs, shared, others_shared = bench.loop.run_until_complete(layers())
    assert ours == theirs
    assert shared == others_shared


ESCAPES = {
    "system": 'system("echo out > FOLDER/written")',
    "extern": 'extern("echo 5")',
    "externstr": 'externstr("cat SECRET")',
    "a shell line": "\\!echo 5",
    "install": 'install("getpid", "i", "getpid"); print(getpid())',
    "write": 'write("FOLDER/written", 5)',
    "write1": 'write1("FOLDER/written", 5)',
    "writebin": 'writebin("FOLDER/written", 5)',
    "writetex": 'writetex("FOLDER/written", 5)',
    "a file to write": 'fileopen("FOLDER/written", "w")',
    "the log": 'default(logfile, "FOLDER/written"); default(log, 1)',
    "a plot": 'psplothraw([1, 2], [1, 2]); default(psfile, "FOLDER/written")\npsplot(x = 0, 1, x)',
    "read": 'print(read("SECRET"))',
    "readstr": 'print(readstr("SECRET"))',
    "readvec": 'print(readvec("SECRET"))',
    "a file to read": 'print(filereadstr(fileopen("SECRET")))',
    "a line that reads": "\\r SECRET",
    "a line that writes": "\\w FOLDER/written",
    "no secure mode": "default(secure, 0)",
    "the environment": 'if(getenv("PATH") == 0, error("there is none"))',
}


@pytest.mark.parametrize("name", ESCAPES)
def test_no_way_out_of_a_session(bench: Bench, tmp_path: Path, name: str) -> None:
    if bench.run("1")[0].status is Status.OK and bench.interpreter.tier is not None and bench.interpreter.tier < "T2":
        pytest.skip("files are kept apart from T2 on")
    secret = tmp_path / "secret.gp"
    secret.write_text("4242424242", encoding="utf-8")
    tmp_path.chmod(0o777)
    secret.chmod(0o644)
    assert "PATH" in os.environ
    (result,) = bench.run(ESCAPES[name].replace("FOLDER", str(tmp_path)).replace("SECRET", str(secret)))
    assert result.status is Status.ERROR, result
    assert "4242424242" not in result.output
    assert [path.name for path in tmp_path.iterdir()] == ["secret.gp"]


def test_no_preset_speaks_gp() -> None:
    with pytest.raises(RecipeError, match="preset 'cir' runs Python"):
        open_interpreter(kind("thincode.interpreter.backends", "gp"), preset="cir")


def test_who_has_no_pari_hears_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gp, "find", lambda: "")
    with pytest.raises(MissingExtraError, match=r"pip install 'thincode\[gp\]'"):
        gp.open(gp.Settings(), limits=LIMITS)
    assert "thincode[gp]" in doctor.probe_gp()["error"]


def test_another_library_is_refused_in_words() -> None:
    async def start() -> None:
        library = ctypes.util.find_library("c") or ""
        async with gp.open(gp.Settings(library=library, pool=0), limits=LIMITS) as interpreter:
            await interpreter.session()

    with pytest.raises(InfrastructureError, match=r"libc.* is PARI 0\.0, and it must be 2\.15"):
        asyncio.run(start())


def test_the_doctor_names_the_version() -> None:
    found = doctor.probe_gp()
    assert Path(found["library"]).exists()
    assert found["version"].startswith("2.")
