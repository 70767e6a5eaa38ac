"""The sum of the common divisors of two numbers. No flaw."""

from random import Random

from ._family import Family, Params, Step, lines, phrases
from ._working import euclid, total


def _sample(rng: Random, level: int) -> Params:
    g = rng.randrange(2, 25 * level)
    return g * rng.randrange(2, 25), g * rng.randrange(2, 25)


def _gold(a: int, b: int) -> int:
    return sum(d for d in range(1, min(a, b) + 1) if a % d == 0 and b % d == 0)


def _steps(a: int, b: int, *, flawed: bool) -> list[Step]:
    divisors = [d for d in range(1, min(a, b) + 1) if a % d == 0 and b % d == 0]
    return [
        (
            f"The greatest common divisor is {divisors[-1]}.",
            lines("from math import gcd", f"g = gcd({a},{b})", "print(g)"),
        ),
        (
            f"The number of its divisors is {len(divisors)}.",
            lines("d = [i for i in range(1,g+1) if g%i==0]", "print(len(d))"),
        ),
        (f"Their sum is {sum(divisors)}.", "print(sum(d))"),
    ]


def _gp(a: int, b: int, *, flawed: bool) -> list[Step]:
    blocks = (f"g = gcd({a},{b})", lines("d = divisors(g);", "#d"), "vecsum(d)")
    return [(thought, block) for (thought, _), block in zip(_steps(a, b, flawed=flawed), blocks, strict=True)]


def _text(a: int, b: int, *, flawed: bool) -> list[str]:
    divisors = [d for d in range(1, min(a, b) + 1) if a % d == 0 and b % d == 0]
    return [euclid(a, b), f"Divisors {' '.join(map(str, divisors))}", total(divisors)]


FAMILY = Family(
    names="a b",
    sample=_sample,
    symmetric=2,
    wordings=phrases(
        ("What is …?", "Find ….", "Give …."),
        (
            "the sum of all common divisors of {a} and {b}",
            "the sum of all n that divide {a} and {b}",
            "the total of the common divisors of {a} and {b}",
        ),
    ),
    gold=_gold,
    plan="Find the gcd, list its divisors, then add.",
    steps=_steps,
    gp=_gp,
    text=_text,
)
