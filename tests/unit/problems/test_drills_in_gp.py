"""Families that are taught in PARI/GP: the program there shows what the one in Python prints, flawed or not."""

from __future__ import annotations

import asyncio
import re

import pytest

from thincode.errors import RecipeError
from thincode.interpreter import Limits, Status
from thincode.interpreter.backends import gp
from thincode.problems import WorkedSolution
from thincode.problems.drills import Language, families
from thincode.problems.sources import drills
from thincode.problems.sources.drills import Settings

SPOKEN = [name for name, family in families().items() if family.speaks(Language.GP)]


async def shown(solutions: list[WorkedSolution]) -> list[list[str]]:
    limits = Limits(memory_mib=256, deterministic=True)
    async with gp.open(gp.Settings(pool=1), limits=limits) as interpreter, await interpreter.session() as session:
        found = []
        for solution in solutions:
            outputs: list[str] = []
            for block in solution.blocks:
                result = await session.run(block(outputs))
                assert result.status is Status.OK, result
                outputs.append(result.output.strip())
            found.append(outputs)
        return found


@pytest.mark.skipif(not gp.find(), reason="needs PARI's library: pip install 'thincode[gp]'")
@pytest.mark.parametrize("name", SPOKEN)
def test_it_shows_what_python_prints(name: str) -> None:
    solutions = []
    for fallible in (0.0, 1.0):
        settings = Settings(families=(name,), count=30, fallible=fallible, language=Language.GP)
        solutions += [drills.worked_solution(settings, problem, seed=1) for problem in drills.load(settings)]
    for solution, outputs in zip(solutions, asyncio.run(shown(solutions)), strict=True):
        assert outputs[-1] == solution.answer
        assert [re.findall(r"\d+", thought) for thought in solution.thoughts] == [[output] for output in outputs]


def test_four_families_are_taught_in_gp_and_are_the_default() -> None:
    assert len(SPOKEN) >= 4
    problems = drills.load(Settings(count=40, language=Language.GP))
    assert {problem.tags["family"] for problem in problems} == set(SPOKEN)


def test_a_family_that_is_not_taught_in_it_is_refused() -> None:
    with pytest.raises(RecipeError, match=r"word is not taught in gp; those that are: divisors, gcd, lcm, primes"):
        drills.load(Settings(families=("word",), language=Language.GP))
