"""What the long verbs share: recipe, plan, run folder, console and the printed result."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..evaluation import Scorecard
    from ..runs.pipeline import Console, Pipeline
    from ..runs.recipe import Recipe
    from ..settings import Resolved

USAGE = "RECIPE [--out DIR] [key.path=value …]"


def add_recipe(parser: argparse.ArgumentParser) -> None:
    """The recipe, as the first word."""
    parser.add_argument("recipe", metavar="RECIPE", help="a YAML file, or one that ships, for example tiny/demo")


def load(words: argparse.Namespace) -> Resolved[Recipe]:
    """The recipe with the overrides of the command line."""
    from ..runs.recipe import Recipe
    from ..settings import load

    return load(Recipe, words.recipe, words.overrides)


def print_plan(words: argparse.Namespace, resolved: Resolved[Recipe], **more: Any) -> int:
    """Every setting and where it came from, and what holds for a block in the end; with --json `more` stands in it too."""
    in_effect = resolved.value.interpreter.in_effect(resolved.value.format)
    origin = "limits" if in_effect["preset"] is None else "preset"
    rows = [*resolved.origins, ("in_effect.interpreter", in_effect, origin)]
    if words.json:
        print(json.dumps({**{path: {"value": value, "from": origin} for path, value, origin in rows}, **more}))
        return 0
    width = max(len(path) for path, _, _ in rows)
    for path, value, origin in rows:
        print(f"{path:<{width}}  {json.dumps(value, ensure_ascii=False):<24}  {origin}")
    return 0


@contextmanager
def opened(words: argparse.Namespace, resolved: Resolved[Recipe]) -> Iterator[tuple[Pipeline, Path]]:
    """Run folder, workshop and console of a verb.

    Raises:
        RunFolderError: the folder exists and --resume was not said, or --resume without --out.
    """
    out = claim(words)
    from ..runs.pipeline import Pipeline
    from ..runs.workshop import Workshop

    with Workshop(resolved.value) as shop:
        yield Pipeline(resolved, out=out, shop=shop, console=console(words)), out


def claim(words: argparse.Namespace) -> Path:
    """The folder that a verb may write.

    Raises:
        RunFolderError: it exists and --resume was not said, or --resume without --out.
    """
    from ..errors import RunFolderError

    if words.resume and words.out is None:
        raise RunFolderError("--resume: which run? Name its folder with --out DIR")
    out: Path = words.out or Path("runs") / f"{words.verb}-{time.strftime('%Y%m%d-%H%M%S')}"
    words.out = out
    if out.is_dir() and any(out.iterdir()) and not words.resume and first_process():
        raise RunFolderError(f"{out}: exists already; go on with --resume, or name another folder with --out")
    return out


def first_process() -> bool:
    """Whether this is the process that speaks; the others that `accelerate launch` started follow it in silence."""
    return os.environ.get("RANK", "0") == "0"


def console(words: argparse.Namespace) -> Console:
    """Progress and notices, as --quiet and --json ask."""
    from functools import partial

    from ..runlog import Progress
    from ..runs.pipeline import Console

    quiet = words.quiet or not first_process()
    say = (lambda text: None) if quiet else (lambda text: print(text, file=sys.stderr))
    return Console(progress=partial(Progress, quiet=quiet, json=words.json), say=say)


def print_result(words: argparse.Namespace, cards: Sequence[Scorecard], out: Path) -> None:
    """The headlines of scorecards, and where the time went."""
    from ..evaluation.tables import table
    from ..runs.pipeline import split_of_time

    if words.json:
        print(json.dumps({"out": str(out), "scorecards": [card.name for card in cards]}))
        return
    rows = [row for number, row in enumerate(table(cards)) if number == 0 or _is_headline(row[0])]
    if len(rows) > 1:
        _print_rows(rows)
    times = split_of_time(out)
    if times:
        parts = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in times.items())
        print(f"\ntime: {sum(times.values()):.0f} s ({parts})")


def print_table(cards: Sequence[Scorecard], style: str) -> None:
    """Every figure of scorecards, for a terminal or in one of `evaluation.tables.STYLES`."""
    from ..evaluation.tables import STYLES, table

    if style in STYLES:
        print(STYLES[style](cards), end="")
    else:
        _print_rows(table(cards))


def add_runs(parser: argparse.ArgumentParser) -> None:
    """Run folders, and how to print what stands in them."""
    add = parser.add_argument
    add("runs", type=Path, nargs="+", metavar="RUN", help="an evaluation, or a pipeline's folder")
    add("--as", dest="style", choices=("table", "csv", "markdown", "latex"), default="table")
    add("--json", action="store_true", help="as JSON")


def print_cards(words: argparse.Namespace, cards: Sequence[Scorecard]) -> int:
    """Scorecards as `add_runs` lets one ask for them."""
    if words.json:
        print(json.dumps([dataclasses.asdict(card) for card in cards]))
    else:
        print_table(cards, words.style)
    return 0


def print_whole_plan(
    words: argparse.Namespace, resolved: Resolved[Recipe], estimate: Callable[..., Any], text: Callable[..., str]
) -> int:
    """The settings, then what the recipe will ask of a GPU and what that assumes."""
    figures, assumptions = estimate(resolved.value, gpu=words.gpu, gpus=words.gpus)
    print_plan(words, resolved, estimate=figures, assumed=assumptions)
    if not words.json:
        print("\n" + text(figures, assumptions))
    return 0


def _print_rows(rows: Sequence[Sequence[str]]) -> None:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _is_headline(name: str) -> bool:
    """Whether a figure belongs into the table on the terminal; the scorecard and the page have all of them."""
    arm, _, rest = name.rpartition("/") if name.startswith(("greedy/", "swapped/")) else ("", "", name)
    return (rest.startswith("avg@") and "(" not in rest and "/" not in rest) or (not arm and name in _HEADLINES)


_HEADLINES = ("grounded", "format adherence", "recovery@1", "block pass rate", "calls", "generated", "end/finished")


def print_line(words: argparse.Namespace, text: str, **values: Any) -> None:
    """One line of result: `text`, or with --json the values."""
    print(json.dumps(values) if words.json and values else text)
