"""How long a report of many trajectories takes to build, and its browser to answer a filter and a search in Chromium.

    python perf/report.py --out report.json                     10,000 trajectories with plan, blocks, outputs and formulas
    python perf/report.py --trajectories 40000                  more than fit: the page samples, and says so

Seconds of building include reading the records from disk. A filter is timed in the page, from the event of the field until the
list and the trajectory beside it are drawn (two animation frames later), the median and the worst over all filters, after the
page has loaded; the first search includes making the texts lower case where the page had no time to do it yet.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from thincode import report
from thincode.evaluation.scorecard import measure, write
from thincode.grading import Graded, records
from thincode.grading.answers import Grader
from thincode.problems import Problem
from thincode.settings import kind
from thincode.trajectory import Address, Block, BlockStatus, EndReason, Segment, SegmentKind, Trajectory
from thincode.trajectory.store import Store

FILTER = """
async ([id, value]) => {
  const field = document.getElementById(id);
  const frame = () => new Promise(requestAnimationFrame);
  await frame();
  const began = performance.now();
  field.value = value;
  field.dispatchEvent(new Event("input", {bubbles: true}));
  await frame(); await frame();
  return performance.now() - began;
}
"""
FILTERS = [
    ("f-shelf", ""), ("f-ok", "true"), ("f-ok", "false"), ("f-ok", ""), ("f-ground", "true"), ("f-ground", ""),
    ("f-calls", "4"), ("f-calls", ""), ("f-errors", "1"), ("f-errors", ""), ("f-problem", "p12"), ("f-problem", ""),
    ("f-end", "finished"), ("f-end", ""),
]  # fmt: skip
SEARCHES = [("f-text", "residue"), ("f-text", "residues of"), ("f-text", "nothing has this text"), ("f-text", "")]


def trajectory(number: int, samples: int, *, seed: int) -> Trajectory:
    """A plan with formulas, three to eight blocks of up to twenty lines, their outputs, and an answer."""
    draw = random.Random(seed * 1_000_003 + number)
    problem, sample = divmod(number, samples)
    answer = str(problem * 7 + (draw.random() < 0.3))
    power, part = draw.randrange(2, 9), draw.randrange(2, 99)
    prose = f"Count the residues of $x^{{{power}}}$ modulo $\\frac{{p-1}}{{{part}}}$, then take the last."
    segments = [Segment(SegmentKind.PLAN, prose + "\n", prose)]
    blocks = draw.randrange(3, 9)
    for block in range(blocks):
        lines = [
            f"v{line} = pow({draw.randrange(10**6)}, {line}, {draw.randrange(2, 10**6)})"
            for line in range(draw.randrange(2, 20))
        ]
        source = "\n".join([*lines, f"print({answer if block == blocks - 1 else draw.randrange(10**9)})"])
        failed = draw.random() < 0.1
        status = Block(BlockStatus.ERROR, "NameError", wall_s=0.01) if failed else Block(BlockStatus.OK, wall_s=0.01)
        said = "NameError: name 'x' is not defined" if failed else source.rpartition("(")[2][:-1]
        segments.append(Segment(SegmentKind.CODE, f"```python\n{source}\n```\n", source, block=status))
        segments.append(Segment(SegmentKind.OUTPUT, f"```output\n{said}\n```\n", said))
    segments.append(Segment(SegmentKind.ANSWER, f"So \\boxed{{{answer}}}.", f"So \\boxed{{{answer}}}."))
    address = Address(seed, "evaluate/made", 0, f"p{problem}", sample)
    question = f"How many residues has $x^2$ modulo the {problem}th prime?"
    return Trajectory(address, question, "thinc", "", tuple(segments), EndReason.FINISHED, answer)


def make(folder: Path, *, count: int, samples: int, seed: int) -> int:
    """Write the records and their scorecard; returns their bytes."""
    rows = []
    with Store(folder) as store, Grader() as grader:
        for number in range(count):
            one = trajectory(number, samples, seed=seed)
            gold = str(number // samples * 7)
            problem = Problem(one.address.problem, one.question, gold, {"level": str(number // samples % 5)})
            row = Graded(problem, one, grader.grade(one.answer, gold))
            store.append(one, records.annotations(row))
            rows.append(row)
    metrics = [kind("thincode.evaluation.metrics", name) for name in ("code_use", "grounding", "recovery")]
    metrics.append(kind("thincode.evaluation.metrics", "accuracy", k=samples, groups=["level"]))
    write(measure(rows, metrics, name="made"), folder / "scorecard.json")
    return (folder / "trajectories.jsonl").stat().st_size


def browse(page: Path) -> dict[str, Any]:
    """Load the page in Chromium and use it."""
    from playwright.sync_api import sync_playwright

    binary = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if binary is None:
        return {"browser": "no Chromium on this machine"}
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=binary, args=["--no-sandbox"])
        tab = browser.new_page()
        began = time.perf_counter()
        tab.goto(page.as_uri(), timeout=120_000)
        tab.wait_for_selector("#list li", timeout=120_000)
        loaded = time.perf_counter() - began
        first = tab.evaluate(FILTER, ["f-text", "residue"])
        tab.evaluate(FILTER, ["f-text", ""])
        filters = [tab.evaluate(FILTER, list(one)) for one in FILTERS]
        searches = [tab.evaluate(FILTER, list(one)) for one in SEARCHES]
        version = browser.version
        browser.close()
    return {
        "browser": version,
        "load_s": loaded,
        "first_search_ms": first,
        "filter_ms": {"median": statistics.median(filters), "worst": max(filters)},
        "search_ms": {"median": statistics.median(searches), "worst": max(searches)},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trajectories", type=int, default=10_000)
    parser.add_argument("--samples", type=int, default=16, help="of a problem")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="where to write what was measured")
    words = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "run"
        records_bytes = make(folder, count=words.trajectories, samples=words.samples, seed=words.seed)
        began = time.perf_counter()
        page = report.build(folder)
        build_s = time.perf_counter() - began
        found = {
            "load_average": os.getloadavg()[0],
            "trajectories": words.trajectories,
            "records_mb": records_bytes / 1e6,
            "build_s": build_s,
            "page_mb": page.stat().st_size / 1e6,
            **browse(page),
        }
    print(json.dumps(found, indent=2))
    if words.out:
        words.out.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
