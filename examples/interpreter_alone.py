"""The interpreter by itself, with plain calls: `from thincode import Interpreter`."""

from thincode import Interpreter

with Interpreter(cpu_s=2) as interpreter, interpreter.session(seed=1) as session:
    print(session.run("x = 6 * 7\nx").output, end="")
    print(session.run("1 / 0").detail)  # a failed block is a value, and x is still there
    print(session.run("import os; os._exit(1)").output, end="")  # even when its process is gone
    for branch in session.fork(2):  # two sessions that go on from here
        print(branch.run("x += 1; x").output, end="")
        branch.close()
    print(session.run("x").output, end="")
