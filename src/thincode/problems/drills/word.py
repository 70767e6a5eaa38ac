"""Word problems: boxes that are counted, sold from and added to. No flaw."""

from random import Random

from ._family import Family, Params, Step, lines, phrases
from ._working import product


def _sample(rng: Random, level: int) -> Params:
    a, b = rng.randrange(6, 30 * level), rng.randrange(6, 30)
    return a, b, rng.randrange(5, min(100 * level, a * b)), rng.randrange(10, 100)


def _gold(a: int, b: int, c: int, d: int) -> int:
    return sum([b] * a) + d - c


def _steps(a: int, b: int, c: int, d: int, *, flawed: bool) -> list[Step]:
    t = a * b
    return [
        (f"At first there are {t}.", lines(f"t = {a}*{b}", "print(t)")),
        (f"Then {t - c} are left.", lines(f"t = t-{c}", "print(t)")),
        (f"In the end there are {t - c + d}.", f"print(t+{d})"),
    ]


def _text(a: int, b: int, c: int, d: int, *, flawed: bool) -> list[str]:
    t = a * b
    return [product(a, b), f"{t}-{c} = {t - c}", f"{t - c}+{d} = {t - c + d}"]


FAMILY = Family(
    names="a b c d",
    sample=_sample,
    symmetric=2,
    wordings=phrases(
        (
            "Ann has {a} boxes of {b} pens, …?",
            "Tom has {a} bags of {b} pens, …?",
            "Eve buys {a} packs of {b} pens, …?",
        ),
        (
            "sells {c} and finds {d}. How many are there",
            "loses {c} and buys {d}. How many are left",
            "gives {c} away and gets {d}. How many are there now",
        ),
    ),
    gold=_gold,
    plan="Multiply, subtract, then add.",
    steps=_steps,
    text=_text,
)
