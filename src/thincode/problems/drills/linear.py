"""A linear equation with the unknown on both sides. No flaw."""

from random import Random

from ._family import Family, Params, Step, lines


def _sample(rng: Random, level: int) -> Params:
    x = rng.randrange(2, 60 * level)
    c = rng.randrange(2, 12 * level)
    a = c + rng.randrange(2, 12 * level)
    b = rng.randrange(5, 100)
    return a, b, c, (a - c) * x + b


def _gold(a: int, b: int, c: int, d: int) -> int:
    x = 0
    while a * x + b != c * x + d:
        x += 1
    return x


def _steps(a: int, b: int, c: int, d: int, *, flawed: bool) -> list[Step]:
    return [
        (f"The unknown keeps the factor {a - c}.", lines(f"a = {a} - {c}", "print(a)")),
        (f"The constants leave {d - b}.", lines(f"b = {d} - {b}", "print(b)")),
        (f"So the unknown is {(d - b) // (a - c)}.", "print(b // a)"),
    ]


FAMILY = Family(
    names="a b c d",
    sample=_sample,
    wordings=(
        "Solve {a}x + {b} = {c}x + {d}.",
        "Find x if {a}x + {b} = {c}x + {d}.",
        "For which x is {a}x + {b} equal to {c}x + {d}?",
        "{a} times n plus {b} is {c} times n plus {d}. What is n?",
        "Where do the lines y = {a}x + {b} and y = {c}x + {d} meet? Give x.",
        "Taking n {a} times and adding {b} gives as much as {c} times n plus {d}. Find n.",
    ),
    gold=_gold,
    plan="Bring the unknown to one side, the constants to the other, then divide.",
    steps=_steps,
)
