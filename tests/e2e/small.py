"""A pipeline still smaller than tiny/micro: one family, few steps; every step is there, and updates do move weights."""

from __future__ import annotations

DETERMINISTIC = ["schedule=deterministic", "threads=1", "rl.keep_ids=true"]

SMALL = [
    "tiny/micro",
    *DETERMINISTIC,
    "live=8",
    "distill.problems={kind: drills, families: [gcd], split: train, count: 60, seed: 1}",
    "sft.train.max_tokens=16000",
    "sft.train.checkpoint_every=5",
    "rl.problems={kind: drills, families: [gcd], split: rl, count: 20, seed: 2}",
    "rl.problems_per_step=2",
    # Length is rewarded too, because a model this young is never right.
    "rl.rewards=[{reward: correct}, {reward: {kind: overlong, limit: 200, cache: 190}, weight: 0.5}]",
    "rl.stages=[{steps: 1, context_tokens: 160, calls: 2},"
    " {steps: 2, context_tokens: 200, calls: 4, filter: {measure: last_epoch}}]",
    "rl.validation.problems={kind: drills, families: [gcd], split: heldout, count: 6, seed: 3}",
    "rl.validation.every=2",
    "evaluate.problems={kind: drills, families: [gcd], split: heldout, count: 12, seed: 4, wordings: mixed}",
    "evaluate.samples=1",
    "evaluate.base_problems=2",
    "evaluate.budget.context_tokens=200",
]
