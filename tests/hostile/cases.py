"""Blocks that are hostile or just awkward, by category, and what must come of each; see `snippets/README.md`.

`python cases.py TIER NAME...` runs some of them at a tier and prints JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from thincode.interpreter import Limits
from thincode.interpreter.backends import python
from thincode.interpreter.tiers import NEEDS, Tier

FOLDER = Path(__file__).with_name("snippets")
LIMITS = Limits(
    cpu_s=0.3,
    wall_s=6,
    memory_mib=256,
    output_chars=2000,
    processes=16,
    disk_mib=8,
    files=64,
    grace_s=0.3,
    deterministic=True,
)
STOPPED = "Stopped: the block used up its 0.3 s of CPU time."
SOURCES = {
    "{huge_literal}": f"x = {'9' * 10**6}",
    "{many_lines}": "x = 1\n" * 20000 + "x",
    "{deep_nesting}": "(" * 500 + ")" * 500,
}
"""What would be too long to stand in a file."""


@dataclass(frozen=True)
class Case:
    """One block that follows `canary = 41`; afterwards the session must answer, with its names."""

    category: int
    name: str
    code: str = ""
    status: tuple[str, ...] = ("ok",)
    """Those that will do."""
    detail: str = ""
    says: tuple[str, ...] = ()
    """Each must stand in the output."""
    hides: tuple[str, ...] = ("@@LEAK@@",)
    """None may stand in any output."""
    then: tuple[tuple[str, str | None], ...] = ()
    """Further blocks, and the output of each; None: any."""
    needs: str = ""
    """A module that must be preloaded."""
    patient: bool = False
    """Whether it fills its memory, which on a slow machine takes longer than the others may compute."""
    repeats: bool = False
    """Whether a second session with the same seed must print the same."""
    at: dict[str, list[str]] = field(default_factory=dict)
    """Directives that hold at one tier alone."""

    def on(self, tier: Tier) -> Case:
        """What holds at `tier`."""
        found = self
        for line in self.at.get(tier, ()):
            found = directed(found, line)
        return found


def directed(case: Case, line: str) -> Case:
    """The case with one directive obeyed."""
    word, _, rest = line.partition(" ")
    said = rest.replace("\\n", "\n").replace("\\x1b", "\x1b")
    match word.rstrip(","):
        case "T2" | "T3":
            return replace(case, at={**case.at, word: [*case.at.get(word, []), rest]})
        case "ok" | "error" | "limit":
            return replace(case, status=(word,), detail=rest)
        case "refused":
            return replace(case, status=("error",), detail="an OSError")
        case "timed":
            return replace(case, status=("limit",), detail="time", says=(*case.says, STOPPED))
        case "fatal":
            tampered = rest == "tampered"
            return replace(
                case,
                status=("limit",),
                detail="tampered" if tampered else "died",
                says=case.says if tampered else (*case.says, rest),
            )
        case "contained":
            return replace(case, status=("ok", "error", "limit"))
        case "says":
            return replace(case, says=(*case.says, said))
        case "hides":
            return replace(case, hides=(*case.hides, said))
        case "needs":
            return replace(case, needs=rest)
        case "repeats":
            return replace(case, repeats=True)
        case "patient":
            return replace(case, patient=True)
        case "unmarked":
            return replace(case, hides=(*case.hides, "MARKED"))
        case "escaped":
            return replace(case, code="escaped")
    raise ValueError(f"{case.name}: no such directive: {line}")


def read(text: str) -> Iterator[Case]:
    """The cases of one file."""
    for category in text.split("@@@ ")[1:]:
        heading, *cases = category.split("\n@@ ")
        number = int(heading.split()[0])
        for body in cases:
            name, *lines = body.split("\n")
            case = Case(number, name)
            while lines and lines[0].startswith("@ ") and lines[0] != "@ then":
                case = directed(case, lines.pop(0)[2:])
            code, *then = "\n".join(lines).strip("\n").split("\n@ then\n")
            if case.code == "escaped":
                code = code.encode("latin-1").decode("unicode_escape")
            yield replace(
                case, code=SOURCES.get(code.strip(), code.strip("\n") + "\n"), then=tuple(map(_further, then))
            )


def _further(block: str) -> tuple[str, str | None]:
    code, gives, wanted = block.partition("\n@ gives ")
    return code, wanted.strip("\n") + "\n" if gives else None


CASES = {case.name: case for path in sorted(FOLDER.glob("*.txt")) for case in read(path.read_text(encoding="utf-8"))}

OFF: dict[Tier, tuple[str, ...]] = {Tier.T3: (), Tier.T2: NEEDS[Tier.T3]}
"""What a tier is brought about by, on a machine that can do more."""


async def run_case(interpreter: python.PythonInterpreter, case: Case, names: dict[str, str]) -> dict[str, object]:
    """Everything the check needs, as plain data."""

    def filled(code: str) -> str:
        for name, value in names.items():
            code = code.replace(name, value)
        return code

    async with await interpreter.session(seed=7) as session:
        await session.run("canary = 41")
        result = await session.run(filled(case.code))
        then = [(await session.run(filled(block))).output for block, _ in case.then]
        after = await session.run("canary = canary + 1\ncanary")
        alive = await session.run("6 * 7")
    again = ""
    if case.repeats:
        async with await interpreter.session(seed=7) as session:
            await session.run("canary = 41")
            again = (await session.run(filled(case.code))).output
    return {
        **asdict(result), "then": then, "after": after.output, "alive": alive.output, "again": again,
        "tier": interpreter.tier,
    }  # fmt: skip


async def run_all(tier: Tier, chosen: list[str]) -> dict[str, dict[str, object]]:
    """The cases chosen, four at a time, each on the interpreter that has what it needs."""
    cases = {name: CASES[name] for name in chosen}
    os.environ["SECRET"] = "@@LEAK@@"
    gate = asyncio.Semaphore(4)
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    results: dict[str, dict[str, object]] = {}
    with tempfile.TemporaryDirectory() as folder:
        secret = Path(folder, "answers")
        secret.write_text("@@LEAK@@")
        secret.chmod(0o600)
        before = secret.stat()
        names = {
            "{secret}": repr(str(secret)), "{folder}": repr(folder), "{pid}": str(os.getpid()),
            "{port}": str(server.sockets[0].getsockname()[1]),
        }  # fmt: skip
        for needs, patient in sorted({(case.needs, case.patient) for case in cases.values()}):
            # What a loaded session needs is warm in it: an import would use up the CPU limit.
            settings = python.Settings(preload=("numpy", "sympy") if needs else (), tier=Tier.T1)
            limits = replace(LIMITS, cpu_s=LIMITS.wall_s) if patient else LIMITS
            async with python.PythonInterpreter(settings, limits=limits, off=OFF[tier]) as interpreter:

                async def guarded(case: Case) -> dict[str, object]:
                    async with gate:
                        return await run_case(interpreter, case, names)

                group = [case for case in cases.values() if (case.needs, case.patient) == (needs, patient)]
                done = await asyncio.gather(*(guarded(case) for case in group))
                results |= {case.name: result for case, result in zip(group, done, strict=True)}
        after = secret.stat()
        marked = (before.st_mode, before.st_mtime) != (after.st_mode, after.st_mtime)
    server.close()
    return {name: {**result, "marked": marked} for name, result in results.items()}


if __name__ == "__main__":
    json.dump(asyncio.run(run_all(Tier(sys.argv[1]), sys.argv[2:])), sys.stdout)
