"""Numbers of an interval that are not prime. The flaw leaves out the interval's end, which a prime end hides."""

from functools import cache
from random import Random

from ._family import Family, Flaw, Params, Step, lines, phrases

LARGEST = 1000


def _sample(rng: Random, level: int) -> Params:
    a = rng.randrange(10, 300 * level)
    return a, a + rng.randrange(10, 100 * level)


@cache
def _primes_up_to() -> tuple[int, ...]:
    """Sieve of Eratosthenes: entry n is the number of primes up to n."""
    composite = bytearray(LARGEST + 1)
    counts = [0, 0]
    for n in range(2, LARGEST + 1):
        if not composite[n]:
            composite[n * n :: n] = b"\1" * len(range(n * n, LARGEST + 1, n))
        counts.append(counts[-1] + (not composite[n]))
    return tuple(counts)


def _gold(a: int, b: int) -> int:
    up_to = _primes_up_to()
    return b - a + 1 - (up_to[b] - up_to[a - 1])


def _flawed(a: int, b: int) -> int:
    up_to = _primes_up_to()
    return b - a - (up_to[b - 1] - up_to[a - 1])


def _steps(a: int, b: int, *, flawed: bool) -> list[Step]:
    up_to = _primes_up_to()
    last = b - 1 if flawed else b
    primes = up_to[last] - up_to[a - 1]
    m = last - a + 1
    return [
        (f"The interval has {m} numbers.", lines(f"r = range({a},{b}{'' if flawed else '+1'})", "print(len(r))")),
        (
            f"The number of primes is {primes}.",
            lines(
                "p = [n for n in r if all(n%i for i in range(2,n))]",
                "print(len(p))",
            ),
        ),
        (f"The others are {m - primes}.", lambda out: f"print({out[0]}-{out[1]})"),
    ]


def _gp(a: int, b: int, *, flawed: bool) -> list[Step]:
    last = b - 1 if flawed else b
    blocks = (f"m = #[{a}..{last}]", f"p = #primes([{a},{last}])", "m-p")
    return [(thought, block) for (thought, _), block in zip(_steps(a, b, flawed=flawed), blocks, strict=True)]


def _text(a: int, b: int, *, flawed: bool) -> list[str]:
    up_to = _primes_up_to()
    last = b - 1 if flawed else b
    primes = [n for n in range(a, last + 1) if up_to[n] > up_to[n - 1]]
    m, p = last - a + 1, len(primes)
    return [
        f"{b}-{a}{'' if flawed else '+1'} = {m}",
        f"Primes {' '.join(map(str, primes))}: {p}",
        f"{m}-{p} = {m - p}",
    ]


FAMILY = Family(
    names="a b",
    sample=_sample,
    wordings=phrases(
        ("How many … are there?", "Count all ….", "Find the number of …."),
        (
            "n from {a} to {b} that are not prime",
            "composite n from {a} to {b}",
            "n with {a} <= n <= {b} that are not prime",
        ),
    ),
    gold=_gold,
    plan="Count all, find the primes, then subtract.",
    steps=_steps,
    gp=_gp,
    text=_text,
    flaw=Flaw("end_left_out", _flawed),
)
