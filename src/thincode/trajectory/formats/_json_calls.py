"""Finds calls written as JSON between tags: `<tool_call>{"name": …, "arguments": {…}}</tool_call>`.

An opener opens only in front of a brace: a tag that is named in prose is prose, and so is a call with nothing in it. The closer
stands behind the JSON object, so a tag in one of its strings is part of the program; where the JSON can't be read, the next
closer ends the call, and the last opener before that begins it. Numbers stay text. Linear in the text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

OPEN, CLOSE = "<tool_call>", "</tool_call>"

_OPENER = re.compile(rf"{OPEN}[ \t\r\n]*(?=\{{)")
_CLOSERS = 9
"""Closers that are tried for one call: all but the last may stand in its strings. A bound keeps the work linear."""


@dataclass(frozen=True)
class Found:
    """One call, whatever is in it."""

    start: int
    """First character of its opener."""
    end: int
    """One past its closer, or past the text where it is not closed."""
    body: str
    """What stands between the tags, stripped."""
    value: Any = None
    """The JSON object; None where there is none."""
    fault: str = ""
    """Why `body` is no JSON object, in the words of Python's parser; empty if it is one."""
    closed: bool = True


def found(text: str) -> Iterator[Found]:
    """The calls of a text from left to right; one that is not closed comes last."""
    opener = _OPENER.search(text)
    while opener is not None:
        inside = opener.start() + len(OPEN)
        value, close, fault = _read(text, inside)
        if value is None:
            again = _last_opener(text, inside, len(text) if close < 0 else close)
            if again is not None:
                opener = again
                continue
        if close < 0:
            yield Found(opener.start(), len(text), text[inside:].strip(), closed=False)
            return
        end = close + len(CLOSE)
        yield Found(opener.start(), end, text[inside:close].strip(), value, fault)
        opener = _OPENER.search(text, end)


def _read(text: str, inside: int) -> tuple[Any, int, str]:
    """The JSON object that starts behind an opener (or None), where its closer stands (or -1), what is wrong with it."""
    first, wrong = text.find(CLOSE, inside), ""
    close = first
    for _ in range(_CLOSERS):
        if close < 0:
            break
        try:
            return json.loads(text[inside:close], parse_int=str, parse_float=str), close, ""
        except (ValueError, RecursionError) as error:
            wrong = wrong or str(error)
            if not str(error).startswith("Unterminated string"):
                break
        close = text.find(CLOSE, close + 1)
    return None, first, wrong


def _last_opener(text: str, start: int, end: int) -> re.Match[str] | None:
    """The last opener in text[start:end]."""
    while (at := text.rfind(OPEN, start, end)) >= 0:
        if opener := _OPENER.match(text, at, end):
            return opener
        end = at
    return None


def written(name: str, arguments: dict[str, Any] | str) -> str:
    """A call as models write it; arguments that are text already go in as they stand."""
    inside = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return f'{OPEN}\n{{"name": {json.dumps(name, ensure_ascii=False)}, "arguments": {inside}}}\n{CLOSE}'
