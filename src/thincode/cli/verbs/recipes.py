"""The recipes that ship."""

from __future__ import annotations

import argparse
from pathlib import Path

from .._verb import Verb


def add(parser: argparse.ArgumentParser) -> None:
    """What to do with which recipe."""
    parser.add_argument("action", choices=("list", "show", "copy"), nargs="?", default="list")
    parser.add_argument("name", metavar="NAME", nargs="?", help="for example tiny/demo")
    parser.add_argument("to", metavar="TO", nargs="?", type=Path, help="file or folder (default: here)")


def run(words: argparse.Namespace) -> int:
    """List, print or copy."""
    from ...errors import RecipeError
    from ...settings import recipe_text, recipes

    if words.action == "list":
        for name in recipes():
            print(f"{name:<16}  {recipe_text(name).splitlines()[0].removeprefix('# ')}")
        return 0
    if words.name is None:
        raise RecipeError(f"name a recipe: {', '.join(recipes())}")
    text = recipe_text(words.name)
    if words.action == "show":
        print(text, end="")
        return 0
    file = f"{words.name.rpartition('/')[2]}.yaml"
    target: Path = words.to or Path(file)
    target = target / file if target.is_dir() else target
    if target.exists():
        raise RecipeError(f"{target}: exists already; name another file")
    target.write_text(text, encoding="utf-8")
    print(target)
    return 0


VERB = Verb(
    line="list, show or copy the recipes that ship",
    usage="[list | show NAME | copy NAME [TO]]",
    description="Lists the recipes that ship, prints one, or copies one to change it.",
    add=add,
    run=run,
)
