"""How many trajectories a second the filters judge, on real transcripts; the bar is 1,000 of all filters together.

    python perf/filters.py --data DIR --out filters.json         # DIR holds traj_*.jsonl and the benchmarks

Re-execution is left out: it costs what the blocks cost. Each transcript comes several times, each time with a number of its own in
every word, so that the duplicate filter has something new to look at. Token counts are there already, as in a run.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from thincode.grading import Grade, Graded, GradeReason, Sieve
from thincode.problems import Problem
from thincode.settings import Kind, kind, kinds
from thincode.trajectory.formats import build
from thincode.trajectory.published import read

FILES = {"traj_mathcoder.jsonl": "mathcoder", "traj_tora_gsm8k.jsonl": "tora", "traj_tora_examples.jsonl": "tora"}
BENCHMARKS = ("aime2024", "aime2025", "amc23", "hmmt_feb_2025", "math500", "olymmath_en_easy")
RIGHT = Grade(True, GradeReason.EQUAL_VALUE)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--copies", type=int, default=10)
    parser.add_argument("--out", type=Path)
    words = parser.parse_args()
    rows = corpus(words.data, words.copies)
    chosen = filters(words.data)
    # Each alone over everything, so that none is spared by what another dropped.
    rates = {name: rate([one], rows) for name, one in chosen.items()}
    rates["all"] = 1 / sum(1 / value for value in rates.values())
    found = {
        "load": os.getloadavg()[0],
        "trajectories": len(rows),
        "characters": sum(len(row.trajectory.text) for row in rows),
        "trajectories_per_s": {name: round(value) for name, value in rates.items()},
    }
    for name, value in rates.items():
        print(f"{name:<16} {value:>10,.0f} trajectories/s")
    print(f"{found['characters'] / len(rows):,.0f} characters a trajectory; load {found['load']:.1f}")
    if words.out:
        words.out.write_text(json.dumps(found, indent=2) + "\n")


def filters(data: Path) -> dict[str, Kind]:
    room = "thincode.grading.filters"
    values: dict[str, dict[str, Any]] = {
        "min_blocks": {"n": 0},
        "distinct_blocks": {"n": 0},
        "plan_share": {"below": 2.0},
        "contamination": {"files": [str(data / f"{name}.jsonl") for name in BENCHMARKS], "overlap": 1.0},
    }
    return {name: kind(room, name, **values.get(name, {})) for name in kinds(room) if name != "reexecution"}


def corpus(data: Path, copies: int) -> list[Graded]:
    rows = []
    for name, format in FILES.items():
        for transcript in read(data / name, format=build(kind("thincode.trajectory.formats", format))):
            problem = Problem(transcript.trajectory.address.problem, transcript.trajectory.question, "1")
            rows.append(Graded(problem, transcript.trajectory, RIGHT))
    return [varied(row, copy) for copy in range(copies) for row in rows]


def varied(row: Graded, copy: int) -> Graded:
    at, segments = 0, []
    for segment in row.trajectory.segments:
        text = segment.text.replace(" ", f" {copy}") if copy else segment.text
        segments.append(replace(segment, text=text, start=at, end=at + len(text) // 3))
        at += len(text) // 3
    return replace(row, trajectory=replace(row.trajectory, segments=tuple(segments)))


def rate(chosen: Sequence[Kind], rows: Sequence[Graded]) -> float:
    sieve = Sieve(chosen)
    began = time.perf_counter()
    for row in rows:
        sieve.judge(row)
    return len(rows) / (time.perf_counter() - began)


if __name__ == "__main__":
    main()
