"""The sum of the divisors of a number from a bound on. The flaw takes > for ≥."""

from random import Random

from ._family import Family, Flaw, Params, Step, lines, phrases
from ._working import total


def _sample(rng: Random, level: int) -> Params:
    n = rng.randrange(24, 400 * level)
    own = [d for d in range(2, 26) if n % d == 0]
    # A bound that divides makes the flaw show; at random that is rare.
    k = rng.choice(own) if own and rng.random() < 0.4 else rng.randrange(2, 26)
    return n, k


def _sum_by_pairs(n: int, k: int) -> int:
    pairs = ({d, n // d} for d in range(1, int(n**0.5) + 1) if n % d == 0)
    return sum(d for pair in pairs for d in pair if d >= k)


def _gold(n: int, k: int) -> int:
    return _sum_by_pairs(n, k)


def _flawed(n: int, k: int) -> int:
    return _sum_by_pairs(n, k + 1)


def _steps(n: int, k: int, *, flawed: bool) -> list[Step]:
    divisors = [d for d in range(1, n + 1) if n % d == 0]
    kept = [d for d in divisors if d > k or (d == k and not flawed)]
    return [
        (
            f"The number of divisors is {len(divisors)}.",
            lines(f"n = {n}", "d = [i for i in range(1,n+1) if n%i==0]", "print(len(d))"),
        ),
        (
            f"Of these {len(kept)} reach the bound.",
            lines(f"e = [i for i in d if i{'>' if flawed else '>='}{k}]", "print(len(e))"),
        ),
        (f"Their sum is {sum(kept)}.", "print(sum(e))"),
    ]


def _gp(n: int, k: int, *, flawed: bool) -> list[Step]:
    blocks = (
        lines(f"d = divisors({n});", "#d"),
        lines(f"e = [x | x <- d, x {'>' if flawed else '>='} {k}];", "#e"),
        "vecsum(e)",
    )
    return [(thought, block) for (thought, _), block in zip(_steps(n, k, flawed=flawed), blocks, strict=True)]


def _text(n: int, k: int, *, flawed: bool) -> list[str]:
    divisors = [d for d in range(1, n + 1) if n % d == 0]
    kept = [d for d in divisors if d > k or (d == k and not flawed)]
    return [f"Divisors {' '.join(map(str, divisors))}", total(kept)]


FAMILY = Family(
    names="n k",
    sample=_sample,
    wordings=phrases(
        ("What is the sum of …?", "Find the sum of ….", "Add …."),
        (
            "all n >= {k} that divide {n}",
            "all divisors of {n} from {k} on",
            "all divisors of {n} that are at least {k}",
        ),
    ),
    gold=_gold,
    plan="List the divisors, keep the large, then add.",
    steps=_steps,
    gp=_gp,
    text=_text,
    flaw=Flaw("strict_bound", _flawed),
)
