r"""Finds the answer in text a model wrote: `\boxed{…}`, or what stands in an answer's tags."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_ANSWER = re.compile("<answer>((?:(?!</?answer>).)*)</answer>", re.DOTALL)
_SIGN = re.compile(r"(\\+)(boxed\s*\{|[{}])?|[{}]")


def last_boxed(text: str) -> str | None:
    r"""What stands in the last `\boxed{…}` whose braces balance and which isn't empty, stripped; None if there is none.

    Linear in the text. Escaped braces don't count; behind a line break (two backslashes) a brace does.
    """
    found: tuple[int, int] | None = None
    open_at: list[int | None] = []  # for each open brace, where its box's content starts; None if it is no box
    for match in _SIGN.finditer(text):
        sign = match[2] if match[1] else match[0]
        if sign is None or (sign in ("{", "}") and match[1] and len(match[1]) % 2):
            continue
        if sign == "{":
            open_at.append(None)
        elif sign == "}":
            start, end = open_at.pop() if open_at else None, match.end() - 1
            if start is not None and (found is None or start > found[0]) and text[start:end].strip():
                found = (start, end)
        else:
            open_at.append(match.end())
    return None if found is None else text[found[0] : found[1]].strip()


def last_boxed_of(texts: Iterable[str]) -> str | None:
    """`last_boxed` of the last text that has one; a box never reaches from one text into the next."""
    found = (last_boxed(text) for text in reversed(list(texts)))
    return next((answer for answer in found if answer is not None), None)


def tagged_answer(texts: Sequence[str]) -> str | None:
    """The box in the last `<answer>` that was closed, or all of it; without one, the last box there is."""
    for text in reversed(texts):
        if found := _ANSWER.findall(text):
            return last_boxed(found[-1]) or found[-1].strip() or None
    return last_boxed_of(texts)
