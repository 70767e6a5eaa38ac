"""Do all algorithms learn, and does a reward that knows nothing not? Does a growing budget of calls help?

    python perf/algorithms.py --out runs/algorithms --seeds 1 2 3        # resumable; about an hour a seed on one core

For each seed one shared SFT checkpoint (the demo's, trained shorter so that RL has something left to teach), and from it, each
for at most `--minutes` of RL:

- GRPO, DAPO (with refills), REINFORCE++, REINFORCE++-baseline, and GRPO on a coin for a reward (the control);
- on families that need more than two blocks: REINFORCE++-baseline with calls 2 → 3 → 4 in thirds, with 2, and with 4 throughout.

Every model answers the same held-out problems, four samples each at T = 1, with all the calls it wants. Gains are paired by
problem and pooled over seeds; intervals are over problems. Curves are in each run's metrics.jsonl and report.html.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from thincode.evaluation.paired import compare
from thincode.evaluation.tables import text
from thincode.grading import Graded
from thincode.grading.records import graded_from_record
from thincode.trajectory.store import read as read_records

LONG = "[chain, digit_sum, lattice, multiples, powers, primes]"
"""Families whose worked solutions have three blocks or more."""


@dataclass(frozen=True)
class Arm:
    """One way to learn from the shared checkpoint."""

    words: Sequence[str]
    """Overrides of the recipe."""
    long: bool = False
    """Asked, and measured, on the families that need more than two blocks."""


def stages(calls: int, steps: int, later: str = "") -> str:
    more = f", calls_from: {later}" if later else ""
    return f"rl.stages=[{{steps: {steps}, context_tokens: 320, calls: {calls}{more}}}]"


def arms(steps: int) -> Mapping[str, Arm]:
    """By name, in the order of the table."""
    baseline = "rl.algorithm={kind: reinforce_pp_baseline, dual_clip: 3.0}"
    whole = stages(8, steps)
    thirds = f"[[{steps // 3}, 3], [{2 * steps // 3}, 4]]"
    return {
        "grpo": Arm(["rl.algorithm={kind: grpo}", whole]),
        "dapo": Arm(["rl.algorithm={kind: dapo}", "rl.max_refills=2", whole]),
        "reinforce_pp": Arm(["rl.algorithm={kind: reinforce_pp}", whole]),
        "reinforce_pp_baseline": Arm([baseline, whole]),
        "chance": Arm(["rl.algorithm={kind: grpo}", "rl.rewards=[{reward: chance}]", whole]),
        "calls-2-3-4": Arm([baseline, stages(2, steps, thirds)], long=True),
        "calls-2": Arm([baseline, stages(2, steps)], long=True),
        "calls-4": Arm([baseline, stages(4, steps)], long=True),
    }


def main() -> None:
    words = _words()
    chosen = {name: arm for name, arm in arms(words.steps).items() if not words.only or name in words.only}
    for seed in words.seeds:
        folder = words.out / f"seed-{seed}"
        common = [f"seed={seed}", f"threads={words.threads}"]
        shared = folder / "shared"
        thincode(
            "run", "tiny/demo", *common, "rl=null", "evaluate=null", f"distill.problems.seed={seed}",
            f"sft.train.max_tokens={words.sft_tokens}", out=shared,
        )  # fmt: skip
        start = shared / "sft" / "model"
        for long in sorted({arm.long for arm in chosen.values()}):
            measure(start, words, common, seed=seed, long=long, out=folder / f"start{'-long' * long}")
        for name, arm in chosen.items():
            families = [f"rl.problems.families={LONG}"] * arm.long
            rl = folder / name / "rl"
            done = thincode(
                "rl", "tiny/demo", *common, *arm.words, *families, "rl.validation=null",
                "rl.policy.checkpoint_every=5", "--model", str(start), out=rl, minutes=words.minutes,
            )  # fmt: skip
            measure(last_model(rl), words, common, seed=seed, long=arm.long, out=folder / name / "eval")
            print(f"seed {seed}, {name}: {steps_of(rl)} steps{'' if done else ', stopped by the clock'}", flush=True)
    report = table(words.out, words.seeds, chosen)
    (words.out / "table.md").write_text(report + "\n", encoding="utf-8")
    print(report)


def measure(model: Path, words: argparse.Namespace, common: Sequence[str], *, seed: int, long: bool, out: Path) -> None:
    """The held-out problems, the same for every model of a seed."""
    families = [f"evaluate.problems.families={LONG}"] * long
    thincode(
        "eval", "tiny/demo", *common, *families, f"evaluate.problems.count={words.problems}",
        f"evaluate.problems.seed={1000 + seed}", "evaluate.samples=4", "evaluate.greedy=false",
        "evaluate.swap_outputs=false", "--model", str(model), out=out,
    )  # fmt: skip


def thincode(*arguments: str, out: Path, minutes: float | None = None) -> bool:
    """Run a verb, or go on with it where it stopped; False if the clock ended it, as it then will again."""
    stopped = out / "stopped-by-clock.json"
    if (out / "done.json").exists() or stopped.exists():
        return not stopped.exists()
    used = out.with_name(f"{out.name}.seconds")
    spent = float(used.read_text()) if used.exists() else 0.0
    left = None if minutes is None else max(60 * minutes - spent, 1.0)
    resume = ["--resume"] if out.exists() else []
    command = [sys.executable, "-m", "thincode", *arguments, "--out", str(out), *resume]
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=sys.stderr)
    try:
        code = process.wait(left)
    except subprocess.TimeoutExpired:
        process.terminate()
        process.wait()
        stopped.write_text(json.dumps({"minutes": minutes}))
        return False
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait()
        out.parent.mkdir(parents=True, exist_ok=True)
        used.write_text(str(spent + time.monotonic() - began))
    if code:
        raise SystemExit(f"{' '.join(command)} ended with {code}")
    return True


def last_model(run: Path) -> Path:
    """What the run ended with: its model, or the last checkpoint that the clock left."""
    model = run / "model"
    return model if model.is_dir() else max((run / "checkpoint").glob("step-*"))


def steps_of(run: Path) -> int:
    return sum('"reward_mean"' in line for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines())


def rows(folder: Path, seed: int) -> list[Graded]:
    """Graded rows whose problems are told apart by seed, so that seeds can be pooled."""
    found = [graded_from_record(one.trajectory, one.annotations) for one in read_records(folder, ids=False)]
    return [replace(row, problem=replace(row.problem, id=f"{seed}:{row.problem.id}")) for row in found]


def table(out: Path, seeds: Sequence[int], chosen: Mapping[str, Arm]) -> str:
    """Markdown: accuracy, then the paired gain over the shared checkpoint, by seed and pooled."""
    heads = [*(f"seed {seed}" for seed in seeds), "pooled"]
    lines = ["| | " + " | ".join(heads) + " |", "|---" * (len(heads) + 1) + "|"]
    found: dict[str, list[list[Graded]]] = {}
    for name in [*(f"start{'-long' * long}" for long in (False, True)), *chosen]:
        folders = [out / f"seed-{seed}" / name for seed in seeds]
        folders = [folder if name.startswith("start") else folder / "eval" for folder in folders]
        if all(folder.exists() for folder in folders):
            found[name] = [rows(folder, seed) for folder, seed in zip(folders, seeds, strict=True)]
    for name, by_seed in found.items():
        every = [*by_seed, [row for rows_ in by_seed for row in rows_]]
        shares = [f"{100 * sum(row.grade.correct for row in some) / len(some):.1f} %" for some in every]
        lines.append(f"| {name}: accuracy | " + " | ".join(shares) + " |")
    for name, arm in chosen.items():
        start = found[f"start{'-long' * arm.long}"]
        pairs = list(zip(start, found[name], strict=True))
        pairs.append(([row for before, _ in pairs for row in before], [row for _, after in pairs for row in after]))
        lines.append(f"| {name}: paired gain | " + " | ".join(gain(*pair) for pair in pairs) + " |")
    for other in ("calls-2", "calls-4"):
        if other in found and "calls-2-3-4" in found:
            pairs = list(zip(found[other], found["calls-2-3-4"], strict=True))
            pairs.append(([row for before, _ in pairs for row in before], [row for _, after in pairs for row in after]))
            lines.append(f"| calls-2-3-4 over {other} | " + " | ".join(gain(*pair) for pair in pairs) + " |")
    return "\n".join(lines)


def gain(before: Sequence[Graded], after: Sequence[Graded]) -> str:
    """Paired by problem, with its 95 % interval over problems."""
    estimates = compare(before, after)
    return text(next(one for one in estimates if "bootstrap" not in one.name))


def _words() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--only", nargs="+", metavar="ARM", help=f"some of {', '.join(arms(3))}")
    parser.add_argument("--steps", type=int, default=36, help="of RL, at most")
    parser.add_argument(
        "--minutes", type=float, default=4.0, help="of RL, at most; what the last checkpoint holds counts"
    )
    parser.add_argument("--sft-tokens", type=int, default=1_300_000)
    parser.add_argument("--problems", type=int, default=330)
    parser.add_argument("--threads", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    main()
