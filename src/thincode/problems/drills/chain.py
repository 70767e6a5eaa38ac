"""A chain of operations, one block each. No flaw."""

from collections.abc import Mapping
from random import Random

from ._family import Family, Params, Step, lines, phrases
from ._working import product

ADD, SUBTRACT, MULTIPLY, REMAINDER = range(4)
SIGNS = ("+", "-", "*", "%")
SHORT = ("plus {}", "minus {}", "times {}", "mod {}")


def _sample(rng: Random, level: int) -> Params:
    """A start, then (operation, number) pairs: four at level 1, five at level 2. No value leaves 0 … 999."""
    x = start = rng.randrange(12, 100)
    chosen: list[int] = []
    before = -1
    while len(chosen) < 2 * (3 + level):
        operation = rng.choice([o for o in range(4) if o != before])
        number = rng.randrange(2, 10) if operation == MULTIPLY else rng.randrange(11, 100)
        value = apply(operation, x, number)
        if 0 < value < 1000 and not (operation == REMAINDER and x < number):
            chosen += [operation, number]
            x, before = value, operation
    return start, *chosen


def apply(operation: int, x: int, number: int) -> int:
    """One operation."""
    return (x + number, x - number, x * number, x % number)[operation]


def pairs(chosen: Params) -> list[tuple[int, int]]:
    """(operation, number) of each link."""
    return list(zip(chosen[::2], chosen[1::2], strict=True))


def _gold(start: int, *chosen: int) -> int:
    x = start
    for operation, number in pairs(chosen):
        x = apply(operation, x, number)
    return x


def _steps(start: int, *chosen: int, flawed: bool) -> list[Step]:
    found: list[Step] = []
    x = start
    for index, (operation, number) in enumerate(pairs(chosen)):
        left = str(start) if index == 0 else "x"
        x = apply(operation, x, number)
        found.append((f"Now it is {x}.", lines(f"x = {left}{SIGNS[operation]}{number}", "print(x)")))
    return found


def _fields(params: Params) -> Mapping[str, object]:
    return {"a": params[0], "steps": ", ".join(SHORT[o].format(n) for o, n in pairs(params[1:]))}


def _text(start: int, *chosen: int, flawed: bool) -> list[str]:
    found: list[str] = []
    x = start
    for operation, number in pairs(chosen):
        before, x = x, apply(operation, x, number)
        plain = f"{before}{SIGNS[operation]}{number} = {x}"
        found.append(product(before, number) if operation == MULTIPLY else plain)
    return found


FAMILY = Family(
    names="a steps",
    sample=_sample,
    fields=_fields,
    wordings=phrases(
        ("Take {a}, …?", "Start with {a}, …?", "Think of {a}, …?"),
        ("{steps}. What is it", "{steps}. What do you get", "{steps}. Which number is it"),
    ),
    gold=_gold,
    plan="Take one step after another.",
    steps=_steps,
    text=_text,
)
