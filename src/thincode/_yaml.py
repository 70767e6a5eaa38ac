"""YAML as recipes use it: 1.2 scalars, no tricks.

`1e-5` is a number, `off` and `yes` are text, dates and `1:30` are text. A key that stands twice, anchors, aliases and
tags are refused: what a recipe says stands where one reads it.
"""

from __future__ import annotations

import functools
import re
from typing import Any

from .errors import RecipeError

_SCALARS = {
    "bool": (re.compile(r"^(?:true|false|True|False)$"), "tfTF"),
    "int": (re.compile(r"^[-+]?[0-9][0-9_]*$"), "-+0123456789"),
    "float": (
        re.compile(
            r"""^[-+]?(?: [0-9][0-9_]*\.[0-9_]*(?:[eE][-+]?[0-9]+)?
                        | [0-9][0-9_]*[eE][-+]?[0-9]+
                        | \.[0-9]+(?:[eE][-+]?[0-9]+)?
                        | \.(?:inf|nan) )$""",
            re.VERBOSE,
        ),
        "-+.0123456789",
    ),
    "null": (re.compile(r"^(?:~|null|Null|NULL|)$"), ["~", "n", "N", ""]),
}


@functools.cache
def _loader() -> Any:
    import yaml

    class Loader(yaml.SafeLoader):
        yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 – PyYAML's own attribute, filled below

        def compose_node(self, parent: Any, index: Any) -> Any:
            event = self.peek_event()  # type: ignore[no-untyped-call]
            if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
                raise yaml.composer.ComposerError(
                    None, None, "anchors and aliases (&, *) are not read; write the value out", event.start_mark
                )
            return super().compose_node(parent, index)

    for name, (pattern, first) in _SCALARS.items():
        Loader.add_implicit_resolver(f"tag:yaml.org,2002:{name}", pattern, list(first))

    def construct_int(loader: Any, node: Any) -> int:
        return int(loader.construct_scalar(node).replace("_", ""), 10)

    def construct_float(loader: Any, node: Any) -> float:
        return float(loader.construct_scalar(node).replace("_", "").replace(".inf", "inf").replace(".nan", "nan"))

    def construct_mapping(loader: Any, node: Any) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            key = loader.construct_object(key_node, deep=True)
            if isinstance(key, (list, dict)):
                raise yaml.constructor.ConstructorError(None, None, f"{key!r} is no key", key_node.start_mark)
            if key in found:
                raise yaml.constructor.ConstructorError(None, None, f"key {key!r} stands twice", key_node.start_mark)
            found[key] = loader.construct_object(value_node, deep=True)
        return found

    def refuse(loader: Any, node: Any) -> None:
        raise yaml.constructor.ConstructorError(None, None, f"the tag {node.tag!r} is not read", node.start_mark)

    for tag in ("timestamp", "binary", "omap", "pairs", "set"):
        Loader.add_constructor(f"tag:yaml.org,2002:{tag}", refuse)
    Loader.add_constructor("tag:yaml.org,2002:int", construct_int)
    Loader.add_constructor("tag:yaml.org,2002:float", construct_float)
    Loader.add_constructor("tag:yaml.org,2002:map", construct_mapping)
    Loader.add_constructor(None, refuse)
    return Loader


def read_yaml(text: str, *, place: str) -> Any:
    """Parse one YAML document.

    Args:
        text: the document; an empty one is None.
        place: file name, or what the text is, for messages.

    Raises:
        RecipeError: not YAML as described above; the message has place, line and column.
    """
    import yaml

    try:
        return yaml.load(text, Loader=_loader())
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{place}:{mark.line + 1}:{mark.column + 1}" if mark else place
        said = str(getattr(error, "problem", None) or error).replace("\n", " ")
        if "'\\t'" in said:
            said = "a tab stands where only spaces may; indent with spaces"
        raise RecipeError(f"{where}: can't read this as YAML: {said}") from None


@functools.cache
def _dumper() -> Any:
    import yaml

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:
            return True

    def represent_str(dumper: Any, text: str) -> Any:
        # Quote what our reader, or a YAML 1.1 reader, would take for something else than this text.
        plain = (
            re.fullmatch(r"[A-Za-z_/][\w ./<>=-]*", text)
            and text.lower() not in ("yes", "no", "on", "off", "y", "n")
            and read_yaml(text, place="text") == text
        )
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if plain else '"')

    Dumper.add_representer(str, represent_str)
    return Dumper


def write_yaml(value: Any) -> str:
    """Plain mappings, lists and scalars as YAML that `read_yaml` reads back to an equal value."""
    import yaml

    return str(yaml.dump(value, Dumper=_dumper(), sort_keys=False, allow_unicode=True, width=2**30))
