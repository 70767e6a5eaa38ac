"""The remainder of a power plus a number. The flaw does not reduce again after the addition."""

from random import Random

from ._family import Family, Flaw, Params, Step, lines, phrases
from ._working import power


def _sample(rng: Random, level: int) -> Params:
    k = rng.randrange(11, 100 * level)
    return rng.randrange(2, 50 * level), rng.randrange(5, 50 * level), rng.randrange(2, k), k


def _gold(a: int, n: int, b: int, k: int) -> int:
    return int((a**n + b) % k)


def _flawed(a: int, n: int, b: int, k: int) -> int:
    return int(a**n % k) + b


def _steps(a: int, n: int, b: int, k: int, *, flawed: bool) -> list[Step]:
    x = pow(a, n, k)
    y = x + b if flawed else (x + b) % k
    return [
        (f"The power leaves {x}.", lines(f"k = {k}", f"x = pow({a},{n},k)", "print(x)")),
        (f"With the number added it is {x + b}.", lines(f"y = x+{b}", "print(y)")),
        (f"The remainder is {y}.", "print(y)" if flawed else "print(y%k)"),
    ]


def _text(a: int, n: int, b: int, k: int, *, flawed: bool) -> list[str]:
    x = pow(a, n, k)
    return [*power(a, n, k), f"{x}+{b} = {x + b}", *([] if flawed else [f"{x + b} leaves {(x + b) % k}"])]


FAMILY = Family(
    names="a n b k",
    sample=_sample,
    wordings=phrases(
        ("What is …?", "Find ….", "Give …."),
        ("{a}^{n} + {b} mod {k}", "the remainder of {a}^{n} + {b} by {k}", "{a}^{n} + {b} modulo {k}"),
    ),
    gold=_gold,
    plan="Take the power, add, then reduce.",
    steps=_steps,
    text=_text,
    flaw=Flaw("not_reduced_again", _flawed),
)
