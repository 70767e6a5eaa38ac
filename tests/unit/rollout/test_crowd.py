"""Many episodes: order, schedules, and what happens when the interpreter loses blocks."""

from __future__ import annotations

import pytest

from thincode.engines import Context, Sampling
from thincode.engines.scripted import ScriptedEngine
from thincode.errors import InfrastructureError, TooManyLostError
from thincode.interpreter import BlockResult, Interpreter, Status
from thincode.rollout import Budget, Schedule
from thincode.rollout.crowd import Crowd, LoopThread, LostCount
from thincode.rollout.episode import Ask, Setting
from thincode.settings import kind
from thincode.trajectory import Address, Trajectory
from thincode.trajectory.formats import build

FORMAT = build(kind("thincode.trajectory.formats", "thinc", instruction=""))
ASKS = [Ask(Address(1, "test", 0, f"p{number}", 0), f"{number} * 7?") for number in range(10)]


def say(context: Context) -> str:
    number = int(context.question_id[1:])
    return f"\\boxed{{{context.outputs[0]}}}" if context.outputs else f"```python\nprint({number} * 7)\n```\n"


def setting(interpreter: Interpreter) -> Setting:
    return Setting(interpreter, FORMAT, None, Budget(context_tokens=500, calls=3), Sampling())


@pytest.mark.parametrize("schedule", list(Schedule))
@pytest.mark.parametrize("live", [1, 3, 100])
def test_results_stand_in_the_order_of_the_asks(
    loop: LoopThread, interpreter: Interpreter, schedule: Schedule, live: int
) -> None:
    crowd = Crowd(loop=loop, engine=ScriptedEngine(say), schedule=schedule, live=live)
    told: list[Trajectory] = []
    found = crowd.roll(ASKS, setting(interpreter), on_finished=told.append)
    assert [trajectory.answer for trajectory in found] == [str(7 * number) for number in range(10)]
    assert sorted(told, key=lambda one: one.address) == sorted(found, key=lambda one: one.address)
    if schedule is Schedule.DETERMINISTIC:
        assert told == found


def test_both_schedules_say_the_same(loop: LoopThread, interpreter: Interpreter) -> None:
    first, second = (
        Crowd(loop=loop, engine=ScriptedEngine(say), schedule=schedule, live=4).roll(ASKS, setting(interpreter))
        for schedule in Schedule
    )
    assert first == second


def test_nothing_asked_gives_nothing(loop: LoopThread, interpreter: Interpreter) -> None:
    for schedule in Schedule:
        assert Crowd(loop=loop, engine=ScriptedEngine(say), schedule=schedule).roll([], setting(interpreter)) == []


def test_an_engine_that_fails_stops_the_roll_with_its_own_error(loop: LoopThread, interpreter: Interpreter) -> None:
    def broken(context: Context) -> str:
        raise InfrastructureError("the server is gone")

    for schedule in Schedule:
        crowd = Crowd(loop=loop, engine=ScriptedEngine(broken), schedule=schedule)
        with pytest.raises(InfrastructureError, match="the server is gone"):
            crowd.roll(ASKS, setting(interpreter))


class Flaky:
    """An interpreter of ours that loses every block of a session, for the first `sessions` sessions."""

    def __init__(self, real: Interpreter, sessions: int) -> None:
        self.real = real
        self.sessions = sessions

    async def session(self, *, seed: int = 0) -> object:
        session = await self.real.session(seed=seed)
        self.sessions -= 1
        return Losing(session) if self.sessions >= 0 else session


class Losing:
    def __init__(self, real: object) -> None:
        self.real = real

    async def run(self, code: str) -> BlockResult:
        return BlockResult(Status.LOST, "", "worker unreachable")

    async def close(self) -> None:
        await self.real.close()  # type: ignore[attr-defined]


def test_lost_trajectories_are_asked_for_again_at_the_same_address(loop: LoopThread, interpreter: Interpreter) -> None:
    # Each lost episode tries three sessions; eight lost sessions therefore lose two episodes and part of a third.
    flaky = Flaky(interpreter, sessions=8)
    count = LostCount()
    crowd = Crowd(loop=loop, engine=ScriptedEngine(say), schedule=Schedule.DETERMINISTIC, live=1, lost=count)
    found = crowd.roll(ASKS, setting(flaky))  # type: ignore[arg-type]
    assert [trajectory.answer for trajectory in found] == [str(7 * number) for number in range(10)]
    assert (count.blocks, count.lost) == (10, 0)


def test_too_many_lost_blocks_stop_the_run_and_say_what_failed(loop: LoopThread, interpreter: Interpreter) -> None:
    count = LostCount(limit_share=0.02, at_least=10)
    crowd = Crowd(loop=loop, engine=ScriptedEngine(say), schedule=Schedule.OVERLAPPED, lost=count)
    with pytest.raises(TooManyLostError, match=r"10 of 10 blocks.*worker unreachable.*--resume"):
        crowd.roll(ASKS, setting(Flaky(interpreter, sessions=10**6)))  # type: ignore[arg-type]
