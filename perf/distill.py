"""Problems per second of a distillation from a served teacher, its memory, and trajectories per second of the filters.

    python perf/distill.py --out distill.json             # 2,000 problems of three real blocks each, two minutes
    python perf/distill.py --problems 200

The server runs in a process of its own on this machine and answers from a script (`tests/openai_server.py`), so that what is
measured is client, episodes, interpreter and grading; the blocks run in a session of their own for each problem. Beside it
stands what the interpreter alone gives for the same blocks, as many sessions at once: the limit.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]
FILTERS = (
    "correct", "blocks_ok", "min_blocks", "plan_share", "distinct_blocks", "answer_printed", "language", "duplicates",
)  # fmt: skip


@contextmanager
def server() -> Iterator[str]:
    """The address of a canned teacher in a process of its own."""
    command = [sys.executable, str(ROOT / "tests" / "openai_server.py"), "60"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.stdin.close()
        process.wait()
        process.stdout.close()


@dataclass(frozen=True)
class Look:
    """At a distillation in progress."""

    at_s: float
    records: int
    mib: float
    """Resident memory of this process."""


class Watch:
    """Looks four times a second while it is open."""

    def __init__(self, log: Path) -> None:
        self.looks: list[Look] = []
        self._log = log
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def _watch(self) -> None:
        records, read = 0, 0
        while not self._over.wait(0.25):
            if self._log.exists():
                with self._log.open("rb") as file:
                    file.seek(read)
                    new = file.read()
                records, read = records + new.count(b"\n"), read + len(new)
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            self.looks.append(Look(time.monotonic(), records, pages * 4096 / 2**20))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *details: object) -> None:
        self._over.set()
        self._thread.join()

    def when(self, records: int) -> Look:
        """The first look at so many records."""
        return next(look for look in [*self.looks, self.looks[-1]] if look.records >= records or look is self.looks[-1])


def distill(folder: Path, *, count: int, live: int) -> dict[str, Any]:
    """The whole command, as a user calls it."""
    from openai_server import problems
    from thincode.cli import main

    file, out = folder / "problems.jsonl", folder / "out"
    file.write_text("".join(problems(count)))
    source = json.dumps({"kind": "jsonl", "path": str(file)})
    with server() as url, Watch(out / "trajectories.jsonl") as watch:
        teacher = json.dumps({"kind": "openai", "base_url": url, "limits": {"concurrency": live}})
        words = [f"distill.problems={source}", f"distill.teacher={teacher}", "distill.prompt=thinc_3shot"]
        budget = "distill.budget={context_tokens: 8000, calls: 8}"
        code = main(["distill", "tiny/micro", *words, budget, f"live={live}", "--quiet", "--out", str(out)])
    funnel = json.loads((out / "funnel.json").read_text())
    if code or funnel["kept"] != count:
        raise SystemExit(f"the distillation kept {funnel['kept']} of {count}: nothing to measure")
    begin, quarter, end = watch.when(1), watch.when(count // 4), watch.when(count)
    if begin is end:
        raise SystemExit(
            f"{count} problems were over between two looks: nothing to measure; ask for more with --problems"
        )
    return {
        "problems": count,
        "problems_per_s": (end.records - begin.records) / (end.at_s - begin.at_s),
        "mib_at_a_quarter": quarter.mib,
        "mib_at_the_end": end.mib,
    }


def interpreter_alone(*, count: int, live: int) -> float:
    """Problems per second if somebody else thought: a session each, the same three blocks, `live` at once."""
    from openai_server import question, teacher
    from thincode.interpreter import Limits, open_interpreter
    from thincode.settings import kind

    def blocks(number: int) -> list[str]:
        asked, found = question(number)[0], []
        for _ in range(3):
            block = teacher(asked).partition("```python\n")[2].partition("```")[0]
            found.append(block)
            asked += "```output\n1\n```\n"
        return found

    async def run() -> float:
        backend = kind("thincode.interpreter.backends", "python", preload=[])
        waiting = iter(range(count))
        async with open_interpreter(backend, limits=Limits()) as interpreter:

            async def worker() -> None:
                for number in waiting:
                    async with await interpreter.session(seed=number) as session:
                        for block in blocks(number):
                            await session.run(block)

            began = time.monotonic()
            async with asyncio.TaskGroup() as group:
                for _ in range(live):
                    group.create_task(worker())
            return count / (time.monotonic() - began)

    return asyncio.run(run())


def filters(folder: Path) -> float:
    """Trajectories per second through all filters that run nothing, on one core."""
    from thincode.grading import Sieve, records
    from thincode.settings import kind
    from thincode.trajectory.store import read

    sieve = Sieve([kind("thincode.grading.filters", name) for name in FILTERS])
    rows = [records.graded_from_record(record.trajectory, record.annotations) for record in read(folder / "out")]
    began = time.monotonic()
    reasons = {sieve.judge(row).reason for row in rows}
    rate = len(rows) / (time.monotonic() - began)
    if not reasons <= {"kept", "duplicate", "near duplicate"}:
        raise SystemExit(f"a canned trajectory was dropped: {reasons}")
    return rate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=2000)
    parser.add_argument("--live", type=int, default=32, help="episodes at once")
    parser.add_argument("--out", type=Path, help="JSON file for everything measured")
    words = parser.parse_args()
    alone = interpreter_alone(count=max(words.live, words.problems // 4), live=words.live)
    with tempfile.TemporaryDirectory() as folder:
        found = distill(Path(folder), count=words.problems, live=words.live)
        found |= {"interpreter_alone_per_s": alone, "filters_per_s": filters(Path(folder))}
    found |= {"live": words.live, "load": os.getloadavg()[0]}
    for name, value in found.items():
        print(f"{name:<24} {value:>10.1f}")
    if words.out is not None:
        words.out.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
