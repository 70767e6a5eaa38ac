"""Formulas become trees of allowed elements; what is no formula stays text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from thincode.report._math import ATTRIBUTES, ELEMENTS, MOST_CHARS, Formulas, mathml


@pytest.mark.parametrize(
    ("text", "formulas"),
    [
        (r"so $x^2$ and \(y\)", ["$x^2$", r"\(y\)"]),
        (r"\[a = b\] then $$c$$", [r"\[a = b\]", "$$c$$"]),
        (r"thus \boxed{\frac{1}{2}}.", [r"\boxed{\frac{1}{2}}"]),
        ("it costs $5 and $7", []),
        (r"\$3 and \$4", []),
        ("a $ b $ c", []),
        ("no formula", []),
        (r"broken $\frac{1}{$ stays", []),
    ],
)
def test_formulas_are_found_and_money_is_none(text: str, formulas: list[str]) -> None:
    assert [text[start:end] for start, end, _ in Formulas().find(text)] == formulas


def test_a_formula_is_converted_once() -> None:
    formulas = Formulas()
    numbers = [number for _, _, number in formulas.find("$x$ $y$ $x$")]
    assert numbers == [0, 1, 0]
    assert formulas.trees == [["math", {"display": "inline"}, [["mi", {}, [name]]]] for name in "xy"]


def nodes(tree: list[Any]) -> Iterator[tuple[str, dict[str, str]]]:
    yield tree[0], tree[1]
    for child in tree[2]:
        if not isinstance(child, str):
            yield from nodes(child)


@pytest.mark.parametrize(
    "latex",
    [
        r"\href{javascript:alert(1)}{x}", r"\style{color:red}{x}", r"\class{a}{b}", r"\color{red}{x}",
        r"\text{<script>alert(1)</script>}", r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", r"a<b \leq \operatorname{lcm}(x)",
        "\x00\x1b", "\u202e", r"\unknown{x}",
    ],
)  # fmt: skip
def test_a_tree_holds_allowed_elements_and_attributes_only(latex: str) -> None:
    tree = mathml(latex)
    assert tree is not None
    for name, attributes in nodes(tree):
        assert name in ELEMENTS
        assert set(attributes) <= ATTRIBUTES


@pytest.mark.parametrize("latex", ["", "x^{", r"\frac" * 3, "{" * 200 + "}" * 200, "x" * (MOST_CHARS + 1)])
def test_what_cannot_be_read_or_is_too_much_is_no_formula(latex: str) -> None:
    assert mathml(latex) is None
