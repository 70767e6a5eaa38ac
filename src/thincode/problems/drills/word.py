"""Word problems: boxes that are counted, sold from and added to. No flaw."""

from random import Random

from ._family import Family, Params, Step, lines


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


FAMILY = Family(
    names="a b c d",
    sample=_sample,
    symmetric=2,
    wordings=(
        "Ann has {a} boxes of {b} pens, sells {c} and buys {d}. How many pens are there?",
        "Tom has {a} bags of {b} pens, sells {c} and finds {d}. How many has Tom?",
        "There are {a} boxes of {b} pens. {c} are sold, {d} come. How many are there?",
        "Ann buys {a} bags of {b} pens, sells {c} and finds {d}. How many has Ann?",
        "A hall has {a} rows of {b} seats. {c} seats are taken out, {d} put in. How many seats stand?",
        "Eve fills {a} pages with {b} stamps each, loses {c}, later gets {d}. What does she own?",
    ),
    gold=_gold,
    plan="Multiply, subtract, then add.",
    steps=_steps,
)
