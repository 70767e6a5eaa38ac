"""Does RL teach what SFT can't? The demo over several seeds, beside the control that spends RL's time on more SFT.

    python perf/learning.py --out runs/learning --seeds 1 2 3            # resumable; about half an hour a seed on one core

For each seed: the demo (distill, SFT, RL in three stages), then the control (the SFT model trained on for as many seconds as
RL took, on fresh trajectories of the same teacher, at half the rate), then RL from the control. All models answer the same
held-out problems: parameters never trained on, a third of them in wordings never trained on; T = 1, two samples each, greedy
once, and once with the outputs of another problem of the family. Prints a Markdown table; gains are paired by problem.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from thincode.evaluation import Estimate
from thincode.evaluation.paired import compare
from thincode.evaluation.scorecard import read
from thincode.evaluation.tables import text
from thincode.grading import Graded
from thincode.grading.records import graded_from_record
from thincode.trajectory.store import read as read_records

SFT_TOKENS_S = 8_000
"""Tokens a second of SFT on one thread, by which RL's seconds become the control's tokens; see `--tokens-per-s`."""


def main() -> None:
    words = _words()
    for seed in words.seeds:
        folder = words.out / f"seed-{seed}"
        demo, control = folder / "demo", folder / "control"
        thincode("run", "tiny/demo", f"seed={seed}", "evaluate=null", f"threads={words.threads}", out=demo)
        rl_s = json.loads((demo / "timing.json").read_text())["rl"]
        tokens = round(rl_s * words.tokens_per_s)
        thincode(
            "run", "tiny/demo", f"seed={seed}", "evaluate=null", f"threads={words.threads}",
            f"distill.problems.seed={100 + seed}", f"sft.model.path={demo / 'sft' / 'model'}",
            f"sft.train.max_tokens={tokens}", "sft.train.optimizer.lr_matrices=1.5e-2", "sft.train.optimizer.lr=4e-3",
            out=control,
        )  # fmt: skip
        for name, model in models(demo, control).items():
            thincode(
                "eval", "tiny/demo", f"seed={seed}", f"threads={words.threads}", f"evaluate.problems.count={words.problems}",
                f"evaluate.problems.seed={1000 + seed}", "--model", str(model), out=folder / name,
            )  # fmt: skip
        print(f"seed {seed}: RL took {rl_s:.0f} s, the control saw {tokens} more tokens", flush=True)
    print(table(words.out, words.seeds))


def models(demo: Path, control: Path) -> dict[str, Path]:
    return {
        "sft": demo / "sft" / "model",
        "rl": demo / "rl" / "model",
        "more-sft": control / "sft" / "model",
        "more-sft-rl": control / "rl" / "model",
    }


def thincode(*arguments: str, out: Path) -> None:
    """Run a verb, or go on with it where it stopped."""
    if (out / "done.json").exists():
        return
    resume = ["--resume"] if out.exists() else []
    subprocess.run(
        [sys.executable, "-m", "thincode", *arguments, "--out", str(out), *resume], check=True, stdout=sys.stderr
    )


def rows(folder: Path, seed: int, arm: str = "") -> list[Graded]:
    """Graded rows whose problems are told apart by seed, so that seeds can be pooled."""
    found = [graded_from_record(one.trajectory, one.annotations) for one in read_records(folder / arm, ids=False)]
    return [replace(row, problem=replace(row.problem, id=f"{seed}:{row.problem.id}")) for row in found]


def table(out: Path, seeds: Sequence[int]) -> str:
    """Markdown: accuracy of each model, then paired gains, by seed and pooled."""
    names = ("sft", "rl", "more-sft", "more-sft-rl")
    lines = [
        "| | " + " | ".join([*(f"seed {seed}" for seed in seeds), "pooled"]) + " |",
        "|---" * (len(seeds) + 2) + "|",
    ]
    for arm, title in (("", "T = 1"), ("greedy", "greedy"), ("swapped", "outputs swapped")):
        for name in names:
            cells = [accuracy(rows(out / f"seed-{seed}" / name, seed, arm)) for seed in seeds]
            pooled = accuracy([row for seed in seeds for row in rows(out / f"seed-{seed}" / name, seed, arm)])
            lines.append(f"| {name}, {title} | " + " | ".join([*cells, pooled]) + " |")
    for before, after in (("sft", "rl"), ("sft", "more-sft"), ("more-sft", "rl"), ("more-sft", "more-sft-rl")):
        for arm, title in (("", "T = 1"), ("greedy", "greedy")):
            lines += gains(out, seeds, before, after, arm, title)
    for figure in ("format adherence", "grounded", "grounded by chance"):
        for name in names:
            cards = [read(out / f"seed-{seed}" / name / "scorecard.json") for seed in seeds]
            cells = [text(next(one for one in card.estimates if one.name == figure)) for card in cards]
            lines.append(f"| {figure}, {name} | " + " | ".join([*cells, ""]) + " |")
    return "\n".join(lines)


def gains(out: Path, seeds: Sequence[int], before: str, after: str, arm: str, title: str) -> list[str]:
    """Paired gains of one model over another: overall, by wording, by whether the flaw shows, by family."""
    groups = ("unseen_wording", "flaw_shows", "family")
    columns: list[dict[str, Estimate]] = []
    pooled: tuple[list[Graded], list[Graded]] = ([], [])
    for seed in seeds:
        pair = tuple(rows(out / f"seed-{seed}" / name, seed, arm) for name in (before, after))
        columns.append({one.name: one for one in compare(*pair, groups=groups)})
        pooled[0].extend(pair[0])
        pooled[1].extend(pair[1])
    columns.append({one.name: one for one in compare(*pooled, groups=groups)})
    wanted = [
        name
        for name in columns[-1]
        if "bootstrap" not in name and ("/" not in name or (before, after) == ("sft", "rl"))
    ]
    return [
        f"| {after} − {before}, {title}: {name} | "
        + " | ".join(text(column[name]) if name in column else "" for column in columns)
        + " |"
        for name in wanted
    ]


def accuracy(found: Sequence[Graded]) -> str:
    return f"{100 * sum(row.grade.correct for row in found) / len(found):.1f} % of {len(found)}" if found else "–"


def _words() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--problems", type=int, default=880)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--tokens-per-s", type=int, default=SFT_TOKENS_S)
    return parser.parse_args()


if __name__ == "__main__":
    main()
