"""What a step's trajectories look like: the figures one watches while training."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..grading import Graded, Reward
from ..rollout.episode import CALLS_SPENT, UNAVAILABLE
from ..trajectory import Author, BlockStatus, EndReason, SegmentKind, Trajectory

Pair = tuple[Graded, Reward]
_WRITTEN = (SegmentKind.PLAN, SegmentKind.THOUGHT, SegmentKind.ANSWER)


def features(graded: Graded) -> dict[str, float]:
    """What resampling may look at."""
    trajectory = graded.trajectory
    blocks = trajectory.blocks
    refused = _refused(trajectory)
    asked = len(blocks) + refused
    failed = refused + sum(s.block is not None and s.block.status is not BlockStatus.OK for s in blocks)
    written = "".join(segment.text for segment in trajectory.segments if segment.kind in _WRITTEN)
    repeats = max(written.count("\\boxed{") - 1, 0)
    return {
        "tool_error_share": failed / asked if asked else 0.5,
        "answer_repeat_share": min(repeats / (len(blocks) + 1), 1.0),
        "truncated": float(trajectory.end in (EndReason.CONTEXT, EndReason.SECONDS)),
        "length": float(_written(trajectory, Author.MODEL)),
    }


def _refused(trajectory: Trajectory) -> int:
    """Calls that were answered without being run: of a tool that is not here, or in JSON that can't be read."""
    return sum(
        code.kind is SegmentKind.CODE
        and code.block is None
        and told.kind is SegmentKind.NOTICE
        and told.content not in (CALLS_SPENT, UNAVAILABLE)
        for code, told in itertools.pairwise(trajectory.segments)
    )


def of_step(scored: Sequence[Pair]) -> dict[str, Any]:
    """Rewards, accuracy, groups without signal, lengths, calls, and how trajectories and blocks ended.

    Shares of what was lost, or answered without the interpreter, are of all trajectories; the rest is of the others.
    """
    kept = [pair for pair in scored if pair[0].trajectory.with_interpreter]
    groups: dict[str, list[tuple[bool, float]]] = defaultdict(list)
    for graded, reward in kept:
        groups[graded.problem.id].append((graded.grade.correct, reward.total))
    flat = [group for group in groups.values() if len({total for _, total in group}) == 1]
    parts: dict[str, list[float]] = defaultdict(list)
    for _, reward in kept:
        for name, value in reward.parts.items():
            parts[name].append(value)
    lost = sum(graded.trajectory.lost for graded, _ in scored)
    statuses = [segment.block.status for graded, _ in scored for segment in graded.trajectory.blocks if segment.block]
    return {
        "reward_mean": _mean([reward.total for _, reward in kept]),
        "reward_sd": _sd([reward.total for _, reward in kept]),
        **{f"reward/{name}": _mean(values) for name, values in parts.items()},
        "groups": len(groups),
        "zero_right_share": _share(sum(all(right for right, _ in group) for group in flat), len(groups)),
        "zero_wrong_share": _share(sum(not any(right for right, _ in group) for group in flat), len(groups)),
        "lost_share": _share(lost, len(scored)),
        "lost_block_share": _share(statuses.count(BlockStatus.LOST), len(statuses)),
        "unserved_share": _share(len(scored) - len(kept) - lost, len(scored)),
        **of_validation(kept),
        "generate_s": round(max((g.trajectory.generate_s for g, _ in kept), default=0.0), 3),
        "execute_s": round(sum(g.trajectory.execute_s for g, _ in kept), 3),
    }


def of_validation(scored: Sequence[Pair]) -> dict[str, Any]:
    """Accuracy, lengths, code use and pass rate of some trajectories (ThinC Fig. 3, CIR Fig. 3 and 4)."""
    rows = [graded for graded, _ in scored if graded.trajectory.with_interpreter]
    blocks = [segment.block for row in rows for segment in row.trajectory.blocks if segment.block is not None]
    ends = [row.trajectory.end for row in rows]
    return {
        "n": len(rows),
        "accuracy": _mean([float(row.grade.correct) for row in rows]),
        "response_tokens": _mean([float(_written(row.trajectory, Author.MODEL)) for row in rows]),
        "output_tokens": _mean([float(_written(row.trajectory, Author.INTERPRETER)) for row in rows]),
        "calls": _share(len(blocks), len(rows)),
        "block_pass_rate": _share(sum(block.status is BlockStatus.OK for block in blocks), len(blocks)),
        "limit_share": _share(sum(block.status is BlockStatus.LIMIT for block in blocks), len(blocks)),
        "code_use": _share(sum(bool(row.trajectory.blocks) for row in rows), len(rows)),
        "truncated_share": _share(sum(end in (EndReason.CONTEXT, EndReason.SECONDS) for end in ends), len(rows)),
        "ends": {reason.value: ends.count(reason) for reason in EndReason if reason in ends},
    }


def _written(trajectory: Trajectory, author: Author) -> int:
    return 0 if trajectory.tokens is None else int(np.count_nonzero(trajectory.tokens.author == author))


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None


def _sd(values: Sequence[float]) -> float | None:
    return float(np.std(values)) if values else None


def _share(count: int, of: int) -> float | None:
    return count / of if of else None
