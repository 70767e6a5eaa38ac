"""A sweep's figures as Markdown: arms as rows, one table for each question."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..evaluation import Estimate, Scorecard
from ..evaluation.tables import text

TABLES: Mapping[str, Sequence[str]] = {
    "Accuracy and grounding": (
        r"avg@\d+", r"greedy/avg@\d+", r"swapped/avg@\d+", "end/finished", "grounded", "grounded by chance",
        "inputs copied",
    ),
    "Cost": (
        "calls", "lines of code", "generated", r"generated \+ outputs", "block pass rate", "training",
        "SFT trajectories", "SFT tokens",
    ),
    "Recovery": (r"recovery@[1-3]", r"injected/recovery@\d"),
    "Failures": (
        "post-hoc verification", "post-hoc verification by chance", "unverified constants",
        "unverified constants by chance", "role overlap", "role similarity", "role similarity by chance",
    ),
}  # fmt: skip
"""Title → patterns of the figures in it; the scorecards have all figures."""


def markdown(cards: Sequence[Scorecard], seeds: Mapping[str, int], differences: Sequence[Mapping[str, Any]]) -> str:
    """Every table there is something for.

    Args:
        cards: over seeds, one an arm.
        seeds: how many each arm has.
        differences: as `sweep.json` has them.
    """
    parts = ["Each cell: the mean over seeds [95 % interval over seeds]; of one seed, over its problems."]
    for title, patterns in TABLES.items():
        names = [name for pattern in patterns for name in _names(cards, pattern)]
        if names:
            rows = [[card.name, str(seeds[card.name]), *(_cell(card, name) for name in names)] for card in cards]
            parts.append(f"## {title}\n\n{_table(['arm', 'seeds', *names], rows)}")
    if differences:
        head = ["arm", "against", "seeds", "difference over seeds", "over problems, seeds as they are"]
        parts.append(f"## Paired differences of accuracy\n\n{_table(head, list(map(_difference, differences)))}")
    return "\n\n".join(parts) + "\n"


def _names(cards: Sequence[Scorecard], pattern: str) -> Iterator[str]:
    names = dict.fromkeys(one.name for card in cards for one in card.estimates)
    return (name for name in names if re.fullmatch(pattern, name))


def _cell(card: Scorecard, name: str) -> str:
    found = next((one for one in card.estimates if one.name == name), None)
    if found is None:
        return ""
    count = f" (n = {found.n})" if "recovery" in name else ""
    return text(found) + count


def _difference(one: Mapping[str, Any]) -> list[str]:
    shown = [_points(one.get(key)) for key in ("over seeds", "over problems")]
    if "not compared" in one:
        shown = [str(one["not compared"]), ""]
    return [str(one["arm"]), str(one["against"]), str(one["seeds"]), *shown]


def _points(one: Estimate | None) -> str:
    return text(one).replace(" %", " points") if one is not None else ""


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [list(head), ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)
