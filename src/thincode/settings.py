"""Typed recipes: read YAML, apply `a.b=c`, name every mistake, write the resolved file.

Settings are frozen dataclasses made by `@settings`; they stand beside the code they set. A field that names a kind is
written `Annotated[Kind, In("thincode.grading.filters")]`, and in a recipe either `filter: correct` or
`filter: {kind: min_blocks, n: 3}`. A kind is a file: `correct` is `thincode/grading/filters/correct.py`, `my_lab.my_filter`
is that module. A kind's module has a `Settings` class made by `@settings`.
"""

from __future__ import annotations

import dataclasses
import difflib
import importlib
import pkgutil
import re
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, dataclass_transform

from .errors import RecipeError

T = TypeVar("T")


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
    return _kind_from(room, {"kind": name, **values}, place=name)


@dataclass(frozen=True)
class In:
    """Marks a `Kind` field with the plug room its value names a file of."""

    room: str

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(self._validate)

    def _validate(self, raw: Any) -> Kind:
        if isinstance(raw, Kind):
            return raw
        try:
            return _kind_from(self.room, raw, place="")
        except RecipeError as error:
            from pydantic_core import PydanticCustomError

            # Braces are template syntax in pydantic's messages.
            raise PydanticCustomError("kind", "{reason}", {"reason": str(error)}) from None


def kinds(room: str) -> list[str]:
    """The names of the kinds that ship in a plug room: its public modules."""
    package = importlib.import_module(room)
    return sorted(m.name for m in pkgutil.iter_modules(package.__path__) if not m.name.startswith("_"))


def _module_name(room: str, name: str) -> str:
    return name if "." in name else f"{room}.{name}"


def _kind_from(room: str, raw: Any, *, place: str) -> Kind:
    if isinstance(raw, str):
        raw = {"kind": raw}
    if not isinstance(raw, Mapping) or not isinstance(raw.get("kind"), str):
        raise RecipeError(
            f"{_at(place)}{raw!r} names no kind; write a name of {room} ({', '.join(kinds(room))}) or {{kind: NAME, …}}"
        )
    name = raw["kind"]
    target = _module_name(room, name)
    if not re.fullmatch(r"\w+(\.\w+)*", name) or name.startswith("_"):
        raise RecipeError(f"{_at(place)}unknown kind {name!r}; {_choices(name, kinds(room))}")
    try:
        module = importlib.import_module(target)
    except ModuleNotFoundError as error:
        if error.name is None or not (target == error.name or target.startswith(f"{error.name}.")):
            raise
        raise RecipeError(f"{_at(place)}unknown kind {name!r}; {_choices(name, kinds(room))}") from None
    if not hasattr(module, "Settings"):
        raise RecipeError(f"{_at(place)}{target} is no kind of {room}: it has no Settings")
    values = {key: value for key, value in raw.items() if key != "kind"}
    return Kind(room, name, parse(module.Settings, values, place=place))


def _choices(name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"{hint}known: {', '.join(known)}"


def _at(place: str) -> str:
    return f"{place}: " if place else ""


def parse(cls: type[T], raw: Mapping[str, Any], *, place: str = "") -> T:
    """Validate `raw` against a settings class.

    Args:
        cls: made by `@settings`.
        raw: nested mappings as YAML gives them.
        place: dotted path of `raw` inside the recipe, for messages.

    Raises:
        RecipeError: every mistake found, one a line, each with its dotted place and, for unknown keys, the nearest name.
    """
    from pydantic import TypeAdapter, ValidationError

    if not isinstance(raw, Mapping):
        raise RecipeError(f"{_at(place)}expected keys and values, found {raw!r}")
    try:
        return TypeAdapter(cls).validate_python(dict(raw))
    except ValidationError as error:
        raise RecipeError("\n".join(_explain(cls, problem, place) for problem in error.errors())) from None


def _explain(cls: type[Any], problem: Any, place: str) -> str:
    location = [str(part) for part in problem["loc"]]
    where = ".".join([*([place] if place else []), *location])
    if problem["type"] in ("unexpected_keyword_argument", "extra_forbidden"):
        known = [field.name for field in _fields_at(cls, location[:-1])]
        return f"{where}: unknown key; {_choices(location[-1], known)}"
    if problem["type"] == "missing":
        return f"{where}: missing; this key is required"
    if problem["type"] == "kind":
        lines = str(problem["msg"]).splitlines()
        return "\n".join(f"{where}.{line}" if re.match(r"[\w.]+: ", line) else f"{where}: {line}" for line in lines)
    return f"{where}: {problem['msg']}; found {problem['input']!r}"


def _fields_at(cls: Any, location: Sequence[str]) -> tuple[dataclasses.Field[Any], ...]:
    for part in location:
        if dataclasses.is_dataclass(cls):
            cls = typing.get_type_hints(cls).get(part, cls)
        candidates = [cls, *typing.get_args(cls)]
        found = [c for c in candidates if dataclasses.is_dataclass(c)]
        nested = [c for a in candidates for c in typing.get_args(a) if dataclasses.is_dataclass(c)]
        cls = (found or nested or [cls])[0]
    return dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else ()


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
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, str):
        return str(value)  # enums become their text
    return value


# --- reading --------------------------------------------------------------------------------------------------------


def _loader() -> Any:
    """YAML 1.2 scalars: `1e-5` is a number, `off` and `yes` are text."""
    import yaml

    class Loader(yaml.SafeLoader):
        pass

    Loader.yaml_implicit_resolvers = {
        first: [
            (tag, pattern)
            for tag, pattern in found
            if tag not in ("tag:yaml.org,2002:bool", "tag:yaml.org,2002:float", "tag:yaml.org,2002:int")
        ]
        for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^(?:true|false|True|False)$"), list("tfTF"))
    Loader.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(r"^[-+]?[0-9][0-9_]*$"), list("-+0123456789"))
    Loader.add_implicit_resolver(
        "tag:yaml.org,2002:float",
        re.compile(
            r"^[-+]?(?:[0-9][0-9_]*\.[0-9_]*(?:[eE][-+]?[0-9]+)?|[0-9][0-9_]*[eE][-+]?[0-9]+|\.[0-9]+(?:[eE][-+]?[0-9]+)?|\.(?:inf|nan))$"
        ),
        list("-+.0123456789"),
    )

    def construct_int(loader: Any, node: Any) -> int:
        return int(loader.construct_scalar(node).replace("_", ""), 10)

    def construct_float(loader: Any, node: Any) -> float:
        return float(loader.construct_scalar(node).replace("_", "").replace(".inf", "inf").replace(".nan", "nan"))

    def construct_mapping(loader: Any, node: Any, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = loader.construct_object(key_node, deep=True)
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"key {key!r} stands twice", key_node.start_mark)
            seen.add(key)
        found: dict[Any, Any] = yaml.SafeLoader.construct_mapping(loader, node, deep=True)
        return found

    Loader.add_constructor("tag:yaml.org,2002:int", construct_int)
    Loader.add_constructor("tag:yaml.org,2002:float", construct_float)
    Loader.add_constructor("tag:yaml.org,2002:map", construct_mapping)
    return Loader


def read_yaml(text: str, *, place: str) -> Any:
    """Parse YAML text; see `_loader` for the scalars.

    Raises:
        RecipeError: not YAML; the message has file, line and column.
    """
    import yaml

    try:
        return yaml.load(text, Loader=_loader())
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{place}:{mark.line + 1}:{mark.column + 1}" if mark else place
        raise RecipeError(f"{where}: not YAML: {getattr(error, 'problem', error)}") from None


def write_yaml(value: Any) -> str:
    """Plain mappings as YAML that `read_yaml` reads back to the same value."""
    import yaml

    class Dumper(yaml.SafeDumper):
        pass

    def represent_str(dumper: Any, text: str) -> Any:
        # Quote what our reader, or a YAML 1.1 reader, would take for something else than text.
        plain = re.fullmatch(r"[A-Za-z_/][\w ./<>=-]*", text) and isinstance(read_yaml(text, place=""), str)
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if plain else '"')

    def represent_float(dumper: Any, number: float) -> Any:
        text = repr(number).replace("inf", ".inf").replace("nan", ".nan")
        return dumper.represent_scalar("tag:yaml.org,2002:float", text)

    Dumper.add_representer(str, represent_str)
    Dumper.add_representer(float, represent_float)
    return str(yaml.dump(value, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=120))


def apply_overrides(raw: Mapping[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """A copy of `raw` with each `key.path=value` set; the value is read as YAML; `key.0.x` reaches into a list.

    Raises:
        RecipeError: an override is not `path=value`, or its path leads through something that holds no keys.
    """
    result: dict[str, Any] = _copy(raw)
    for override in overrides:
        path, equals, text = override.partition("=")
        if not equals or not re.fullmatch(r"\w+(\.\w+)*", path):
            raise RecipeError(f"override {override!r}: write key.path=value, for example sft.seed=2")
        _set(result, path.split("."), read_yaml(text, place=f"override {path}"), override)
    return result


def _copy(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _copy(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_copy(item) for item in value]
    return value


def _set(target: Any, path: list[str], value: Any, override: str) -> None:
    *way, last = path
    for depth, part in enumerate(way):
        if isinstance(target, list):
            target = target[_index(target, part, override)]
            continue
        inner = target.get(part)
        if isinstance(inner, str) and depth + 1 < len(path):
            inner = target[part] = {"kind": inner}  # `engine: local` grows into {kind: local, …}
        elif inner is None:
            inner = target[part] = {}
        elif not isinstance(inner, (dict, list)):
            raise RecipeError(f"override {override!r}: {'.'.join(path[: depth + 1])} is {inner!r} and holds no keys")
        target = inner
    if isinstance(target, list):
        target[_index(target, last, override)] = value
    else:
        target[last] = value


def _index(items: list[Any], part: str, override: str) -> int:
    if not part.isdigit() or int(part) >= len(items):
        raise RecipeError(f"override {override!r}: {part!r} is no place in a list of {len(items)}")
    return int(part)


def leaves(value: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The dotted path and value of every leaf of nested mappings; lists of scalars are leaves."""
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from leaves(item, f"{prefix}.{key}" if prefix else str(key))
    elif isinstance(value, list) and any(isinstance(item, (Mapping, list)) for item in value):
        for index, item in enumerate(value):
            yield from leaves(item, f"{prefix}.{index}")
    else:
        yield prefix, value


def origins(resolved: Any, recipe: Any, overrides: Sequence[str]) -> Iterator[tuple[str, Any, str]]:
    """For `--plan`: every resolved leaf with where it came from: `command line`, `recipe` or `default`."""
    named = {path for path, _ in leaves(recipe)}
    given = [override.partition("=")[0] for override in overrides]
    for path, value in leaves(resolved):
        short = path.removesuffix(".kind")
        if any(path == key or path.startswith(f"{key}.") or short == key for key in given):
            yield path, value, "command line"
        elif path in named or short in named:
            yield path, value, "recipe"
        else:
            yield path, value, "default"


Check = Callable[[Any], None]
