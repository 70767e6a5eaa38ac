"""What is wrong with a recipe, said by place, with the nearest right name."""

from __future__ import annotations

import dataclasses
import difflib
import re
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .errors import RecipeError

Path = tuple[str, ...]
"""Keys and list places that lead to a value."""


class Mistakes(Exception):  # noqa: N818
    """Everything wrong with a value: (path inside it, message) each. Never leaves `settings`: outside it is a RecipeError."""

    def __init__(self, found: Sequence[tuple[Path, str]]) -> None:
        super().__init__(found)
        self.found = found

    def at(self, place: str) -> RecipeError:
        """The same for the user; `place` leads to the value."""
        lines = []
        for path, message in self.found:
            where = ".".join([*([place] if place else []), *path])
            lines.append(f"{where}: {message}" if where else message)
        return RecipeError("\n".join(dict.fromkeys(lines)))


def choices(name: str, known: Sequence[str]) -> str:
    """The nearest name, if one is near, and all of them."""
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"{hint}known: {', '.join(known) or 'none'}"


def explain(cls: Any, raw: Any, problem: Any) -> Iterator[tuple[Path, str]]:
    """One of pydantic's error records, for `raw` validated as `cls`, in our words."""
    absent = problem["type"] in (
        "unexpected_keyword_argument",
        "missing",
        "missing_argument",
        "missing_keyword_only_argument",
    )
    path = _path_in(raw, problem["loc"], absent)
    if problem["type"] == "kind":
        for inner, message in problem["ctx"]["found"]:
            yield (*path, *inner), message
    elif problem["type"] == "unexpected_keyword_argument":
        known = sorted({field.name for c in classes_at(cls, path[:-1]) for field in dataclasses.fields(c)})
        yield path, f"unknown key; {choices(path[-1], known)}"
    elif absent:
        yield path, "missing; this key is required"
    else:
        said = str(problem["msg"])
        for theirs, ours in _WORDS:
            said = said.replace(theirs, ours)
        near = ""
        if problem["type"] in ("enum", "literal_error") and isinstance(problem["input"], str):
            near = "".join(
                f"; did you mean {name!r}?"
                for name in difflib.get_close_matches(problem["input"], re.findall(r"'([^']*)'", said), n=1, cutoff=0.5)
            )
        yield path, f"{said}; found {_short(problem['input'])}{near}"


_WORDS = [
    ("Input should", "should"),
    ("a valid array", "a list"),
    ("an object", "keys and values"),
    ("Value error, ", ""),
]
"""Of pydantic's JSON words, those that a writer of YAML wouldn't use."""


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:80]} … ({len(text)} characters)"


def _path_in(raw: Any, location: Sequence[Any], absent: bool) -> Path:
    """Pydantic's location without the names of union members it puts in: only what leads through `raw`."""
    path = []
    for depth, part in enumerate(location):
        if isinstance(raw, Mapping) and (part in raw or (absent and depth + 1 == len(location))):
            path.append(str(part))
            raw = raw.get(part)
        elif isinstance(raw, list) and isinstance(part, int):
            path.append(str(part))
            raw = raw[part]
    return tuple(path)


def classes_at(cls: Any, path: Sequence[str]) -> list[Any]:
    """The settings classes that may stand at `path` of `cls`."""
    here = _members(cls)
    for part in path:
        hints: list[Any] = []
        for hint in here:
            if dataclasses.is_dataclass(hint):
                hints.append(typing.get_type_hints(hint).get(part))
            hints += typing.get_args(hint)
        here = [inner for hint in hints for inner in _members(hint)]
    return [hint for hint in here if dataclasses.is_dataclass(hint)]


def _members(hint: Any) -> list[Any]:
    """The alternatives of a union, through `Annotated`; anything else is its own only one."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return [inner for argument in typing.get_args(hint) for inner in _members(argument)]
    return [hint]
