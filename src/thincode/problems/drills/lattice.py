"""Lattice points of a quarter disc with a margin. The flaw leaves out the points on the circle."""

from math import isqrt
from random import Random

from ._family import Family, Flaw, Params, Step, lines


def _sample(rng: Random, level: int) -> Params:
    k = rng.randrange(10)
    return k, rng.randrange(max(50, 2 * k * k), 700 * level)


def _columns(k: int, n: int) -> int:
    """Column by column: for each x, how many y from k on have x² + y² ≤ n."""
    return sum(max(0, isqrt(n - x * x) - k + 1) for x in range(k, isqrt(n) + 1))


def _gold(k: int, n: int) -> int:
    return _columns(k, n)


def _flawed(k: int, n: int) -> int:
    return _columns(k, n - 1)


def _steps(k: int, n: int, *, flawed: bool) -> list[Step]:
    m = isqrt(n)
    count = _columns(k, n - 1) if flawed else _columns(k, n)
    return [
        (f"No coordinate is above {m}.", lines(f"n = {n}", "m = int(n ** 0.5)", "print(m)")),
        (
            f"The number of pairs to test is {(m + 1 - k) ** 2}.",
            lines(f"r = range({k}, m + 1)", "s = [x * x + y * y for x in r for y in r]", "print(len(s))"),
        ),
        (f"Of these {count} lie inside.", f"print(sum(v {'<' if flawed else '<='} n for v in s))"),
    ]


FAMILY = Family(
    names="k n",
    sample=_sample,
    wordings=(
        "How many integer pairs x, y >= {k} have x^2 + y^2 <= {n}?",
        "Count the integers x, y from {k} on with x^2 + y^2 at most {n}.",
        "Find the number of lattice points with x, y >= {k} and x^2 + y^2 <= {n}.",
        "x and y are integers, both at least {k}. How often is x^2 + y^2 <= {n}?",
        "A disc has squared radius {n} and center 0. How many of its lattice points have x, y >= {k}?",
        "In how many ways can integers x, y not below {k} keep x^2 + y^2 within {n}?",
    ),
    gold=_gold,
    plan="Bound the coordinates, list the sums of squares, then count the small ones.",
    steps=_steps,
    flaw=Flaw("strict_circle", _flawed),
)
