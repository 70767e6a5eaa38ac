"""Pieces of mathematics in a text, and where a piece stands free of its neighbors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ._arithmetic import FUNCTIONS

TWO_GROUPS = {"frac", "dfrac", "tfrac", "cfrac", "binom", "dbinom"}


class Token(NamedTuple):
    """A piece of text: `space`, `number`, `name` (known), `word` (unknown), `op`, `open`, `close`, `separator`, `other`."""

    kind: str
    text: str
    start: int
    end: int


_UNNAMED = rf"(?!(?:{'|'.join(sorted([*FUNCTIONS, 'pi'], key=len, reverse=True))})\b)[A-Za-z]+"
_TOKEN = re.compile(
    # Several words of prose in one token: most texts have few numbers.
    rf"(?P<prose>{_UNNAMED}(?:[ ]{_UNNAMED})+(?=[ ]))|"
    r"""
    (?P<space>[^\S\n]+|\\[,!;:\ ]|~|\\(?:left|right|displaystyle|bigl?|bigr|Bigl?|Bigr)(?![A-Za-z]))
    |(?P<number>\d{1,3}(?:(?:,(?:\\!\s?)?|\{,\})\d{3})+(?!,?\d)(?:\.\d+)?|(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+(?!\w))?)
    |(?P<word>\\[A-Za-z]+|[^\W\d](?:\w|\.(?=[^\W\d]))*|√)
    |(?P<op>\*\*|[-+*/^!−×·÷])
    |(?P<open>[({])|(?P<close>[)}])
    |(?P<separator>[\n,;:=<>"'$|\[\]≈\#])
    |(?P<other>.)
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_OPERATORS = {"−": "-", "×": "*", "·": "*", "÷": "/", "**": "^", "\\cdot": "*", "\\times": "*", "\\div": "/"}


def tokens_of(text: str) -> Iterator[Token]:
    """Every character of `text`, in tokens."""
    for match in _TOKEN.finditer(text):
        kind, found = match.lastgroup or "other", match.group()
        if kind == "prose":
            kind = "word"
        elif kind == "word" or found == "π":
            name = found.rsplit(".", 1)[-1].lstrip("\\")
            if found in _OPERATORS:
                kind, found = "op", _OPERATORS[found]
            elif found in ("π", "√") or (name in FUNCTIONS and found not in ("\\log", "\\int")) or name == "pi":
                kind, found = "name", {"π": "pi", "√": "sqrt"}.get(found, name)
        elif kind == "op":
            found = _OPERATORS.get(found, found)
        yield Token(kind, found, match.start(), match.end())


def can_start(tokens: list[Token], at: int) -> bool:
    """Whether an expression may start here; a sign must touch its number."""
    token = tokens[at]
    if token.kind == "op":
        return token.text in "+-" and at + 1 < len(tokens) and tokens[at + 1].kind in ("number", "name", "open")
    return token.kind in ("number", "name", "open")


def free_before(tokens: list[Token], at: int) -> bool:
    """Whether nothing in front of the token makes it a part of something longer."""
    back = at - 1
    while back >= 0 and tokens[back].kind == "space":
        back -= 1
    if back < 0 or tokens[back].kind in ("open", "separator"):
        return True
    before, apart = tokens[back], back < at - 1
    if before.kind == "op":
        # A dash that opens a line is a bullet.
        opens_line = back == 0 or tokens[back - 1].text == "\n"
        return apart and opens_line and before.text in "-*+"
    return apart


def free_after(tokens: list[Token], at: int) -> bool:
    """Whether an expression that ends just before `at` is not a part of something longer."""
    if at >= len(tokens) or tokens[at].kind in ("close", "separator"):
        return True
    if tokens[at].kind == "other":
        return tokens[at].text in ".%°?" and (at + 1 == len(tokens) or tokens[at + 1].kind != "number")
    if tokens[at].kind != "space":
        return tokens[at].text in ("!", "\\%") or tokens[at].text.startswith("\\text")
    following = at
    while following < len(tokens) and tokens[following].kind == "space":
        following += 1
    if following >= len(tokens) or tokens[following].kind != "op":
        return True
    sign, behind = tokens[following], tokens[following + 1 : following + 3]
    if sign.text not in "-+" or not behind:
        return False
    # `3 -5` is a list as numpy prints it; `33 - done` is prose.
    return behind[0].kind in ("number", "name") or (
        len(behind) == 2 and behind[0].kind == "space" and behind[1].kind == "word" and len(behind[1].text) > 1
    )
