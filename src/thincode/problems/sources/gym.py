"""Problems of reasoning-gym (Stojanovski et al. 2025, arXiv 2505.24760) whose answers are integers.

An independent source of generated problems: wordings and answers are the package's own. For some families there is a
worked solution too. Numbers may have more digits than the drills have; `options` narrows them, for example
`options: {products: {max_digits: 3}}`. The split is decided by a hash of the question, as for drills.
"""

from __future__ import annotations

import hashlib
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from random import Random
from typing import Annotated, Any

from pydantic import Field

from ...errors import MissingExtraError, RecipeError
from ...settings import settings
from .. import Problem, WorkedSolution
from ..drills import Split, split_of

FAMILIES = (
    "aiw",
    "basic_arithmetic",
    "binary_alternation",
    "chain_sum",
    "count_bits",
    "count_primes",
    "gcd",
    "gsm_symbolic",
    "largest_island",
    "lcm",
    "leg_counting",
    "letter_counting",
    "number_sequence",
    "products",
    "rectangle_count",
    "rotten_oranges",
    "self_reference",
    "simple_equations",
    "simple_geometry",
)
"""Families of reasoning-gym 0.1.25 with integer answers only."""

DRAWS = 40
"""Draws per problem wanted, before a family counts as exhausted."""


@settings
class Settings:
    """Which problems to generate."""

    families: tuple[str, ...] = ("chain_sum", "count_primes", "gcd", "lcm", "products")
    count: Annotated[int, Field(ge=1)] = 1000
    """Problems in all, spread evenly over the families."""
    seed: int = 0
    split: Split = Split.TRAIN
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Settings of reasoning-gym's own, by family."""


def load(settings: Settings) -> Sequence[Problem]:
    """The problems, families mixed; each with the tags family and source.

    Raises:
        MissingExtraError: reasoning-gym is not installed.
        RecipeError: an unknown family or option, or more problems than there are.
    """
    for name in (*settings.families, *settings.options):
        if name not in FAMILIES:
            raise RecipeError(f"families: {name!r} is no family with integer answers; known: {', '.join(FAMILIES)}")
    if not settings.families:
        raise RecipeError("families: name at least one")
    problems: list[Problem] = []
    for index, name in enumerate(settings.families):
        share = settings.count // len(settings.families) + (index < settings.count % len(settings.families))
        problems += _draw(settings, name, share)
    Random(f"order {settings.seed}").shuffle(problems)
    return problems


def worked_solution(settings: Settings, problem: Problem, *, seed: int) -> WorkedSolution | None:
    """A program for gcd, lcm, count_primes, products and chain_sum with numbers as they come by default; else None."""
    solve = _SOLVERS.get(problem.tags.get("family", ""))
    return solve(problem.question) if solve else None


def _draw(settings: Settings, name: str, count: int) -> Iterator[Problem]:
    seen: set[str] = set()
    for entry in _entries(settings, name, DRAWS * count + 200):
        if len(seen) == count:
            return
        question = entry["question"].strip()
        if question in seen or split_of(question) != settings.split:
            continue
        seen.add(question)
        digest = hashlib.blake2b(question.encode(), digest_size=6).hexdigest()
        tags = {"family": name, "source": "reasoning-gym"}
        yield Problem(id=f"gym/{name}/{digest}", question=question, answer=str(entry["answer"]), tags=tags)
    if len(seen) < count:
        raise RecipeError(
            f"count: {settings.count} asks for {count} problems of {name}, but split {settings.split} gave only "
            f"{len(seen)} that are distinct; lower count, add families or widen options.{name}"
        )


def _entries(settings: Settings, name: str, size: int) -> Iterator[Any]:
    # The package numbers its draws from the seed on, so seeds close to each other would share most draws.
    seed = Random(f"{name} {settings.seed}").getrandbits(30)
    with warnings.catch_warnings():
        # Its dependencies leave files open and use deprecated names while they are imported.
        warnings.simplefilter("ignore")
        try:
            import reasoning_gym
        except ModuleNotFoundError as error:
            if error.name != "reasoning_gym":
                raise
            raise MissingExtraError("reasoning-gym", "gym", "the source gym") from None
    try:
        return iter(reasoning_gym.create_dataset(name, size=size, seed=seed, **settings.options.get(name, {})))
    except (TypeError, AssertionError) as error:
        raise RecipeError(f"options.{name}: reasoning-gym refuses {settings.options.get(name, {})}: {error}") from None


# --- worked solutions -----------------------------------------------------------------------------------------------


def _solution(plan: str, *steps: tuple[str, str]) -> WorkedSolution:
    def block(source: str) -> Callable[[Sequence[str]], str]:
        return lambda outputs: source

    return WorkedSolution(
        plan=plan,
        blocks=tuple(block(source) for _, source in steps),
        thoughts=tuple(thought for thought, _ in steps),
    )


def _gcd(question: str) -> WorkedSolution | None:
    first, *more = re.findall(r"\d+", question)
    if not more:
        return None
    return _solution(
        "List the divisors of the first number, keep the common ones, then take the largest.",
        ("First all divisors.", f"d = [i for i in range(1, {first} + 1) if {first} % i == 0]\nprint(len(d))"),
        *((f"Keep those that divide {n}.", f"d = [i for i in d if {n} % i == 0]\nprint(len(d))") for n in more),
        ("The largest is the answer.", "print(max(d))"),
    )


def _lcm(question: str) -> WorkedSolution | None:
    numbers = re.findall(r"\d+", question)
    if len(numbers) != 2:
        return None
    a, b = numbers
    return _solution(
        "Divide the product by the greatest common divisor.",
        ("First the greatest common divisor.", f"from math import gcd\ng = gcd({a}, {b})\nprint(g)"),
        ("Then the product.", f"p = {a} * {b}\nprint(p)"),
        ("Now divide.", "print(p // g)"),
    )


def _count_primes(question: str) -> WorkedSolution | None:
    found = re.search(r"between (\d+) and (\d+) \(inclusive\)", question)
    if not found:
        return None
    first, last = max(2, int(found[1])), int(found[2])
    return _solution(
        "Find the primes up to the root of the end, then count the numbers none of them divides.",
        ("First the root.", f"m = int({last} ** 0.5)\nprint(m)"),
        (
            "Then the small primes.",
            "q = [n for n in range(2, m + 1) if all(n % i for i in range(2, n))]\nprint(len(q))",
        ),
        (
            "Now count.",
            f"r = range({first}, {last} + 1)\nprint(sum(all(n % i for i in q if i < n) for n in r))",
        ),
    )


def _products(question: str) -> WorkedSolution | None:
    found = re.search(r": (\d+) \* (\d+)\.", question)
    if not found:
        return None
    a, b = found.groups()
    return _solution(
        "Split off the last digit, multiply both parts, then put them together.",
        ("First split the second number.", f"q, r = divmod({b}, 10)\nprint(q, r)"),
        ("Then multiply the tens.", f"t = {a} * q * 10\nprint(t)"),
        ("Now add the ones.", f"print(t + {a} * r)"),
    )


def _chain_sum(question: str) -> WorkedSolution | None:
    found = re.search(r": (\d+(?: [+-] \d+)*) =", question)
    if not found:
        return None
    terms = re.findall(r"([+-]) (\d+)", f"+ {found[1]}")
    plus = ", ".join(n for sign, n in terms if sign == "+")
    minus = ", ".join(n for sign, n in terms if sign == "-")
    return _solution(
        "Add up what is added and what is taken away, then subtract.",
        ("First what is added.", f"p = sum([{plus}])\nprint(p)"),
        ("Then what is taken away.", f"m = sum([{minus}])\nprint(m)"),
        ("Now the difference.", "print(p - m)"),
    )


_SOLVERS: Mapping[str, Callable[[str], WorkedSolution | None]] = {
    "gcd": _gcd,
    "lcm": _lcm,
    "count_primes": _count_primes,
    "products": _products,
    "chain_sum": _chain_sum,
}
