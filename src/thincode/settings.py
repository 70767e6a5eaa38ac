"""Typed recipes: read YAML, apply `a.b=c`, name every mistake, write the resolved file.

Settings are frozen dataclasses made by `@settings`; they stand beside the code they set.

    @settings
    class Settings:
        '''What a filter of few blocks may be told.'''

        n: PositiveInt = 3

A field that names a kind is written `Annotated[Kind, In("thincode.grading.filters")]`, and in a recipe either
`filter: correct` or `filter: {kind: min_blocks, n: 3}`; where the field has a default, its kind holds until another is
named: `filter: {n: 3}`. A kind is a file: `correct` is `thincode/grading/filters/correct.py`, `my_lab.my_filter` is
that module. A kind's module has a `Settings` class made by `@settings`.

What one field's type can't say, a method says: `def check(self) -> Iterator[tuple[str, str]]` yields (key, what is wrong
with it) and runs once all types are right.

Values are validated strictly: text is no number, 1 is not true. Lists become tuples, names become enums, text becomes paths.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
import json
import pkgutil
import re
import types
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar, cast, dataclass_transform

from ._mistakes import Mistakes, choices, classes_at, explain
from ._overrides import apply_overrides, leaves, origins
from ._yaml import read_yaml, write_yaml
from .errors import RecipeError

__all__ = [
    "In",
    "Kind",
    "NonNegativeFloat",
    "NonNegativeInt",
    "PositiveFloat",
    "PositiveInt",
    "Resolved",
    "Share",
    "Within",
    "apply_overrides",
    "dump",
    "kind",
    "kinds",
    "leaves",
    "load",
    "origins",
    "parse",
    "read_yaml",
    "recipe_text",
    "recipes",
    "settings",
    "write_yaml",
]

T = TypeVar("T")


class Within:
    """Marks a number with its bounds, in pydantic's words: `Within(gt=0, le=1)`.

    `annotated_types` has such marks too, and takes longer to import than all of `thincode.interpreter`.
    """

    def __init__(self, **bounds: float) -> None:
        self.bounds = bounds

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        return {**handler(source), **self.bounds}


PositiveInt = Annotated[int, Within(ge=1)]
NonNegativeInt = Annotated[int, Within(ge=0)]
PositiveFloat = Annotated[float, Within(gt=0)]
NonNegativeFloat = Annotated[float, Within(ge=0)]
Share = Annotated[float, Within(ge=0, le=1)]
"""From 0 to 1, both included."""


@dataclass_transform(kw_only_default=True, frozen_default=True)
def settings(cls: type[T]) -> type[T]:
    """A frozen keyword-only dataclass that pydantic validates and that refuses unknown keys."""
    cls.__pydantic_config__ = {"extra": "forbid"}  # type: ignore[attr-defined]
    return dataclass(frozen=True, kw_only=True)(cls)


@dataclass(frozen=True)
class Kind:
    """One plug chosen by a recipe: the module `name` of a plug room, and its settings."""

    room: str
    name: str
    settings: Any

    @property
    def module(self) -> types.ModuleType:
        """The file that implements the kind."""
        return importlib.import_module(_module_name(self.room, self.name))


def kind(room: str, name: str, **values: Any) -> Kind:
    """A kind named in code: `kind("thincode.grading.filters", "min_blocks", n=3)`.

    Raises:
        RecipeError: no such kind, or wrong settings for it.
    """
    try:
        return _kind_from(room, {"kind": name, **values})
    except Mistakes as mistakes:
        raise mistakes.at(name) from None


@dataclass(frozen=True)
class In:
    """Marks a `Kind` field with the plug room its value names a file of."""

    room: str

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(self._validate)

    def _validate(self, raw: Any) -> Kind:
        from pydantic_core import PydanticCustomError

        try:
            return _kind_from(self.room, raw)
        except Mistakes as mistakes:
            raise PydanticCustomError("kind", "wrong kind", {"found": mistakes.found}) from None


def kinds(room: str) -> list[str]:
    """The names of the kinds that ship in a plug room: its public modules."""
    package = importlib.import_module(room)
    return sorted(m.name for m in pkgutil.iter_modules(package.__path__) if not m.name.startswith("_"))


def parse(cls: type[T], raw: Mapping[str, Any], *, place: str = "") -> T:
    """Validate `raw` against a settings class.

    Args:
        cls: made by `@settings`.
        raw: nested mappings as YAML gives them; settings and kinds made in code may stand in it.
        place: dotted path of `raw` inside the recipe, for messages.

    Raises:
        RecipeError: every mistake found, one a line, each with its dotted place and, for unknown keys and kinds, the
            nearest name. What `check` methods say is heard once every type is right.
    """
    try:
        return _parse(cls, raw)
    except Mistakes as mistakes:
        raise mistakes.at(place) from None


def dump(value: Any) -> Any:
    """Settings as plain mappings that `parse` reads back to an equal value."""
    if isinstance(value, Kind):
        return {"kind": value.name, **dump(value.settings)}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: dump(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): dump(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [dump(item) for item in value]
    if isinstance(value, (str, Path)):
        return str(value)  # enums become their text
    return value


# --- recipes --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Resolved(Generic[T]):
    """A recipe with every value filled in."""

    value: T
    resolved: dict[str, Any]
    """`dump(value)`: what `recipe.resolved.yaml` holds."""
    origins: tuple[tuple[str, Any, str], ...]
    """Dotted path, value, and `command line`, `recipe` or `default`."""
    place: str
    """The file, or the packaged recipe's name."""


def recipes() -> list[str]:
    """The names of the recipes that ship with the package, such as `tiny/micro`."""
    found = []
    root = _recipes_root()
    folders = [(root, "")]
    while folders:
        folder, prefix = folders.pop()
        for item in folder.iterdir() if folder.is_dir() else ():
            if item.is_dir():
                folders.append((item, f"{prefix}{item.name}/"))
            elif item.name.endswith(".yaml") and item.name != "published.yaml":
                found.append(prefix + item.name.removesuffix(".yaml"))
    return sorted(found)


def recipe_text(name: str) -> str:
    """The YAML text of a packaged recipe.

    Raises:
        RecipeError: there is none of this name; the nearest one is named.
    """
    if name not in recipes():
        raise RecipeError(
            f"no recipe {name!r}, neither a file nor one that ships with thincode; {choices(name, recipes())}"
        )
    return str(_recipes_root().joinpath(f"{name}.yaml").read_text(encoding="utf-8"))


def load(cls: type[T], path_or_name: str | Path, overrides: Sequence[str] = ()) -> Resolved[T]:
    """Read a recipe, apply overrides, fill in defaults.

    Args:
        cls: the recipe's class, made by `@settings`.
        path_or_name: a YAML file, or the name of a packaged recipe.
        overrides: `key.path=value` each.

    Raises:
        RecipeError: the file is missing, is no YAML, or says something wrong; every mistake is named, one a line.
    """
    path = Path(path_or_name)
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise RecipeError(f"{path}: not UTF-8 text ({error.reason} at byte {error.start})") from None
    except OSError:
        text = recipe_text(str(path_or_name).removesuffix(".yaml"))
    raw = read_yaml(text, place=str(path_or_name))
    if not isinstance(raw, Mapping):
        what = "is empty" if raw is None else f"holds {raw!r}"
        raise RecipeError(f"{path_or_name}: expected keys and values, but the file {what}")
    value = parse(cls, apply_overrides(raw, overrides))
    resolved = dump(value)
    return Resolved(value, resolved, tuple(origins(resolved, raw, overrides)), str(path_or_name))


def _recipes_root() -> Any:
    from importlib.resources import files

    return files(__package__) / "recipes"


# --- validation --------------------------------------------------------------------------------------------------


def _module_name(room: str, name: str) -> str:
    return name if "." in name else f"{room}.{name}"


def _kind_from(room: str, raw: Any) -> Kind:
    raw = {"kind": raw} if isinstance(raw, str) else dump(raw)
    if not isinstance(raw, Mapping) or not isinstance(raw.get("kind"), str):
        known = ", ".join(kinds(room))
        raise Mistakes([((), f"{raw!r} names no kind; write a name of {room} or {{kind: NAME, …}}; known: {known}")])
    name = raw["kind"]
    target = _module_name(room, name)
    if not re.fullmatch(r"\w+(\.\w+)*", name) or name.startswith("_"):
        raise Mistakes([((), f"unknown kind {name!r}; {choices(name, kinds(room))}")])
    try:
        module = importlib.import_module(target)
    except ModuleNotFoundError as error:
        if error.name is None or not (target == error.name or target.startswith(f"{error.name}.")):
            raise  # the kind exists, and misses something itself
        outside = f"no module {target!r} on Python's path; " if "." in name else ""
        raise Mistakes([((), f"unknown kind {name!r}; {outside}{choices(name, kinds(room))}")]) from None
    if not hasattr(module, "Settings"):
        raise Mistakes([((), f"{target} is no kind of {room}: it has no Settings")])
    return Kind(room, name, _parse(module.Settings, {key: value for key, value in raw.items() if key != "kind"}))


@functools.cache
def _adapter(cls: Any) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(cls)


def _parse(cls: type[T], raw: Any) -> T:
    raw = dump(raw)
    if not isinstance(raw, Mapping):
        raise Mistakes([((), f"expected keys and values, found {raw!r}")])
    if not raw:
        with contextlib.suppress(TypeError):  # a key has no default: what is missing is said below
            return _checked(cls())
    from pydantic import ValidationError

    raw = _with_usual_kinds(cls, raw)
    try:
        # By way of JSON because pydantic's strict mode there knows tuples, enums and paths, and still takes "5" for text.
        value: T = _adapter(cast("Hashable", cls)).validate_json(json.dumps(raw), strict=True)
    except ValidationError as error:
        raise Mistakes([found for problem in error.errors() for found in explain(cls, raw, problem)]) from None
    return _checked(value)


def _checked(value: T) -> T:
    wrong = list(_checks(value, ()))
    if wrong:
        raise Mistakes(wrong)
    return value


def _with_usual_kinds(cls: Any, raw: Mapping[str, Any]) -> dict[str, Any]:
    """`raw` with the default's kind named where it sets keys of a kind and says of none."""
    result = dict(raw)
    for field in dataclasses.fields(cls):
        value = raw.get(field.name)
        if not isinstance(value, Mapping) or "kind" in value:
            continue
        make = field.default_factory
        usual = field.default if make is dataclasses.MISSING else make()
        if isinstance(usual, Kind):
            result[field.name] = {"kind": usual.name, **value}
        else:
            for inner in classes_at(cls, (field.name,))[:1]:
                result[field.name] = _with_usual_kinds(inner, value)
    return result


def _checks(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """What the `check` methods in `value` say. Those of kinds have spoken when the kind was made."""
    if isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from _checks(item, (*path, str(index)))
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _checks(item, (*path, str(key)))
    elif dataclasses.is_dataclass(value) and not isinstance(value, Kind):
        for field in dataclasses.fields(value):
            yield from _checks(getattr(value, field.name), (*path, field.name))
        check = getattr(type(value), "check", None)
        if callable(check):
            for key, message in check(value):
                yield (*path, *(key.split(".") if key else ())), message
