r"""LaTeX in text → MathML trees, while the page is built.

A tree is `[element, attributes, children]`, where a child is a tree or text; the page's script makes nodes of it and of
nothing else. Text is hostile: what is not on the lists (links, styles, classes) is dropped, and what latex2mathml can't read,
or what is long, stays as it was written. Currency is no formula: `$` opens only before, and closes only after, something that
is no space, and not before a digit.
"""

from __future__ import annotations

import html
import re
from typing import Any
from xml.etree.ElementTree import Element

Tree = list[Any]
ELEMENTS = frozenset(
    {
        "math", "mrow", "mi", "mn", "mo", "mtext", "mspace", "msup", "msub", "msubsup", "mfrac", "msqrt", "mroot", "mtable",
        "mtr", "mtd", "mover", "munder", "munderover", "mstyle", "menclose", "mpadded", "mphantom", "mmultiscripts",
        "mprescripts", "none",
    }
)  # fmt: skip
ATTRIBUTES = frozenset(
    {
        "display", "mathvariant", "stretchy", "fence", "form", "separator", "linethickness", "columnalign", "lspace", "rspace",
        "accent", "accentunder", "notation", "displaystyle", "scriptlevel", "largeop", "movablelimits", "minsize", "maxsize",
        "width", "height", "depth",
    }
)  # fmt: skip
MOST_CHARS = 600
MOST_DEPTH = 60
MOST_FORMULAS = 8_000
"""Formulas converted for one page; later ones stay LaTeX."""
_FORMULA = re.compile(
    r"\$\$(?P<a>[^$]+?)\$\$|\\\[(?P<b>.+?)\\\]|\\\((?P<c>.+?)\\\)|(?<![\\$\w])\$(?P<d>(?=\S)[^$\n]+?)(?<=\S)\$(?![\d$])"
    r"|(?P<e>\\boxed\{(?:[^{}\n]|\{(?:[^{}\n]|\{[^{}\n]*\})*\})*\})",
    re.DOTALL,
)


class Formulas:
    """The formulas of one page, each converted once."""

    def __init__(self) -> None:
        self.trees: list[Tree] = []
        """By number, as `find` gives them."""
        self._known: dict[tuple[str, bool], int | None] = {}

    def find(self, text: str) -> list[list[int]]:
        """`[start, end, number]` of each formula in a text."""
        found = []
        if "$" in text or "\\" in text:
            for match in _FORMULA.finditer(text):
                display = match.lastgroup in ("a", "b")
                number = self._number(match[str(match.lastgroup)].strip(), display)
                if number is not None:
                    found.append([match.start(), match.end(), number])
        return found

    def _number(self, latex: str, display: bool) -> int | None:
        key = (latex, display)
        if key not in self._known:
            tree = mathml(latex, display=display) if len(self.trees) < MOST_FORMULAS else None
            self._known[key] = None if tree is None else len(self.trees)
            if tree is not None:
                self.trees.append(tree)
        return self._known[key]


def mathml(latex: str, *, display: bool = False) -> Tree | None:
    """A formula as a tree of allowed elements; None where it can't be read, is empty, or is too long or too deep."""
    from latex2mathml.converter import convert_to_element

    if not latex or len(latex) > MOST_CHARS:
        return None
    try:
        return _tree(convert_to_element(latex, display="block" if display else "inline"), 0)
    except Exception:  # latex2mathml raises whatever its parser stumbles over, RecursionError too
        return None


def _tree(node: Element, depth: int) -> Tree:
    if depth > MOST_DEPTH:
        raise ValueError("too deep")
    # An unknown element keeps its text: it may be a formula's only content.
    name = node.tag if node.tag in ELEMENTS else "mrow"
    attributes = {key: value for key, value in node.attrib.items() if key in ATTRIBUTES}
    children: list[Any] = [html.unescape(node.text)] if node.text else []
    for child in node:
        children.append(_tree(child, depth + 1))
        children += [html.unescape(child.tail)] if child.tail else []
    if name == "mrow" and not attributes and len(children) == 1 and depth:
        return children[0] if isinstance(children[0], list) else [name, attributes, children]
    return [name, attributes, children]
