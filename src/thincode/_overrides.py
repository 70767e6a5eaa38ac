"""`key.path=value` on a recipe, and where each resolved value came from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ._yaml import read_yaml
from .errors import RecipeError


def apply_overrides(raw: Mapping[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """A copy of `raw` with each `key.path=value` set; the value is read as YAML; `key.0.x` reaches into a list.

    Where a recipe says `engine: local`, `engine.model=x` makes it `{kind: local, model: x}`.

    Raises:
        RecipeError: every override that is not `path=value` or leads through something that holds no keys, one a line.
    """
    result: dict[str, Any] = _copy(raw)
    mistakes = []
    for override in overrides:
        try:
            path, value = _split(override)
            _set(result, path.split("."), value, override)
        except RecipeError as error:
            mistakes.append(str(error))
    if mistakes:
        raise RecipeError("\n".join(mistakes))
    return result


def _split(override: str) -> tuple[str, Any]:
    path, equals, text = override.partition("=")
    if not equals or not re.fullmatch(r"[\w-]+(\.[\w-]+)*", path):
        raise RecipeError(f"override {override!r}: write key.path=value, for example sft.seed=2")
    if not text.strip():
        raise RecipeError(f"override {override!r}: no value; write {path}=null for none, {path}='\"\"' for empty text")
    return path, read_yaml(text, place=f"override {path}")


def _copy(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _copy(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_copy(item) for item in value]
    return value


def _set(target: Any, path: list[str], value: Any, override: str) -> None:
    for depth, part in enumerate(path):
        key: Any = part
        if isinstance(target, list):
            if not part.isdecimal() or int(part) >= len(target):
                where = ".".join(path[:depth])
                raise RecipeError(
                    f"override {override!r}: {part!r} is no place in {where}, which has {len(target)} items, from 0"
                )
            key = int(part)
        if depth + 1 == len(path):
            target[key] = value
            return
        inner = target[key] if isinstance(target, list) else target.get(key)
        if isinstance(inner, str):
            inner = target[key] = {"kind": inner}
        elif inner is None:
            inner = target[key] = {}
        elif not isinstance(inner, (dict, list)):
            raise RecipeError(f"override {override!r}: {'.'.join(path[: depth + 1])} is {inner!r} and holds no keys")
        target = inner


def leaves(value: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The dotted path and value of every leaf of nested mappings; a list of scalars is one leaf."""
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from leaves(item, f"{prefix}.{key}" if prefix else str(key))
    elif isinstance(value, list) and any(isinstance(item, (Mapping, list)) for item in value):
        for index, item in enumerate(value):
            yield from leaves(item, f"{prefix}.{index}" if prefix else str(index))
    else:
        yield prefix, value


_ABSENT: Any = object()


def origins(resolved: Any, recipe: Any, overrides: Sequence[str]) -> Iterator[tuple[str, Any, str]]:
    """For `--plan`: the dotted path and value of every resolved leaf, and `command line`, `recipe` or `default`.

    Args:
        resolved: all settings, as `dump` gives them.
        recipe: what the file says, before overrides.
        overrides: as given to `apply_overrides`.
    """
    given = apply_overrides(recipe, overrides)
    named = [override.partition("=")[0] for override in overrides]
    for path, value in leaves(resolved):
        written = _written(given, path.split("."))
        if written is None:
            yield path, value, "default"
        elif any(written == name or written.startswith(f"{name}.") for name in named):
            yield path, value, "command line"
        else:
            yield path, value, "recipe"


def _written(given: Any, path: list[str]) -> str | None:
    """Where `given` says what `path` resolves to: mostly `path` itself; a kind may be written without its `kind:`."""
    for depth, part in enumerate(path):
        if isinstance(given, str) and path[depth:] == ["kind"]:
            return ".".join(path[:depth])
        if isinstance(given, list) and part.isdecimal() and int(part) < len(given):
            given = given[int(part)]
        elif isinstance(given, Mapping):
            given = next((item for key, item in given.items() if str(key) == part), _ABSENT)
        else:
            return None
        if given is _ABSENT:
            return None
    return ".".join(path)
