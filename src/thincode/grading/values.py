r"""Values: what a short piece of mathematics is worth, in LaTeX or as Python prints it, without evaluating anything.

A hand-written reader with bounds on length, depth and size; `10**10**10` is refused, never computed. Rationals are exact
fractions; everything else (radicals, π, logarithms, trigonometry) is known to 40 digits, which tells any two values apart
that people write down.

    value(r"\frac{9 \sqrt{23}}{23}") == value("9*sqrt(23)/23")
    value("033") == value("+33") == value("33.0") == value("11*3")
    [item.value.text for item in shown("x=7, total 1,234 of Fraction(1, 2)")] == ["7", "1234", "1/2"]
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

from ._arithmetic import (
    FUNCTIONS,
    TooLargeError,
    UnreadableError,
    add,
    as_text,
    factorial,
    multiply,
    pi,
    power,
    quotient,
    to_fraction,
)
from ._tokens import (
    STARTS,
    TWO_GROUPS,
    Token,
    can_start,
    free_after,
    free_before,
    plain_numbers,
    stands_alone,
    tokens_of,
)

__all__ = ["LIMIT_CHARS", "SCAN_CHARS", "Shown", "TooLargeError", "UnreadableError", "Value", "read", "shown", "value"]

LIMIT_CHARS = 400
"""Longest expression that is read as a whole."""
SCAN_CHARS = 10_000
"""How much of one output is searched for values."""
_LINE = re.compile(r"^.*(?:[0-9π]|pi).*$", re.MULTILINE)
"""A line in which a value may stand."""
_DECIMAL = re.compile(r"(?=.*[.eE])-?[\d,]*\.?\d+(?:[eE][+-]?\d+)?")
_LIMIT_DIGITS = 4_000
_LIMIT_DEPTH = 30


@dataclass(frozen=True)
class Value:
    """A number."""

    key: int | Fraction | str
    """Exact: an integer or a fraction; for anything irrational 40 decimal digits. Equal values have equal keys."""
    decimal: str | None = field(default=None, compare=False)
    """The literal, where the value was written as one decimal such as `0.35` or `1e-5`."""

    @property
    def rational(self) -> Fraction:
        """The value, or a fraction within 40 digits of it."""
        return Fraction(self.key)

    @property
    def text(self) -> str:
        """For reports; a very long integer is shortened."""
        if isinstance(self.key, str):
            return self.key
        if max(self.key.numerator.bit_length(), self.key.denominator.bit_length()) > 2_000:
            return f"a number of {self.key.numerator.bit_length()} bits"
        return str(self.key)


class Shown(NamedTuple):
    """A value that stands in a text."""

    value: Value
    start: int
    end: int


@lru_cache(maxsize=1_000)
def value(text: str) -> Value | None:
    """The value of `text` read as a whole; None where it has none or is beyond a bound. Never raises."""
    try:
        return read(text)
    except UnreadableError:
        return None


def read(text: str) -> Value:
    """The value of `text` read as a whole.

    Raises:
        TooLargeError: beyond a bound.
        UnreadableError: not one number-valued expression.
    """
    if len(text) > LIMIT_CHARS:
        if len(text) <= _LIMIT_DIGITS and text.isdecimal():
            return Value(int(text))
        raise TooLargeError(f"{len(text)} characters")
    tokens = [token for token in tokens_of(text) if token.kind != "space"]
    if not tokens:
        raise UnreadableError("empty")
    parser = _Parser(tokens, strict_spaces=False)
    number = parser.sum(0)
    if parser.at != len(tokens):
        raise UnreadableError(f"stops at {tokens[parser.at].text!r}")
    return _value(number, "".join(token.text for token in tokens))


def shown(text: str) -> Iterator[Shown]:
    """The values that stand free in `text`, left to right, at most `SCAN_CHARS` of it.

    A number stands free if nothing but space, brackets, separators or the end of a sentence touches it: `7` stands in
    `x=7,` and `(7, 3)`, not in `17`, `0.7`, `x7` or `7*x`. The longest expression counts, so `1/2` shows one half and not 1.
    """
    for line in _LINE.finditer(text[:SCAN_CHARS]):  # no value reaches over the end of a line
        yield from _shown_in(line.group(), line.start())


def _shown_in(line: str, offset: int) -> Iterator[Shown]:
    plain = plain_numbers(line)
    if plain is None:
        yield from _shown_by_tokens(line, offset)
        return
    for text, start, end in plain:
        number = _plain(text)
        if number is not None:
            yield Shown(number, offset + start, offset + end)


@lru_cache(maxsize=2_000)
def _plain(text: str) -> Value | None:
    """The value of one literal; None if it is too large."""
    try:
        return _value(_literal(text), text)
    except TooLargeError:
        return None


def _shown_by_tokens(line: str, offset: int) -> Iterator[Shown]:
    tokens = tokens_of(line)
    at = 0
    while at < len(tokens):
        if tokens[at].kind not in STARTS or not (can_start(tokens, at) and free_before(tokens, at)):
            at += 1
            continue
        if tokens[at].kind == "number" and stands_alone(tokens, at):
            number = _plain(tokens[at].text)
            if number is not None and free_after(tokens, at + 1):
                yield Shown(number, offset + tokens[at].start, offset + tokens[at].end)
            at += 1
            continue
        parser = _Parser(tokens, at=at, strict_spaces=True)
        try:
            found = _value(parser.sum(0), "".join(token.text for token in tokens[at : parser.at]))
        except TooLargeError:
            at = max(parser.at, at + 1)  # what was read is not read again: the cost stays linear
            continue
        except UnreadableError:
            at += 1
            continue
        if free_after(tokens, parser.at):
            yield Shown(found, offset + tokens[at].start, offset + tokens[parser.at - 1].end)
        at = max(parser.at, at + 1)


# --- numbers ----------------------------------------------------------------------------------------------------------


def _literal(text: str) -> Fraction:
    if len(text) < 19 and text.isdecimal():
        return Fraction(int(text))
    plain = re.sub(r"[^\d.eE+-]", "", text)
    mantissa, _, exponent = plain.lower().partition("e")
    if len(mantissa) > _LIMIT_DIGITS or len(exponent) > 5 or abs(int(exponent or 0)) > 400:
        raise TooLargeError("number too large")
    return Fraction(plain)


def _value(number: Any, text: str) -> Value:
    written = text.strip("(){} ").lstrip("+")
    decimal = written if not written.isdecimal() and _DECIMAL.fullmatch(written) else None
    if isinstance(number, Fraction):
        return Value(_whole(number), decimal)
    exact = to_fraction(number)
    near = exact.limit_denominator(10**6)
    if abs(exact - near) <= abs(exact) / 10**45:
        return Value(_whole(near))
    return Value(as_text(number))


def _whole(number: Fraction) -> int | Fraction:
    """An integer where it is one: quicker to compare, and equal."""
    return number.numerator if number.denominator == 1 else number


# --- the reader -----------------------------------------------------------------------------------------------------


class _Parser:
    """Recursive descent: sum > product > signed > power > postfix > atom."""

    def __init__(self, tokens: list[Token], *, at: int = 0, strict_spaces: bool) -> None:
        self.tokens, self.at, self.strict_spaces = tokens, at, strict_spaces

    def skip_spaces(self) -> bool:
        start = self.at
        while self.at < len(self.tokens) and self.tokens[self.at].kind == "space":
            self.at += 1
        return self.at > start

    def peek(self) -> Token:
        return self.tokens[self.at] if self.at < len(self.tokens) else Token("end", "", -1, -1)

    def sum(self, depth: int) -> Any:
        if depth > _LIMIT_DEPTH:
            raise TooLargeError("too deep")
        total = self.product(depth)
        while True:
            back = self.at
            spaced = self.skip_spaces()
            sign = self.peek()
            if sign.kind != "op" or sign.text not in "+-":
                self.at = back
                return total
            self.at += 1
            if self.strict_spaces and spaced and self.peek().kind != "space":
                self.at = back
                return total
            try:
                term = self.product(depth)
            except TooLargeError:
                raise
            except UnreadableError:
                if not self.strict_spaces:
                    raise
                self.at = back
                return total
            total = add(total, term if sign.text == "+" else -term)

    def product(self, depth: int) -> Any:
        total = self.signed(depth)
        while True:
            back, whole_before = self.at, self.tokens[self.at - 1].kind == "number"
            spaced = self.skip_spaces()
            token = self.peek()
            if token.kind == "op" and token.text in "*/":
                self.at += 1
                explicit = True
            elif token.kind in ("name", "open") and self.may_touch(token, spaced, whole_before):
                explicit = False
            else:
                self.at = back
                return total
            try:
                mixed = whole_before and token.text in TWO_GROUPS and self.is_plain_fraction()
                factor = self.signed(depth) if explicit else self.power(depth)
            except TooLargeError:
                raise
            except UnreadableError:
                if not self.strict_spaces:
                    raise
                self.at = back
                return total
            if explicit and token.text == "/":
                total = quotient(total, factor)
            elif mixed and not explicit and isinstance(factor, Fraction) and 0 < factor < 1:
                total = total + factor if total >= 0 else total - factor
            else:
                total = multiply(total, factor)

    def may_touch(self, token: Token, spaced: bool, whole_before: bool) -> bool:
        """Whether a factor without a sign in front is meant: in a running text `3 sqrt(2)`, but not `3 (4)`."""
        return not (self.strict_spaces and spaced) or (token.kind == "name" and whole_before)

    def is_plain_fraction(self) -> bool:
        r"""Whether `\frac{digits}{digits}` follows, which after an integer makes a mixed number."""
        kinds = [t.kind for t in self.tokens[self.at + 1 : self.at + 7] if t.kind != "space"]
        return kinds[:6] == ["open", "number", "close"] * 2 or kinds[:1] == ["number"]

    def signed(self, depth: int) -> Any:
        self.skip_spaces()
        token = self.peek()
        if token.kind == "op" and token.text in "+-":
            if depth > _LIMIT_DEPTH:
                raise TooLargeError("too deep")
            self.at += 1
            number = self.signed(depth + 1)
            return -number if token.text == "-" else number
        return self.power(depth)

    def power(self, depth: int) -> Any:
        base = self.postfix(depth)
        back = self.at
        if not self.strict_spaces:
            self.skip_spaces()
        if self.peek().text != "^":
            self.at = back
            return base
        self.at += 1
        return power(base, self.signed(depth + 1))

    def postfix(self, depth: int) -> Any:
        number = self.atom(depth)
        while self.peek().text == "!" and not self.strict_spaces:
            self.at += 1
            number = factorial(number)
        return number

    def atom(self, depth: int) -> Any:
        self.skip_spaces()
        token = self.peek()
        self.at += 1
        if token.kind == "number":
            return _literal(token.text)
        if token.kind == "name":
            return self.named(token.text, depth + 1)
        if token.kind == "open":
            number = self.sum(depth + 1)
            self.expect({"(": ")", "{": "}"}[token.text])
            return number
        raise UnreadableError(f"unexpected {token.text!r}")

    def named(self, name: str, depth: int) -> Any:
        if depth > _LIMIT_DEPTH:
            raise TooLargeError("too deep")
        if name == "pi":
            return pi()
        count, function = FUNCTIONS[name]
        if name in TWO_GROUPS:
            return function(*self.two_groups(depth))
        self.skip_spaces()
        if name == "sqrt" and self.peek().text == "[":
            self.at += 1
            degree = self.sum(depth)
            self.expect("]")
            return power(self.atom(depth), quotient(Fraction(1), degree))
        if self.peek().text != "(":
            # LaTeX: the argument is the next factor.
            if count != 1:
                raise UnreadableError("two arguments needed")
            return function(self.atom(depth) if name == "sqrt" else self.power(depth))
        self.at += 1
        arguments = [self.argument(depth)]
        while len(arguments) < count and self.after_spaces(","):
            arguments.append(self.argument(depth))
        self.expect(")")
        if len(arguments) != count and name not in ("Fraction", "Rational"):
            raise UnreadableError(f"{name} takes {count}")
        return function(*arguments) if len(arguments) == count else arguments[0]

    def argument(self, depth: int) -> Any:
        quoted = self.after_spaces("'") or self.after_spaces('"')
        number = self.sum(depth)
        if quoted and not (self.after_spaces("'") or self.after_spaces('"')):
            raise UnreadableError("open quote")
        return number

    def two_groups(self, depth: int) -> tuple[Any, Any]:
        self.skip_spaces()
        token = self.peek()
        if token.kind == "number" and len(token.text) == 2 and token.text.isdecimal():  # \frac43
            self.at += 1
            return Fraction(int(token.text[0])), Fraction(int(token.text[1]))
        return self.atom(depth), self.atom(depth)

    def after_spaces(self, text: str) -> bool:
        self.skip_spaces()
        if self.peek().text != text:
            return False
        self.at += 1
        return True

    def expect(self, text: str) -> None:
        if not self.after_spaces(text):
            raise UnreadableError(f"{text!r} missing")
