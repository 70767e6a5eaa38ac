"""`from thincode import Interpreter`, with plain calls and with asyncio."""

from __future__ import annotations

import asyncio

import pytest

from thincode import Interpreter
from thincode.errors import RecipeError
from thincode.interpreter import Status

BARE = {"preload": [], "pool": 1}


def test_plain_calls_work_beside_a_loop_of_the_callers() -> None:
    async def in_a_notebook() -> list[str]:
        with Interpreter(settings=BARE) as interpreter, interpreter.session(seed=1) as session:
            outputs = [session.run("x = 6 * 7\nx").output]
            (branch,) = session.fork(1)
            outputs += [branch.run("x += 1; x").output, session.run("x").output]
            branch.close()
            return outputs

    assert asyncio.run(in_a_notebook()) == ["42\n", "43\n", "42\n"]


def test_asyncio_and_limits_by_name() -> None:
    async def run() -> Status:
        async with Interpreter(settings=BARE, cpu_s=0.2) as interpreter, await interpreter.session() as session:
            return (await session.run("while True: pass")).status

    assert asyncio.run(run()) is Status.LIMIT


def test_a_preset_by_name() -> None:
    with Interpreter(settings=BARE, preset="cir") as interpreter, interpreter.session() as session:
        assert session.run("print('a')\n1 / 0").output == "ZeroDivisionError: division by zero"


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"cpus": 2}, "limits.cpus: unknown key"),
        ({"backend": "pyton"}, "python"),
        ({"preset": "zir"}, "did you mean 'cir'"),
    ],
)
def test_a_wrong_name_is_said(wrong: dict[str, object], says: str) -> None:
    with pytest.raises(RecipeError, match=says):
        Interpreter(**wrong)  # type: ignore[arg-type]
