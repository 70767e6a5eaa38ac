"""One trajectory: a scripted teacher speaks, its blocks really run, and what they print goes in."""

from thincode.engines import Context, Sampling
from thincode.engines.scripted import ScriptedEngine
from thincode.interpreter import open_interpreter
from thincode.rollout import Budget, Schedule
from thincode.rollout.crowd import Crowd, LoopThread
from thincode.rollout.episode import Ask, Setting
from thincode.settings import kind
from thincode.trajectory import Address
from thincode.trajectory.formats import build


def teacher(context: Context) -> str:
    """What is said next, given what the blocks printed so far."""
    if not context.outputs:
        return "List the multiples, then add them.\n```python\nm = range(0, 1000, 37)\nprint(len(m))\n```\n"
    if len(context.outputs) == 1:
        return "```python\nprint(sum(m))\n```\n"
    return f"\\boxed{{{context.outputs[-1]}}}"


interpreter = open_interpreter()
setting = Setting(
    interpreter=interpreter,
    format=build(kind("thincode.trajectory.formats", "thinc")),
    tokenizer=None,
    budget=Budget(calls=4),
    sampling=Sampling(),
)
ask = Ask(Address(run=1, stage="example", step=0, problem="p", sample=0), "Add all multiples of 37 below 1000.")
with LoopThread() as loop:
    crowd = Crowd(loop=loop, engine=ScriptedEngine(teacher), schedule=Schedule.OVERLAPPED)
    (trajectory,) = crowd.roll([ask], setting)
    loop.call(interpreter.close())
print(trajectory.text)
print(f"\n{trajectory.end}: {trajectory.answer}, {len(trajectory.blocks)} blocks")
