# ruff: noqa: N815  (fields carry shape suffixes, as arguments do)
"""A thousand small steps, drawn, for the comparison with verl. numpy alone, so that verl's own environment can draw them too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

COUNT = 1_000


@dataclass(frozen=True, eq=False)
class Case:
    """N rollouts of at most T tokens behind the prompt; arrays are padded with 0 on the right."""

    group_N: Any
    reward_N: Any
    """Of the whole trajectory."""
    mask_NT: Any
    """Tokens the model wrote."""
    credit_NT: Any
    """What is earned on the way; on trainable tokens only, and part of `reward_N`."""
    logprob_NT: Any
    old_NT: Any
    behavior_NT: Any
    reference_NT: Any
    advantage_NT: Any
    clip_low: float
    clip_high: float
    dual_clip: float
    cap: float


def case(number: int) -> Case:
    """Groups of two to four; rewards of 0 and 1, of ±1, or real ones; interpreter spans of any place and length."""
    rng = np.random.default_rng([2509, number])
    groups, samples, width = (int(rng.integers(low, high)) for low, high in ((2, 4), (2, 5), (3, 10)))
    count = groups * samples
    length_N = rng.integers(2, width + 1, count)
    inside_NT = np.arange(width) < length_N[:, None]
    mask_NT = inside_NT & (rng.random((count, width)) < rng.uniform(0.4, 1.0))
    mask_NT[np.arange(count), rng.integers(0, length_N)] = True
    kind = number % 3
    right_N = (rng.random(count) < rng.uniform(0.2, 0.8)).astype(float)
    reward_N = (right_N, 2 * right_N - 1, rng.normal(size=count))[kind]
    on_the_way = mask_NT & (rng.random((count, width)) < 0.2) if kind == 2 else np.zeros_like(mask_NT)
    shape = (count, width)
    behavior_NT = -rng.uniform(0.1, 4.0, shape)
    logprob_NT = behavior_NT + rng.normal(size=shape)
    return Case(
        group_N=np.repeat(np.arange(groups), samples),
        reward_N=reward_N,
        mask_NT=mask_NT,
        credit_NT=on_the_way * rng.normal(size=shape),
        logprob_NT=logprob_NT,
        old_NT=behavior_NT + 0.3 * rng.normal(size=shape),
        behavior_NT=behavior_NT,
        reference_NT=logprob_NT + 0.3 * rng.normal(size=shape),  # verl cuts larger penalties
        advantage_NT=rng.normal(size=shape) * mask_NT,
        clip_low=float(rng.choice([0.1, 0.2])),
        clip_high=float(rng.choice([0.2, 0.28])),
        dual_clip=float(rng.choice([3.0, 10.0])),
        cap=float(rng.choice([1.2, 2.0])),
    )
