"""Lattice points of a quarter disc with a margin. The flaw leaves out the points on the circle."""

from math import isqrt
from random import Random

from ._family import Family, Flaw, Params, Step, lines, phrases
from ._working import total


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
        (f"No coordinate is above {m}.", lines(f"n = {n}", "m = int(n**0.5)", "print(m)")),
        (
            f"The number of candidates is {m + 1 - k}.",
            lines(f"r = range({k},m+1)", "print(len(r))"),
        ),
        (f"Of these {count} lie inside.", f"print(sum(x*x+y*y{'<' if flawed else '<='}n for x in r for y in r))"),
    ]


def _text(k: int, n: int, *, flawed: bool) -> list[str]:
    within = n - 1 if flawed else n
    columns = [max(0, isqrt(within - x * x) - k + 1) for x in range(k, isqrt(within) + 1)]
    return [f"No coordinate is above {isqrt(n)}", total(columns)]


FAMILY = Family(
    names="k n",
    sample=_sample,
    wordings=phrases(
        ("How many … are there?", "Count all ….", "Find the number of …."),
        (
            "pairs x, y >= {k} with x*x + y*y <= {n}",
            "x, y >= {k} with x*x + y*y at most {n}",
            "pairs x, y from {k} on with x*x + y*y <= {n}",
        ),
    ),
    gold=_gold,
    plan="Find the range, then count the pairs.",
    steps=_steps,
    text=_text,
    flaw=Flaw("strict_circle", _flawed),
)
