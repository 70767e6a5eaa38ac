"""Run blocks in one session. Names persist; what goes wrong is a value, not an exception."""

import asyncio

from thincode.interpreter import Limits, open_interpreter

BLOCKS = (
    "squares = [n * n for n in range(10)]\nsum(squares)",
    "squares[-1] - squares[0]",  # the list of the block before is still there
    "squares[10]",
    "while True: pass",
    "len(squares)",  # and it survives an error and a block that was stopped
)


async def main() -> None:
    async with open_interpreter(limits=Limits(cpu_s=0.5)) as interpreter, await interpreter.session(seed=1) as session:
        for code in BLOCKS:
            result = await session.run(code)
            last_line = result.output.splitlines()[-1] if result.output else ""
            print(f"{result.status:<6} {result.detail:<11} {last_line}")


asyncio.run(main())
