"""Arithmetic written out, for solutions in words: what a person would put on paper, and no more."""

from __future__ import annotations

from collections.abc import Sequence


def product(a: int, b: int) -> str:
    """`34*57 = 34*50+34*7 = 1700+238 = 1938`: digit by digit of the second number."""
    parts = [int(digit) * 10**place for place, digit in enumerate(reversed(str(b))) if digit != "0"][::-1]
    if len(parts) < 2:
        return f"{a}*{b} = {a * b}"
    split = "+".join(f"{a}*{part}" for part in parts)
    return f"{a}*{b} = {split} = {'+'.join(str(a * part) for part in parts)} = {a * b}"


def total(values: Sequence[int]) -> str:
    """`4+9+5 = 18`; of a single value `18 = 18`, of none `0`."""
    return f"{'+'.join(map(str, values))} = {sum(values)}" if values else "0"


def euclid(a: int, b: int) -> str:
    """The remainders of Euclid's algorithm, down to the greatest common divisor: `84 36 12`."""
    a, b = max(a, b), min(a, b)
    found = [a, b]
    while a % b:
        a, b = b, a % b
        found.append(b)
    return f"Euclid {' '.join(map(str, found))}"


def power(a: int, n: int, k: int) -> list[str]:
    """The power of a to the n modulo k by squaring, from the highest bit of n on; each step says what it leaves."""
    x = a % k
    found = [f"{a}^1 leaves {x}"]
    done = 1
    for bit in bin(n)[3:]:
        done, x, square = 2 * done, x * x % k, x * x
        found.append(f"{a}^{done}: {square} leaves {x}")
        if bit == "1":
            done, x, more = done + 1, x * a % k, x * a
            found.append(f"{a}^{done}: {more} leaves {x}")
    return found
