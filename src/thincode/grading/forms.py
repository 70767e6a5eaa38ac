r"""The shape of an answer: one value, several, a tuple, an interval, a union, a matrix. No mathematics here, only text.

NORMALIZER is the version of these rules; a change that can turn a grade raises it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

NORMALIZER = 1
LIMIT_CHARS = 4_000
"""Longer answers are not read; they are right only if they are the gold text itself."""

_SPACES = re.compile(
    r"(?<!\\)\\[,!;:> ]|\\q?quad(?![A-Za-z])|~|[\u00a0\u2009\u202f\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
_SYNONYMS = [
    (re.compile(r"\\(?:left|right|displaystyle|bigl|bigr|Bigl|Bigr)(?![A-Za-z])\.?"), ""),
    (re.compile(r"\\[dtc]frac(?![A-Za-z])"), r"\\frac"),
    (re.compile(r"\\(?:mbox|textrm|textnormal|textup|mathrm|mathbf|textbf|textit|text|operatorname)\s*\{"), r"\\text{"),
    (re.compile(r"\\(?:lbrace|\{)"), r"\\{"),
    (re.compile(r"\\(?:rbrace|\})"), r"\\}"),
    (re.compile(r"[−–]"), "-"),
    (re.compile(r"(?<=\d)\{,\}(?=\d{3})|(?<=\d),\\!\s*(?=\d{3})"), ","),
]
_BRACED = re.compile(r"([_^])\{(\w)\}")
_BLANKS = re.compile(r"\s+")
_DRESSED = re.compile(r"[^\x01-\x7d]|\\|\{,")
"""Without any of these a text has no space of LaTeX and no synonym."""
_WRAPPERS = (
    ("$$", "$$"),
    ("$", "$"),
    ("\\(", "\\)"),
    ("\\[", "\\]"),
    ("**", "**"),
    ("\\boxed{", "}"),
    ("\\text{", "}"),
    ("{", "}"),
)
_THOUSANDS = re.compile(r"[-+]?(?:\\?\$)?\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_UNITS = (
    r"degrees?|radians?|percent|units?|dollars?|cents?|inch(?:es)?|feet|foot|ft|yards?|miles?|mph|[ckm]?m|meters?|"
    r"kilometers?|centimeters?|grams?|kg|pounds?|liters?|seconds?|minutes?|hours?|days?|weeks?|months?|years?|"
    r"square|cubic|people|students?|ways?|points?|sq"
)
_TRAILING_UNIT = re.compile(rf"(?<=[\d)}}\]])\s*(?:(?:{_UNITS})\b\s*)+(?:\^\{{?\d\}}?)?$")
_TRAILING_TEXT = re.compile(r"(?<=\S)\s*\\text\{[^{}]*\}\s*(?:\^\{?\d\}?)?$")
_DEGREES = re.compile(r"\^\s*(?:\{\s*\\circ\s*\}|\\circ)|°|\\degree(?![A-Za-z])")
_PERCENT = re.compile(r"\s*\\?%$")
_WORDS = re.compile(r"\s*(?:\\text\{\s*(?:and|or)\s*\}|(?<![A-Za-z\\])(?:and|or)(?![A-Za-z]))\s*")
_MATRIX = re.compile(r"\\begin\{[pbBv]?matrix\}(.*)\\end\{[pbBv]?matrix\}", re.DOTALL)
_OPENERS, _CLOSERS = "([{", ")]}"


@dataclass(frozen=True)
class Form:
    """An answer split into its parts."""

    kind: str
    """`value`, `several`, `union`, a pair of brackets such as `(]`, or `matrix 2x3`."""
    parts: tuple[str, ...]

    @property
    def is_scalar(self) -> bool:
        """One value and no structure around it."""
        return self.kind == "value"


def undress(text: str) -> str:
    r"""`text` without what only dresses it: `$…$`, `\text{…}`, `\boxed{…}`, spaces of LaTeX, a final period."""
    if _DRESSED.search(text):
        text = _SPACES.sub(lambda found: found.group() if found.group() == "\\!" else " ", text.replace("\0", " "))
        for pattern, plain in _SYNONYMS:
            text = pattern.sub(plain, text)
        text = text.replace("\\!", "")
    text = _BLANKS.sub(" ", text)
    for _ in range(8):
        before = text
        text = text.strip().rstrip(".,;:").strip()
        if text.endswith("\\") and before != text:  # `\,` at the end
            text = text[:-1]
        for start, end in _WRAPPERS:
            if (
                len(text) > len(start) + len(end)
                and text.startswith(start)
                and text.endswith(end)
                and _wraps(text, start, end)
            ):
                text = text[len(start) : -len(end)]
        if text == before:
            break
    return text


def _wraps(text: str, start: str, end: str) -> bool:
    """Whether the opener at the front is closed by the closer at the back."""
    if end != "}":
        inside = text[len(start) : -len(end)]
        return end not in inside.replace("\\$", "") and not inside.endswith("\\")
    if text.endswith("\\}"):
        return False
    depth = 0
    for at, sign in enumerate(text):
        if sign in "{}" and (at == 0 or text[at - 1] != "\\"):
            depth += 1 if sign == "{" else -1
            if depth == 0:
                return at == len(text) - 1
    return False


def form(text: str) -> Form:
    """The shape of an undressed answer, with parts undressed too."""
    text = re.sub(r"^\\?[A-Za-z]\s*\\in(?![A-Za-z])\s*", "", text)
    matrix = _MATRIX.fullmatch(text)
    if matrix:
        rows = [row.split("&") for row in re.split(r"\\\\(?:\[\w+\])?", matrix.group(1)) if row.strip()]
        return Form(
            f"matrix {len(rows)}x{max(map(len, rows), default=0)}", tuple(undress(c) for row in rows for c in row)
        )
    union = split(text, ("\\cup",))
    if len(union) > 1:
        return Form("union", union)
    if len(text) > 4 and text.startswith("\\{") and text.endswith("\\}"):
        return _several(split(text[2:-2], (",", ";")))
    if text[:1] in ("(", "[") and text[-1:] in (")", "]") and _closes_at_end(text):
        parts = split(text[1:-1], (",", ";"))
        if len(parts) > 1:
            return Form(text[0] + text[-1], parts)
    spoken = [part for part in _WORDS.split(text) if part.strip(" ,;")] if len(text) < 1000 else [text]
    several = tuple(part for words in spoken for part in split(words, (",", ";")))
    return _several(several) if several else Form("value", (text,))


def _several(parts: tuple[str, ...]) -> Form:
    both: list[str] = []
    for part in parts:
        if part.count("\\pm") + part.count("±") == 1:
            both += [re.sub(r"\\pm(?![A-Za-z])|±", sign, part) for sign in "+-"]
        else:
            both.append(part)
    return Form("several" if len(both) > 1 else "value", tuple(both))


def _closes_at_end(text: str) -> bool:
    depth = 0
    for at, sign in enumerate(text):
        depth += (sign in _OPENERS) - (sign in _CLOSERS)
        if depth == 0:
            return at == len(text) - 1
    return False


def split(text: str, separators: tuple[str, ...]) -> tuple[str, ...]:
    """Parts between separators that stand in no bracket; digits grouped by thousands stay together."""
    if not any(separator in text for separator in separators):
        return (undress(text),) if text.strip() else ()
    if _THOUSANDS.fullmatch(text.strip()):
        return (undress(text),)
    parts, depth, start, at = [], 0, 0, 0
    while at < len(text):
        if text[at] in _OPENERS:
            depth += 1
        elif text[at] in _CLOSERS:
            depth = max(0, depth - 1)
        elif depth == 0:
            found = next((s for s in separators if text.startswith(s, at)), None)
            if found is not None:
                parts.append(text[start:at])
                at += len(found)
                start = at
                continue
        at += 1
    parts.append(text[start:])
    return tuple(undress(part) for part in parts if part.strip())


@dataclass(frozen=True)
class Part:
    """One part of an answer, ready to compare."""

    text: str
    """Without units, degree and currency signs."""
    percent: bool = False


def part(text: str) -> Part:
    """Take what does not change the number off one part."""
    text = _DEGREES.sub("", text).strip()
    percent = _PERCENT.search(text) is not None or text.endswith(("percent", "\\text{percent}"))
    text = _PERCENT.sub("", text)
    text = re.sub(r"^\\?[$£€]\s*|^(-)\\?[$£€]\s*", r"\1", text)
    if not text.startswith("\\text{") or not text.endswith("}"):
        text = _TRAILING_TEXT.sub("", text)
        text = _TRAILING_UNIT.sub("", text)
    return Part(undress(text), percent)


def words(text: str) -> str | None:
    """What an answer in words says, in one case and without brackets; None if it is not words."""
    plain = re.sub(r"\\text\{([^{}]*)\}", r"\1", text).strip().strip("()").strip()
    return " ".join(plain.casefold().split()) if re.fullmatch(r"[^\W\d_]+(?:[ '-][^\W\d_]+)*", plain) else None


def squeezed(text: str) -> str:
    """For comparison by letters: no spaces, no braces around one character."""
    text = "".join(text.split())
    return (_BRACED.sub(r"\1\2", text) if "{" in text else text).replace("**", "^")
