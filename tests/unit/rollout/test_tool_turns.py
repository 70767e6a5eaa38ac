"""Formats whose outputs are turns of a tool, in conversation with the real interpreter."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from thincode.engines import Context, Sampling
from thincode.engines.scripted import ScriptedEngine
from thincode.grading import Grade, Graded, GradeReason
from thincode.interpreter import Interpreter
from thincode.problems import Problem
from thincode.rollout import Budget
from thincode.rollout.crowd import LoopThread
from thincode.rollout.episode import CALLS_SPENT, Ask, Setting, run
from thincode.runs.health import features
from thincode.settings import kind
from thincode.trajectory import Address, BlockStatus, EndReason, SegmentKind, Trajectory
from thincode.trajectory.formats import build

ROOM = "thincode.trajectory.formats"
ADDRESS = Address(1, "test", 0, "p", 0)
ASTER, RSTAR2 = build(kind(ROOM, "aster")), build(kind(ROOM, "rstar2"))


def call(code: str, name: str = "code_interpreter") -> str:
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': {'code': code}})}\n</tool_call>"


Play = Callable[..., Trajectory]


@pytest.fixture
def play(loop: LoopThread, interpreter: Interpreter) -> Play:
    def play(*turns: str, format: Any = ASTER, calls: int = 8, timed: bool = True, contexts: Any = None) -> Trajectory:
        spoken: Iterator[str] = iter(turns)

        def say(context: Context) -> str:
            if contexts is not None:
                contexts.append(context)
            return next(spoken)

        async def one() -> Trajectory:
            setting = Setting(
                interpreter=interpreter,
                format=format,
                tokenizer=None,
                budget=Budget(context_tokens=4000, calls=calls),
                sampling=Sampling(),
                timed=timed,
            )
            engine = ScriptedEngine(say)
            return await run(Ask(ADDRESS, "37 * 52?"), voice=await engine.voice(ADDRESS), setting=setting)

        return loop.call(one())

    return play


def kinds(trajectory: Trajectory) -> list[str]:
    return [segment.kind.value for segment in trajectory.segments]


def test_calls_run_in_one_session_and_the_text_reads_back(play: Play) -> None:
    found = play("Multiply.\n" + call("p = 37*52\np"), call("print(p + 1)"), "\\boxed{1925}")
    assert kinds(found) == ["plan", "code", "output", "code", "output", "answer"]
    assert [segment.content for segment in found.outputs] == ["1924", "1925"]
    assert (found.answer, found.end) == ("1925", EndReason.FINISHED)
    assert [(s.kind, s.text, s.content) for s in ASTER.parse(found.text)] == [
        (s.kind, s.text, s.content) for s in found.segments
    ]


def test_a_tool_that_is_not_here_is_answered_counted_as_a_call_and_never_run(play: Play) -> None:
    found = play(call("print(1)", name="search"), call("print(2)"), call("print(3)"), "\\boxed{2}", calls=2)
    assert kinds(found) == ["code", "notice", "code", "output", "code", "notice", "answer"]
    assert found.segments[1].content == "Error when executing tool: 'search'"
    assert found.segments[5].content == CALLS_SPENT
    assert [segment.content for segment in found.blocks] == ["print(2)"]
    assert ASTER.parse(found.text)[5].kind is SegmentKind.NOTICE
    graded = Graded(Problem("p", "?", "2"), found, Grade(True, GradeReason.EQUAL_VALUE))
    assert features(graded)["tool_error_share"] == 1 / 2, "the refused call failed, the one beyond the budget was none"


def test_rstar2_feeds_broken_json_back_and_reports_how_a_call_went(play: Play) -> None:
    broken = '<tool_call>{"name": "jupyter_code", "arguments": {"code": "print("hi")"}}</tool_call>'
    found = play(
        broken, call("1/0", "jupyter_code"), call("6*7", "jupyter_code"), "\\boxed{42}", format=RSTAR2, timed=False
    )
    assert kinds(found) == ["code", "notice", "code", "output", "code", "output", "answer"]
    assert found.segments[1].content.startswith("Failed to decode tool call")
    failed, good = found.outputs
    assert "Tool call failure\nreason: ZeroDivisionError\nstderr: " in failed.text
    assert failed.text.count("execution time: 0.00s") == good.text.count("Tool call success\nstdout: 42\n") == 1
    assert [b.block.status for b in found.blocks if b.block] == [BlockStatus.ERROR, BlockStatus.OK]


def test_without_answer_to_broken_json_the_turn_is_the_last(play: Play) -> None:
    found = play('Now.\n<tool_call>\n{"name": oops}\n</tool_call>')
    assert (kinds(found), found.end, found.blocks) == (["plan", "code"], EndReason.FINISHED, ())
