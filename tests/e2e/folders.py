"""What two runs of one seed must have in common: everything in the run folder but measured seconds."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

from thincode.runlog import read_log

SECONDS = ("generate_s", "execute_s", "wall_s", "cpu_s", "sample_s", "train_s", "validate_s", "sampled_tokens_per_s")
"""Measured, so they differ from run to run; nothing is computed from them."""


def contents(out: Path) -> dict[str, Any]:
    """By path: records and figures without seconds, weights and token ids by hash, scorecards, funnel and comparison."""
    found: dict[str, Any] = {}
    for path in sorted(out.rglob("*")):
        name = str(path.relative_to(out))
        if path.suffix == ".jsonl":
            found[name] = [without_seconds(line) for line in read_log(path)]
        elif path.name in ("scorecard.json", "comparison.json", "funnel.json", "done.json") or path.name.startswith(
            "filter-"
        ):
            found[name] = json.loads(path.read_text(encoding="utf-8"))
        elif path.suffix == ".safetensors" or path.parent.name == "ids" or path.name == "tokenizer.json":
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
        elif path.name == "report.html":
            found[name] = "there"
    return found


def without_seconds(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_seconds(inner) for key, inner in value.items() if key not in SECONDS}
    return [without_seconds(inner) for inner in value] if isinstance(value, list) else value


def differences(a: dict[str, Any], b: dict[str, Any]) -> list[str]:
    """Names of what differs, and what is in one only; short enough to read in a failed test."""
    return [f"{name}: {where(a.get(name), b.get(name))}" for name in sorted({*a, *b}) if a.get(name) != b.get(name)]


def where(a: Any, b: Any) -> str:
    if a is None or b is None:
        return f"only in the {'second' if a is None else 'first'}"
    if isinstance(a, list) and isinstance(b, list):
        first = next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
        shown = [str(side[first])[:300] if first < len(side) else "nothing" for side in (a, b)]
        return f"{len(a)} and {len(b)} records, the first that differs is number {first}: {shown[0]} and {shown[1]}"
    return f"{str(a)[:200]} and {str(b)[:200]}"


def repeated(out: Path) -> list[tuple[Any, ...]]:
    """(stage, step, problem, sample) of which the whole run folder holds more than one record."""
    counts = Counter(
        tuple(line["address"][part] for part in ("stage", "step", "problem", "sample"))
        for path in out.rglob("trajectories.jsonl")
        for line in read_log(path)
    )
    return [key for key, count in counts.items() if count > 1]


def litter(out: Path) -> list[str]:
    """What a killed process may leave half written and the finished run must not have."""
    return [
        str(path.relative_to(out))
        for path in out.rglob("*")
        if path.name.endswith((".tmp", ".old")) or path.name == ".writing"
    ]
