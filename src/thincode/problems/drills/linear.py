"""A linear equation with the unknown on both sides. No flaw."""

from random import Random

from ._family import Family, Params, Step, lines, phrases


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
        (f"The unknown keeps the factor {a - c}.", lines(f"a = {a}-{c}", "print(a)")),
        (f"The constants leave {d - b}.", lines(f"b = {d}-{b}", "print(b)")),
        (f"So the unknown is {(d - b) // (a - c)}.", "print(b//a)"),
    ]


def _text(a: int, b: int, c: int, d: int, *, flawed: bool) -> list[str]:
    return [f"{a}-{c} = {a - c}", f"{d}-{b} = {d - b}", f"{d - b}/{a - c} = {(d - b) // (a - c)}"]


FAMILY = Family(
    names="a b c d",
    sample=_sample,
    wordings=phrases(
        ("Find x so that ….", "What is x if …?", "Solve for x: …."),
        ("{a}x + {b} = {c}x + {d}", "{a}x + {b} is {c}x + {d}", "{a}x + {b} equals {c}x + {d}"),
    ),
    gold=_gold,
    plan="Collect x, then the numbers, then divide.",
    steps=_steps,
    text=_text,
)
