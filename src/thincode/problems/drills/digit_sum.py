"""The digit sum of a product. The flaw takes the digits as a set, so a digit that repeats counts once."""

from random import Random

from ._family import Family, Flaw, Params, Step, lines, phrases
from ._working import product, total


def _sample(rng: Random, level: int) -> Params:
    a, b = rng.randrange(12, 100), rng.randrange(12, 200 * level)
    return (a, b) if rng.random() < 0.5 else (b, a)


def _gold(a: int, b: int) -> int:
    n, total = a * b, 0
    while n:
        n, digit = divmod(n, 10)
        total += digit
    return total


def _flawed(a: int, b: int) -> int:
    return sum({a * b // 10**i % 10 for i in range(len(str(a * b)))})


def _steps(a: int, b: int, *, flawed: bool) -> list[Step]:
    p = a * b
    digits = [int(c) for c in str(p)]
    kept = sorted(set(digits)) if flawed else digits
    return [
        (f"The product is {p}.", lines(f"p = {a}*{b}", "print(p)")),
        (
            f"The number of digits is {len(kept)}.",
            lines(f"d = {'{' if flawed else '['}int(c) for c in str(p){'}' if flawed else ']'}", "print(len(d))"),
        ),
        (f"They add up to {sum(kept)}.", "print(sum(d))"),
    ]


def _text(a: int, b: int, *, flawed: bool) -> list[str]:
    digits = [int(c) for c in str(a * b)]
    return [product(a, b), total(sorted(set(digits)) if flawed else digits)]


FAMILY = Family(
    names="a b",
    sample=_sample,
    symmetric=2,
    wordings=phrases(
        ("What is …?", "Find ….", "Give …."),
        ("the digit sum of {a} * {b}", "the sum of the digits of {a} * {b}", "the digit sum of {a} times {b}"),
    ),
    gold=_gold,
    plan="Multiply, list the digits, then add.",
    steps=_steps,
    text=_text,
    flaw=Flaw("digits_as_set", _flawed),
)
