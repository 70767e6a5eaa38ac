"""Pieces of mathematics in a text, and where a piece stands free of its neighbors."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from ._arithmetic import FUNCTIONS

STARTS = frozenset({"number", "name", "open", "op"})
"""Kinds of tokens with which an expression can start."""
_GO_ON = frozenset({"name", "open", "op"})
"""Kinds with which one may go on."""
TWO_GROUPS = {"frac", "dfrac", "tfrac", "cfrac", "binom", "dbinom"}


class Token(NamedTuple):
    """A piece of text: `space`, `number`, `name` (known), `word` (unknown), `op`, `open`, `close`, `separator`, `other`."""

    kind: str
    text: str
    start: int
    end: int


_UNNAMED = rf"(?!(?:{'|'.join(sorted([*FUNCTIONS, 'pi'], key=len, reverse=True))})\b)[A-Za-z]++"
_NUMBER = r"\d{1,3}(?:(?:,(?:\\!\s?)?|\{,\})\d{3})+(?!,?\d)(?:\.\d+)?|(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+(?!\w))?"
_WORD = r"[^\W\d](?:\w|\.(?=[^\W\d]))*"
_OPERATION = r"[-+*/^!−×·÷]"
_SEPARATOR = r"[\n,;:=<>\"'$|\[\]≈\#]"
_TOKEN = re.compile(
    r"(?P<space>[^\S\n]+|\\[,!;:\ ]|~|\\(?:left|right|displaystyle|bigl?|bigr|Bigl?|Bigr)(?![A-Za-z]))"
    rf"|(?P<number>{_NUMBER})"
    # Several words of prose, and what stands between them, in one token: most texts have few numbers.
    rf"|(?P<prose>(?=[A-Za-z]{{2}}){_UNNAMED}(?:(?!\.[A-Za-z_])[^\w\n\\π√]+{_UNNAMED}(?!\w|\.[A-Za-z_]))+|"
    rf"{_UNNAMED}(?:[ ]{_UNNAMED})+(?=[ ]))"
    rf"|(?P<word>\\[A-Za-z]+|{_WORD}|√)"
    rf"|(?P<op>\*\*|{_OPERATION})|(?P<open>[({{])|(?P<close>[)}}])|(?P<separator>{_SEPARATOR})|(?P<other>.)",
    re.DOTALL | re.ASCII,
)
_NOT_PLAIN = re.compile(
    # An operation between two words and a bracket in front of one are prose.
    rf"(?<![A-Za-z]){_OPERATION}|{_OPERATION}(?![A-Za-z])|[({{](?!\s*[A-Za-z])|[\\π√]|"
    rf"(?<![A-Za-z_])(?:{'|'.join([*FUNCTIONS, 'pi'])})\b",
    re.ASCII,
)
"""What makes an expression of more than one number."""
_PLAIN = re.compile(
    # Words are skipped in one piece: none of their digits begins a number. The empty group says what stands in front.
    rf"(?:{_WORD}[ ]*)+|((?<![^\s~{_SEPARATOR[1:]}))?({_NUMBER})",
    re.ASCII,
)
_FREE_AFTER = re.compile(rf"[\s~)}}]|{_SEPARATOR}|[.%°?](?!\.?\d)|\Z", re.ASCII)
_OPERATORS = {"−": "-", "×": "*", "·": "*", "÷": "/", "**": "^", "\\cdot": "*", "\\times": "*", "\\div": "/"}


def tokens_of(text: str) -> list[Token]:
    """Every character of `text`, in tokens."""
    tokens = []
    for match in _TOKEN.finditer(text):
        kind, found = match.lastgroup or "other", match.group()
        if kind == "prose":
            kind = "word"
        elif kind == "word" or found == "π":
            kind, found = _name(found)
        elif kind == "op":
            found = _OPERATORS.get(found, found)
        tokens.append(Token(kind, found, *match.span()))
    return tokens


@lru_cache(maxsize=2_000)
def _name(word: str) -> tuple[str, str]:
    """What a word is, an operation, a known name or just a word, and what it is called here."""
    name = word.rsplit(".", 1)[-1].lstrip("\\")
    if word in _OPERATORS:
        return "op", _OPERATORS[word]
    if word in ("π", "√") or (name in FUNCTIONS and word not in ("\\log", "\\int")) or name == "pi":
        return "name", {"π": "pi", "√": "sqrt"}.get(word, name)
    return "word", word


def plain_numbers(line: str) -> list[tuple[str, int, int]] | None:
    """Text and span of the numbers that stand free in a line where nothing else can have a value; None for other lines.

    Most lines are such: they are read by two patterns, and tell the same as their tokens would.
    """
    if _NOT_PLAIN.search(line):
        return None
    numbers = (match for match in _PLAIN.finditer(line) if match.group(1) is not None)
    return [(match.group(), *match.span()) for match in numbers if _FREE_AFTER.match(line, match.end())]


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


def stands_alone(tokens: list[Token], at: int) -> bool:
    """Whether the number at this place can't be the beginning of a longer expression."""
    at += 1
    while at < len(tokens) and tokens[at].kind == "space":
        at += 1
    return at >= len(tokens) or tokens[at].kind not in _GO_ON


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
