"""One event loop and one interpreter for the tests of this room."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from thincode.interpreter import Interpreter, Limits, open_interpreter
from thincode.rollout.crowd import LoopThread
from thincode.settings import kind


@pytest.fixture(scope="module")
def loop() -> Iterator[LoopThread]:
    with LoopThread() as thread:
        yield thread


@pytest.fixture(scope="module")
def interpreter(loop: LoopThread) -> Iterator[Interpreter]:
    opened = open_interpreter(
        kind("thincode.interpreter.backends", "python", preload=[]), limits=Limits(cpu_s=1.0, wall_s=10.0)
    )
    yield opened
    loop.call(opened.close())
