"""Episodes of a served teacher: what its hidden thoughts use up, and what becomes of one that its server can't go on with."""

from __future__ import annotations

import pytest

from openai_server import OpenAIServer, question
from thincode.engines import Sampling, openai
from thincode.interpreter import Interpreter
from thincode.rollout import Budget, Schedule, prompt
from thincode.rollout.crowd import Crowd, LoopThread
from thincode.rollout.episode import Ask, Setting
from thincode.settings import kind, parse
from thincode.trajectory import Address, EndReason, Trajectory
from thincode.trajectory.formats import build

THOUGHT = f"<think>{'hm ' * 400}</think>\n"


def play(
    server: OpenAIServer,
    loop: LoopThread,
    interpreter: Interpreter,
    *,
    problems: int = 1,
    shots: str | None = None,
    **values: object,
) -> list[Trajectory]:
    engine = openai.open(parse(openai.Settings, {"base_url": server.url, "way": "turns", **values}))
    setting = Setting(
        interpreter=interpreter,
        format=build(kind("thincode.trajectory.formats", "thinc", instruction="")),
        tokenizer=None,
        budget=Budget(context_tokens=1000, calls=8),
        sampling=Sampling(),
        shots=prompt.load(shots) if shots else None,
    )
    asks = [Ask(Address(1, "test", 0, f"p{number}", 0), question(number)[0]) for number in range(problems)]
    try:
        return Crowd(loop=loop, engine=engine, schedule=Schedule.OVERLAPPED, live=1).roll(asks, setting)
    finally:
        loop.call(engine.close())


@pytest.mark.parametrize(("thoughts", "end"), [("drop", EndReason.FINISHED), ("count", EndReason.CONTEXT)])
def test_hidden_thoughts_are_dropped_or_counted_and_never_kept(
    thoughts: str, end: EndReason, loop: LoopThread, interpreter: Interpreter
) -> None:
    with OpenAIServer(thought=THOUGHT) as server:
        (found,) = play(server, loop, interpreter, thoughts=thoughts)
    assert found.end is end
    assert "hm" not in found.text
    assert "think" not in found.text


def test_examples_use_up_context_and_stay_out_of_the_record(loop: LoopThread, interpreter: Interpreter) -> None:
    with OpenAIServer() as server:
        (found,) = play(server, loop, interpreter, shots="thinc_3shot")
    assert (found.end, found.text) == (EndReason.CONTEXT, "")
    assert found.prompt == f"{question(0)[0]}\n\n"


def test_a_trajectory_its_server_cannot_go_on_with_is_lost_and_the_others_are_not(
    loop: LoopThread, interpreter: Interpreter
) -> None:
    # Four requests for the first problem; then the second one's are refused, thrice in all, while the third is served.
    with OpenAIServer(faults=lambda number: "teapot" if number in (4, 9, 10) else None) as server:
        found = play(server, loop, interpreter, problems=3)
    assert [one.end for one in found] == [EndReason.FINISHED, EndReason.LOST, EndReason.FINISHED]
