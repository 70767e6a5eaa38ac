"""The bars that our interpreter has to clear, worked out from what `interpreter.py` measured."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

AT_MOST, AT_LEAST = "≤", "≥"
COMPARE = {AT_MOST: operator.le, AT_LEAST: operator.ge}


@dataclass(frozen=True)
class Bar:
    """One figure and what it has to be."""

    name: str
    value: float | None
    """None where a side it needs was not measured."""
    sign: str
    bound: float
    unit: str = ""

    @property
    def verdict(self) -> str:
        """In a word."""
        if self.value is None:
            return "not measured"
        return "met" if COMPARE[self.sign](self.value, self.bound) else "MISSED"


def at(found: Any, *path: str) -> float | None:
    """A figure in a tree; None where a branch is missing."""
    for name in path:
        if not isinstance(found, Mapping) or name not in found:
            return None
        found = found[name]
    return float(found)


def ratio(over: float | None, under: float | None) -> float | None:
    """One over the other, where both are there."""
    return None if over is None or not under else over / under


def more(over: float | None, under: float | None) -> float | None:
    """By how many per cent one is above the other."""
    found = ratio(over, under)
    return None if found is None else 100 * (found - 1)


PEERS = {
    "ipykernel": "ipykernel",
    "ipython": "the IPython process",
    "spawned": "the spawned process",
    "replay": "python -c",
}


def bars(found: Mapping[str, Any]) -> list[Bar]:
    """All of them, in the order of the table."""

    def of(*path: str) -> float | None:
        return at(found, "sides", *path)

    def times(peer: str, *path: str) -> float | None:
        return ratio(of(peer, *path), of("ours", *path))

    def rate(peer: str) -> float | None:
        return ratio(of("ours", "cycles", "per_s"), of(peer, "cycles", "per_s"))

    live = ("ours", "memory", "256", "tiny")
    share = at(found, "checkpoints", "share")
    return [
        Bar("tiny block, 256 live, p50", of(*live, "p50"), AT_MOST, 0.5, "ms"),
        Bar("tiny block, 256 live, p99", of(*live, "p99"), AT_MOST, 10, "ms"),
        Bar("tiny block, beside ipykernel", times("ipykernel", "tiny", "p50"), AT_LEAST, 20, "×"),
        Bar("tiny block, beside the IPython process", times("ipython", "tiny", "p50"), AT_LEAST, 2, "×"),
        Bar("tiny block, beside the spawned process", times("spawned", "tiny", "p50"), AT_LEAST, 0.5, "×"),
        Bar("request → first sympy result", of("ours", "first", "p50"), AT_MOST, 60, "ms"),
        *(
            Bar(f"first result, beside {words}", times(peer, "first", "p50"), AT_LEAST, 20 if peer == "ipykernel" else 10, "×")
            for peer, words in PEERS.items()
        ),
        Bar("first result, from the pool", of("pool", "first", "p50"), AT_MOST, 15, "ms"),
        Bar("session cycles", of("ours", "cycles", "per_s"), AT_LEAST, 30, "/s"),
        Bar("session cycles, beside ipykernel", rate("ipykernel"), AT_LEAST, 30, "×"),
        Bar("session cycles, beside the IPython process", rate("ipython"), AT_LEAST, 4, "×"),
        Bar("memory of a session, 256 live", of("ours", "memory", "256", "mib"), AT_MOST, 14, "MiB"),
        Bar("memory of a session, 1000 live", of("ours", "memory", "1000", "mib"), AT_MOST, 14, "MiB"),
        Bar("memory of a session with a checkpoint", of("ours", "copied", "mib"), AT_MOST, 18, "MiB"),
        Bar(
            "isolation, CPU of a session over fork alone",
            more(*(at(found, "isolation", side, "cpu_ms") for side in ("ours", "unisolated"))), AT_MOST, 25, "%",
        ),
        Bar(
            "isolation, tiny block",
            more(*(at(found, "isolation", side, "tiny", "p50") for side in ("ours", "unisolated"))), AT_MOST, 3, "%",
        ),
        Bar("checkpoints, share of executed CPU", None if share is None else 100 * share, AT_MOST, 10, "%"),
        Bar(
            "warm sympy solve, beside bare Python",
            ratio(of("ours", "paired", "session", "p50"), of("ours", "paired", "bare", "p50")), AT_MOST, 1.1, "×",
        ),
        Bar(
            "cold start, beside python -c",
            ratio(at(found, "cold", "thincode", "p50"), at(found, "cold", "python -c", "p50")), AT_MOST, 1.2, "×",
        ),
    ]  # fmt: skip


COLUMNS = {
    "first ms": ("first", "p50"),
    "tiny p50": ("tiny", "p50"),
    "tiny p99": ("tiny", "p99"),
    "solve ms": ("solve", "p50"),
    "cycles/s": ("cycles", "per_s"),
    "CPU ms": ("cycles", "cpu_ms"),
    "MiB at 32": ("memory", "32", "mib"),
    "loop ms": ("recovery", "loop", "ms"),
    "exit ms": ("recovery", "exit", "ms"),
}


def table(found: Mapping[str, Any]) -> str:
    """The sides, then the bars."""
    lines = [f"{'':<12}" + "".join(f"{name:>11}" for name in COLUMNS) + "   kept after"]
    for name, side in found["sides"].items():
        cells = [at(side, *path) for path in COLUMNS.values()]
        kept = [what for what in ("loop", "exit") if at(side, "recovery", what, "kept")]
        shown = "".join(f"{'' if cell is None else format(cell, '.2f'):>11}" for cell in cells)
        lines.append(f"{name:<12}{shown}   {', '.join(kept)}")
    lines.append("")
    for bar in bars(found):
        value = "–" if bar.value is None else f"{bar.value:.2f} {bar.unit}"
        lines.append(f"{bar.name:<46}{value:>14}   {bar.sign} {bar.bound:g} {bar.unit:<4} {bar.verdict}")
    return "\n".join(lines)
