"""Run folders as the loops write them, small."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from thincode import atomic
from thincode.evaluation import Estimate, Scorecard
from thincode.runlog import Log, RunFolder
from thincode.trajectory import Address, Block, BlockStatus, EndReason, Segment, SegmentKind, Trajectory
from thincode.trajectory.store import Store

RECIPE = {"name": "small run", "seed": 5, "rl": {"algorithm": "grpo"}}


def trajectory(
    problem: str, *, sample: int = 0, answer: str = "42", text: str = "", stage: str = "evaluate/final"
) -> Trajectory:
    """A plan with `text` in it, a block that failed, one that ran, and an answer."""
    source = f"print({answer})"
    segments = (
        Segment(SegmentKind.PLAN, f"Print it. {text}\n", f"Print it. {text}"),
        Segment(
            SegmentKind.CODE,
            "```python\nprint(x)\n```\n",
            "print(x)",
            block=Block(BlockStatus.ERROR, "NameError", wall_s=0.25),
        ),
        Segment(SegmentKind.OUTPUT, f"```output\nNameError {text}\n```\n", f"NameError {text}"),
        Segment(SegmentKind.NOTICE, "One call remains.\n", "One call remains."),
        Segment(SegmentKind.CODE, f"```python\n{source}\n```\n", source, block=Block(BlockStatus.OK, wall_s=1.5)),
        Segment(SegmentKind.OUTPUT, f"```output\n{answer}\n```\n", answer),
        Segment(SegmentKind.ANSWER, f"So \\boxed{{{answer}}}.", f"So \\boxed{{{answer}}}."),
    )
    address = Address(5, stage, 0, problem, sample)
    return Trajectory(address, f"What is {answer}? {text}", "thinc", "", segments, EndReason.FINISHED, answer)


def notes(*, correct: bool = True, tags: Mapping[str, str] | None = None) -> dict[str, Any]:
    """What the loops write beside a trajectory."""
    grade = {"correct": correct, "reason": "equal_integer" if correct else "different"}
    return {"gold": "42", "tags": dict(tags or {"family": "echo"}), "grade": grade, "reward": {"total": float(correct)}}


def write_log(path: Path, records: Sequence[Any]) -> None:
    """All records of one log."""
    log = Log(path)
    for one in records:
        log.append(one)
    log.close()


def write_trajectories(folder: Path, trajectories: Sequence[Trajectory]) -> None:
    """A store."""
    with Store(folder) as store:
        for one in trajectories:
            store.append(one, notes())


def write_checkpoint(
    folder: Path, estimates: Sequence[Estimate], trajectories: Sequence[Trajectory], **details: Any
) -> None:
    """One evaluated checkpoint."""
    folder.mkdir(parents=True)
    card = Scorecard(folder.name, problems=10, samples=2, estimates=estimates, details=details)
    atomic.write_json(folder / "scorecard.json", dataclasses.asdict(card))
    write_trajectories(folder, trajectories)


def rl_rows(stages: Mapping[str, int], *, restart: bool = False) -> list[dict[str, Any]]:
    """A step a row; every third one validates."""
    rows, step = [], 0
    for stage, steps in stages.items():
        step = 0 if restart else step
        for _ in range(steps):
            step += 1
            row: dict[str, Any] = {
                "stage": stage,
                "step": step,
                "reward_mean": step / 50,
                "accuracy": step / 60,
                "novel": 2.5,
            }
            rows.append(row | ({"validation": {"accuracy": step / 70, "n": 10}} if step % 3 == 0 else {}))
    return rows


def write_pipeline(folder: Path, *, hostile: str = "") -> Path:
    """A whole pipeline run; `hostile` goes wherever outside text can reach a run folder."""
    RunFolder.create(folder, resolved={**RECIPE, "note": hostile}, resume=False).close()
    atomic.write_json(folder / "timing.json", {"distill": 30, "sft": 60.0, "rl": 270})
    (folder / "distill").mkdir()
    funnel = {
        "problems": 50,
        "sampled": 50,
        "dropped": {f"wrong answer{hostile}": 12, "a block failed": 7},
        "kept": 31,
        "by_source": {f"echo{hostile}": {"sampled": 50, "kept": 31, "lucky": 2}},
    }
    atomic.write_json(folder / "distill" / "funnel.json", funnel)
    write_log(folder / "sft" / "metrics.jsonl", [{"stage": "sft", "step": n, "loss": 3 / n} for n in range(1, 60)])
    write_log(folder / "rl" / "metrics.jsonl", rl_rows({"rl-1": 9, f"rl-2{hostile}": 9}))
    for order, (name, share) in enumerate({"base": 0.0, "sft": 0.4, "final": 0.725}.items()):
        estimates = [
            Estimate("avg@2", share, max(share - 0.1, 0), share + 0.1, n=10, note=hostile),
            Estimate(f"avg@2/family=echo{hostile}", share, n=5),
            Estimate("avg@2/family=sum", share, n=5),
            Estimate("grounded", share or None, n=10 if share else 0),
            Estimate("grounded by chance", 0.125, n=10),
            *(Estimate(f"recovery@{k}", None if k > 2 else 0.5, n=0 if k > 2 else 4) for k in range(1, 6)),
            Estimate("generated", 120 + order, n=20, unit="tokens"),
        ]
        said = [trajectory(f"p{n}{hostile}", text=hostile, stage=f"evaluate/{name}") for n in range(3)]
        write_checkpoint(folder / "evaluate" / f"{order}-{name}", estimates, said)
    gains = [dataclasses.asdict(Estimate("avg@2", 0.325, 0.2, 0.45, n=10))]
    atomic.write_json(folder / "evaluate" / "comparison.json", gains)
    return folder
