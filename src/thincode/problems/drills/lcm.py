"""The first common multiple above a bound. The flaw takes the larger number for the least common multiple."""

from math import gcd
from random import Random

from ._family import Family, Flaw, Params, Step, lines, phrases
from ._working import euclid, product


def _sample(rng: Random, level: int) -> Params:
    a = rng.randrange(4, 25 * level)
    b = rng.randrange(4, 25 * level) if rng.random() < 0.7 else a * rng.randrange(2, 5)
    if rng.random() < 0.5:
        a, b = b, a
    return a, b, rng.randrange(20, 300 * level)


def _gold(a: int, b: int, k: int) -> int:
    n = k + 1
    while n % a or n % b:
        n += 1
    return n


def _flawed(a: int, b: int, k: int) -> int:
    return (k // max(a, b) + 1) * max(a, b)


def _steps(a: int, b: int, k: int, *, flawed: bool) -> list[Step]:
    common = next(n for n in range(max(a, b), a * b + 1) if n % a == 0 and n % b == 0)
    m = max(a, b) if flawed else common
    q = k // m + 1
    return [
        (
            f"The least common multiple is {m}.",
            lines(f"m = max({a},{b})", "print(m)")
            if flawed
            else lines("from math import lcm", f"m = lcm({a},{b})", "print(m)"),
        ),
        (f"The multiple we want is number {q}.", lines(f"n = {k}//m+1", "print(n)")),
        (f"That gives {q * m}.", "print(n*m)"),
    ]


def _gp(a: int, b: int, k: int, *, flawed: bool) -> list[Step]:
    blocks = (f"m = {'max' if flawed else 'lcm'}({a},{b})", f"n = {k}\\m+1", "n*m")
    return [(thought, block) for (thought, _), block in zip(_steps(a, b, k, flawed=flawed), blocks, strict=True)]


def _text(a: int, b: int, k: int, *, flawed: bool) -> list[str]:
    g = gcd(a, b)
    m = max(a, b) if flawed else a * b // g
    q = k // m + 1
    found = [] if flawed else [euclid(a, b), product(a, b), f"{a * b}/{g} = {m}"]
    return [*found, f"{k}//{m}+1 = {q}", product(q, m)]


FAMILY = Family(
    names="a b k",
    sample=_sample,
    symmetric=2,
    wordings=phrases(
        ("What is …?", "Find ….", "Give …."),
        (
            "the least n > {k} that {a} and {b} divide",
            "the first common multiple of {a} and {b} above {k}",
            "the least n > {k} divisible by {a} and {b}",
        ),
    ),
    gold=_gold,
    plan="Find the lcm, then the next multiple.",
    steps=_steps,
    gp=_gp,
    text=_text,
    flaw=Flaw("larger_for_lcm", _flawed),
)
