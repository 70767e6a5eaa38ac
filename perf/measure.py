"""A hundred thousand trajectories measured: seconds, and memory of all processes together.

    python perf/measure.py --data DIR --out measure.json

DIR holds the published transcripts `traj_mathcoder.jsonl` and `traj_tora_gsm8k.jsonl`. They are written again and again as
records of a run folder, each time under another id; the blocks of every twentieth get further real blocks of the same files
until they have 300 lines or more. Then `thincode measure` runs over the folder on two cores, with every metric that ships.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from thincode import _environment
from thincode.grading import Graded, records
from thincode.grading.answers import Grader
from thincode.problems import Problem
from thincode.settings import kind
from thincode.trajectory import SegmentKind, Trajectory, published, store
from thincode.trajectory.formats import build

FILES = {"traj_mathcoder.jsonl": "mathcoder", "traj_tora_gsm8k.jsonl": "tora"}
LONG_LINES = 300
CORES = 2


def originals(data: Path) -> list[Graded]:
    """The published transcripts, graded."""
    found = []
    with Grader() as grader:
        for file, format in FILES.items():
            for one in published.read(data / file, format=build(kind("thincode.trajectory.formats", format))):
                gold, said = one.gold or "", one.trajectory
                problem = Problem(said.address.problem, said.question, gold, {"file": format})
                found.append(Graded(problem, said, grader.grade(said.answer, gold)))
    return found


def lengthened(said: Trajectory, sources: Sequence[str], rng: random.Random) -> Trajectory:
    """The same with a first block of 300 lines or more."""
    segments = list(said.segments)
    at = next(index for index, segment in enumerate(segments) if segment.kind is SegmentKind.CODE)
    code = segments[at].content
    while code.count("\n") < LONG_LINES:
        code += "\n" + rng.choice(sources)
    segments[at] = replace(segments[at], content=code, text=segments[at].text.replace(segments[at].content, code))
    return replace(said, segments=tuple(segments))


def copies(rows: Sequence[Graded], count: int, *, seed: int = 0) -> Iterator[dict[str, Any]]:
    """`count` records, every twentieth a long one."""
    rng = random.Random(seed)
    sources = [segment.content for row in rows for segment in row.trajectory.blocks]
    coded = [row for row in rows if row.trajectory.blocks]
    for number in range(count):
        row = coded[number % len(coded)] if number % 20 == 0 else rows[number % len(rows)]
        said = lengthened(row.trajectory, sources, rng) if number % 20 == 0 else row.trajectory
        name = f"{row.problem.id}/{number // len(rows)}"
        said = replace(said, address=replace(said.address, problem=name))
        yield {**store.to_json(said), "annotations": records.annotations(row)}


class Memory:
    """Resident memory of a process and all below it, sampled while it runs."""

    def __init__(self, pid: int) -> None:
        self.peak_mib = 0.0
        self._pid, self._over = pid, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._over.wait(0.1):
            self.peak_mib = max(self.peak_mib, sum(map(_resident_mib, _tree(self._pid))))

    def stop(self) -> float:
        self._over.set()
        self._thread.join()
        return self.peak_mib


def _tree(pid: int) -> Iterator[int]:
    yield pid
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    except OSError:
        return
    for child in children:
        yield from _tree(int(child))


def _resident_mib(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def main(argv: Sequence[str] | None = None) -> dict[str, Any]:
    """Write the records, measure them, print, write."""
    parser = argparse.ArgumentParser(description="Seconds and memory of measuring many trajectories on two cores.")
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="folder of published transcripts")
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--out", type=Path, metavar="FILE", help="write everything measured as JSON")
    words = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / store.LOG
        with log.open("w", encoding="utf-8") as file:
            for line in copies(originals(words.data), words.count):
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
        card = Path(folder) / "card.json"
        command = [sys.executable, "-m", "thincode", "measure", folder, "--quiet", "--out", str(card)]
        cores = sorted(os.sched_getaffinity(0))[:CORES]
        began = time.perf_counter()
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, preexec_fn=lambda: os.sched_setaffinity(0, cores)
        )
        memory = Memory(process.pid)
        code = process.wait()
        seconds, peak = time.perf_counter() - began, memory.stop()
        if code:
            raise SystemExit(code)
        measured = json.loads(card.read_text(encoding="utf-8"))
        found = {
            "machine": {**_environment.environment(), "load_before": os.getloadavg()[0]},
            "trajectories": measured["details"]["rows"],
            "file_mib": log.stat().st_size / 2**20,
            "wall_s": seconds,
            "peak_mib": peak,
            "cores": len(cores),
        }
    print(
        f"{found['trajectories']:,} trajectories ({found['file_mib']:.0f} MiB) in {seconds:.1f} s on {len(cores)} cores, "
        f"{peak:.0f} MiB at most"
    )
    if words.out is not None:
        words.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return found


if __name__ == "__main__":
    main()
