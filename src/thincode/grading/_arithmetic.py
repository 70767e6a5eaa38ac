"""Arithmetic with bounds: exact fractions where possible, else 60 digits of mpmath; nothing here can run away."""

from __future__ import annotations

import threading
from collections.abc import Callable
from fractions import Fraction
from math import comb, isqrt
from math import factorial as whole_factorial
from typing import Any

_LIMIT_BITS = 12_000
_DIGITS = 60


class UnreadableError(ValueError):
    """The text is not one number-valued expression."""


class TooLargeError(UnreadableError):
    """The expression is beyond a bound of this module: length, depth or the size of a number."""


_local = threading.local()


def _mp() -> Any:
    """The arithmetic of mpmath at 60 digits, one per thread."""
    if not hasattr(_local, "mp"):
        import mpmath

        _local.mp = mpmath.MPContext()
        _local.mp.dps = _DIGITS
    return _local.mp


def _real(number: Any) -> Any:
    """As mpmath's number."""
    mp = _mp()
    return mp.mpf(number.numerator) / number.denominator if isinstance(number, Fraction) else number


def _checked(number: Any) -> Any:
    if isinstance(number, Fraction):
        if max(number.numerator.bit_length(), number.denominator.bit_length()) > 2 * _LIMIT_BITS:
            raise TooLargeError("number too large")
    elif not _mp().isfinite(number):
        raise UnreadableError("not finite")
    elif number and abs(_mp().mag(number)) > 2 * _LIMIT_BITS:
        raise TooLargeError("number too large")
    return number


def _both(left: Any, right: Any) -> tuple[Any, Any]:
    exact = isinstance(left, Fraction) and isinstance(right, Fraction)
    return (left, right) if exact else (_real(left), _real(right))


def add(left: Any, right: Any) -> Any:
    """The sum."""
    a, b = _both(left, right)
    return _checked(a + b)


def multiply(left: Any, right: Any) -> Any:
    """The product."""
    a, b = _both(left, right)
    return _checked(a * b)


def quotient(left: Any, right: Any) -> Any:
    """The quotient; division by zero is unreadable."""
    if not right:
        raise UnreadableError("division by zero")
    a, b = _both(left, right)
    return _checked(a / b)


def power(base: Any, exponent: Any) -> Any:
    """The power; refused before it is computed where it would be too large."""
    if isinstance(base, Fraction) and isinstance(exponent, Fraction) and exponent.denominator == 1:
        size = max(base.numerator.bit_length(), base.denominator.bit_length())
        if abs(exponent) * size > _LIMIT_BITS:
            raise TooLargeError("power too large")
        if not base and exponent < 0:
            raise UnreadableError("division by zero")
        return base**exponent.numerator
    if isinstance(base, Fraction) and exponent == Fraction(1, 2):
        return _root(base)
    a, b = _both(base, exponent)
    a, b = _real(a), _real(b)
    if a <= 0:
        raise UnreadableError("not a real number")
    if abs(b) * (abs(_mp().mag(a)) + 1) > _LIMIT_BITS:
        raise TooLargeError("power too large")
    return _checked(a**b)


def _root(number: Any) -> Any:
    if number < 0:
        raise UnreadableError("not a real number")
    if isinstance(number, Fraction):
        above, below = isqrt(number.numerator), isqrt(number.denominator)
        if above * above == number.numerator and below * below == number.denominator:
            return Fraction(above, below)
    return _mp().sqrt(_real(number))


def _whole(number: Any, limit: int) -> int:
    if not isinstance(number, Fraction) or number.denominator != 1 or number < 0:
        raise UnreadableError("not a natural number")
    if number > limit:
        raise TooLargeError("argument too large")
    return number.numerator


def factorial(number: Any) -> Fraction:
    """Factorial, up to 1000."""
    return Fraction(whole_factorial(_whole(number, 1000)))


def pi() -> Any:
    """π to 60 digits."""
    return +_mp().pi


def to_fraction(number: Any) -> Fraction:
    """The binary fraction that a number of mpmath is, exactly."""
    mantissa, exponent = int(number.man), int(number.exp)
    return Fraction(mantissa << max(exponent, 0), 1 << max(-exponent, 0))


def as_text(number: Any) -> str:
    """40 digits, which `Fraction` reads back."""
    return str(_mp().nstr(number, 40))


def _by_name(name: str) -> Callable[[Any], Any]:
    def apply(number: Any) -> Any:
        argument = _real(number)
        if abs(argument) > 10_000:
            raise TooLargeError("argument too large")
        try:
            found = getattr(_mp(), name)(argument)
        except (ValueError, ZeroDivisionError):
            raise UnreadableError(f"{name} is undefined there") from None
        if not isinstance(found, _mp().mpf):
            raise UnreadableError("not a real number")
        return _checked(found)

    return apply


def _same(number: Any) -> Any:
    return number


def _choose(n: Any, k: Any) -> Fraction:
    return Fraction(comb(_whole(n, 2000), _whole(k, 2000)))


FUNCTIONS: dict[str, tuple[int, Callable[..., Any]]] = {
    **{name: (1, _by_name(name)) for name in ("exp", "sin", "cos", "tan", "asin", "acos", "atan", "log")},
    **{f"arc{name}": (1, _by_name(f"a{name}")) for name in ("sin", "cos", "tan")},
    **dict.fromkeys(("int64", "int32", "float64", "float32", "mpf", "Integer", "Float", "Decimal"), (1, _same)),
    **dict.fromkeys(("frac", "dfrac", "tfrac", "cfrac", "Fraction", "Rational"), (2, quotient)),
    **dict.fromkeys(("binom", "dbinom", "binomial", "comb"), (2, _choose)),
    "ln": (1, _by_name("log")),
    "abs": (1, abs),
    "factorial": (1, factorial),
    "sqrt": (1, _root),
}
