"""Numbers up to a bound divisible by one of two. The flaw subtracts multiples of the product, not of the lcm."""

from math import lcm
from random import Random

from ._family import Family, Flaw, Params, Step, lines, phrases


def _sample(rng: Random, level: int) -> Params:
    a = rng.randrange(3, 25)
    b = rng.randrange(3, 24)
    return a, b + (b >= a), rng.randrange(60, 500 * level)


def _gold(a: int, b: int, n: int) -> int:
    return len({*range(a, n + 1, a), *range(b, n + 1, b)})


def _flawed(a: int, b: int, n: int) -> int:
    return n // a + n // b - n // (a * b)


def _steps(a: int, b: int, n: int, *, flawed: bool) -> list[Step]:
    x, y = n // a, n // b
    z = n // (a * b) if flawed else sum(i % b == 0 for i in range(a, n + 1, a))
    both = f"print(n//({a}*{b}))" if flawed else lines("from math import lcm", f"print(n//lcm({a},{b}))")
    return [
        (f"The first number has {x} multiples.", lines(f"n = {n}", f"print(n//{a})")),
        (f"The second has {y}.", f"print(n//{b})"),
        (f"Counted twice are {z}.", both),
        (f"Together that makes {x + y - z}.", lambda out: f"print({out[0]}+{out[1]}-{out[2]})"),
    ]


def _text(a: int, b: int, n: int, *, flawed: bool) -> list[str]:
    m = a * b if flawed else lcm(a, b)
    x, y, z = n // a, n // b, n // m
    return [f"{n}//{a} = {x}", f"{n}//{b} = {y}", f"{n}//{m} = {z}", f"{x}+{y} = {x + y}", f"{x + y}-{z} = {x + y - z}"]


FAMILY = Family(
    names="a b n",
    sample=_sample,
    symmetric=2,
    wordings=phrases(
        ("How many … are there?", "Count all ….", "Find the number of …."),
        (
            "n <= {n} that {a} or {b} divide",
            "multiples of {a} or {b} up to {n}",
            "n from 1 to {n} divisible by {a} or {b}",
        ),
    ),
    gold=_gold,
    plan="Count each, count both, then subtract.",
    steps=_steps,
    text=_text,
    flaw=Flaw("product_for_lcm", _flawed),
)
