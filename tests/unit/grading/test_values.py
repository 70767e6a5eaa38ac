"""Values are read from LaTeX and from what Python prints, inside bounds."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from thincode.grading import _tokens, values
from thincode.grading.values import TooLargeError, read, shown, value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("33", 33),
        ("033", 33),
        ("+33", 33),
        ("33.0", 33),
        ("−7", -7),
        ("1,234", 1234),
        (r"11,\! 111,\! 111,\! 100", 11111111100),
        (r"\frac43", Fraction(4, 3)),
        (r"\frac 59", Fraction(5, 9)),
        (r"\frac9{19}", Fraction(9, 19)),
        (r"-\dfrac{35}{9}", Fraction(-35, 9)),
        (r"1\frac{4}{5}", Fraction(9, 5)),
        (r"137 \frac{1}{2}", Fraction(275, 2)),
        ("2**5", 32),
        ("2^{-1}", Fraction(1, 2)),
        ("-2^2", -4),
        ("2^3^2", 512),
        ("7 - 2 - 1", 4),
        ("12/3/2", 2),
        ("2(3+4)", 14),
        ("sqrt(16)", 4),
        (r"\sqrt{2}\sqrt{8}", 4),
        ("sqrt(2)/sqrt(8)", Fraction(1, 2)),
        ("5!", 120),
        ("factorial(5)", 120),
        (r"\binom{5}{2}", 10),
        ("Fraction(1, 2)", Fraction(1, 2)),
        ("Fraction('0.5')", Fraction(1, 2)),
        ("Rational(-3, 4)", Fraction(-3, 4)),
        ("np.float64(0.5)", Fraction(1, 2)),
        ("1e-5", Fraction(1, 100000)),
        (".35625", Fraction(57, 160)),
    ],
)
def test_exact_values(text: str, expected: Fraction) -> None:
    found = value(text)
    assert found is not None
    assert found.key == expected


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (r"\frac{9 \sqrt{23}}{23}", "9*sqrt(23)/23"),
        (r"\frac{1+\sqrt5}{2}", "(1 + sqrt(5))/2"),
        ("2*pi/3", r"\frac{2\pi}{3}"),
        (r"\sqrt{6+2\sqrt5}", r"1+\sqrt{5}"),
        (r"\sqrt[4]{\frac{64}{27}}", "(64/27)**(1/4)"),
        (r"\pi - \arctan \frac{12}{5}", "pi - atan(12/5)"),
        ("exp(2)*exp(3)", "exp(5)"),
    ],
)
def test_irrational_values_are_equal_in_every_form(left: str, right: str) -> None:
    assert value(left) is not None
    assert value(left) == value(right)


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "x", "2x", "(3,4)", "1/0", "sqrt(-1)", "10**10**10", "9^9^9^9", "factorial(99999)", "((((1", "1)"),
        *("exp(exp(exp(9)))", "1 2", "--", r"\frac{1}", "\0", "ln(0)", "asin(2)", "True", "1_000", "0x10", "1e999999"),
    ],
)  # fmt: skip
def test_what_has_no_value(text: str) -> None:
    assert value(text) is None


def test_beyond_a_bound_is_told_apart_from_unreadable() -> None:
    for text in ("10**10**10", "(" * 399, "9" * 5000):
        with pytest.raises(TooLargeError):
            read(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x=7, total 1,234 of Fraction(1, 2)", ["7", "1234", "1/2"]),
        ("17 0.7 x7 7*x 7/2", ["17", "7/10", "7/2"]),
        ("[ 3 -5  7]", ["3", "-5", "7"]),
        ("{1, 2} (3, 4) [5, 6]", ["1", "2", "3", "4", "5", "6"]),
        ("x**2 + 7*x + 12", []),
        ("2 + 7 = 9", ["9", "9"]),
        ("- 5 apples", ["5"]),
        ("33 - done", ["33"]),
        ("the answer is 33.", ["33"]),
        ("70cm 7th a-7 1.2.3", []),
        ("12:30", ["12", "30"]),
        ("90° and 50%", ["90", "50"]),
        ("Point(7, 3)", ["7", "3"]),
        ("1\n-2\n+3", ["1", "-2", "3"]),
        ("True False None nan inf", []),
        ("", []),
    ],
)
def test_values_that_stand_free_in_a_text(text: str, expected: list[str]) -> None:
    assert [item.value.text for item in shown(text)] == expected


def test_spans_name_the_text() -> None:
    text = "roots: -3/2 and sqrt(5)."
    assert [text[item.start : item.end] for item in shown(text)] == ["-3/2", "sqrt(5)"]


@given(st.text(alphabet="0123456789+-*/^!(){}[],.=:\\ \nxsqrtfacpi_e'", max_size=300))
@hypothesis_settings(max_examples=300, deadline=None)
def test_any_text_is_searched_without_an_exception(text: str) -> None:
    value(text)
    ends = [0]
    for item in shown(text):
        assert item.start >= ends[-1]
        assert item.end > item.start
        ends.append(item.end)


@given(st.fractions(max_denominator=10**6), st.fractions(max_denominator=10**6).filter(bool))
def test_arithmetic_agrees_with_fractions(a: Fraction, b: Fraction) -> None:
    table = {f"({a})+({b})": a + b, f"({a})*({b})": a * b, f"({a})/({b})": a / b, f"{a} - {abs(b)}": a - abs(b)}
    for text, expected in table.items():
        found = value(text)
        assert found is not None
        assert found.key == expected


def test_irrational_values_agree_with_sympy() -> None:
    import sympy

    chance = random.Random(3)
    for _ in range(60):
        a, b, c, d = (chance.randint(1, 50) for _ in range(4))
        text = chance.choice(
            [
                f"{a}*sqrt({b})/{c} + {d}",
                f"({a} - sqrt({b}))/{c}",
                f"{a}*pi/{b}",
                f"sqrt({a} + {b}*sqrt({c}))",
                f"{a}**({b}/{c})",
            ]
        )
        found = value(text)
        assert found is not None
        expected = sympy.sympify(text, rational=True)
        assert abs(sympy.Rational(found.rational.numerator, found.rational.denominator) - expected).evalf(
            50
        ) < 10**-30 * max(1, abs(expected.evalf()))


@given(st.text(alphabet="0123456789,.%°=:;[]'\"|#~)}x_e é\tpisqrt~?<≈\x1c", max_size=60))
@hypothesis_settings(max_examples=1_000, deadline=None)
def test_a_line_of_plain_numbers_tells_the_same_by_two_patterns_as_by_its_tokens(line: str) -> None:
    if _tokens.plain_numbers(line) is not None:
        assert list(values._shown_in(line, 3)) == list(values._shown_by_tokens(line, 3))
