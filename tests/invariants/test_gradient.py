"""The gradient of an update is the same however its rows are ordered, padded and split: 1e-6 relative, float32."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from thincode.settings import Kind, kinds
from thincode.training import Rollout, Row
from thincode.training.batch import Layout, collate, plan
from thincode.training.rows import updates
from training_cases import ROOM, algorithm, step_rollouts, tiny_model

pytestmark = [pytest.mark.train, pytest.mark.parametrize("name", kinds(ROOM))]
VALUES: dict[str, dict[str, Any]] = {"reinforce_pp": {"kl_in_reward": 0.01}, "grpo": {"kl_coef": 0.01}}


def rollouts(kind: Kind) -> list[Rollout]:
    """A made-up step, with a reference where the algorithm asks for one."""
    made = step_rollouts(3)
    if not kind.settings.uses_reference:
        return made
    from dataclasses import replace

    return [replace(one, reference=np.nan_to_num(one.tokens.logprob, nan=0.0) - 0.3) for one in made]


def rows(kind: Kind, step: Sequence[Rollout]) -> Sequence[Row]:
    (update,) = updates(kind, step, step=0, updates_per_step=1, seed=1)
    return update.rows


def gradient(kind: Kind, parts: Sequence[Sequence[Row]], layout: Layout = Layout.PADDED) -> Any:
    """Of one update, made in micro-batches."""
    import torch

    from thincode.training.logprobs import trained_logprobs

    model = tiny_model()
    for part in parts:
        micro = collate(part, layout=layout)
        columns = {
            "behavior_BT": micro.behavior_K,
            "advantage_BT": micro.advantage_K,
            "weight_BT": micro.weight_K,
            "reference_BT": micro.reference_K,
        }
        total = kind.module.loss(
            kind.settings,
            logprob_BT=trained_logprobs(model, micro, temperature=1.0)[None],
            **{key: torch.from_numpy(values)[None] for key, values in columns.items() if values is not None},
        ).total
        total.backward()
    return torch.cat([parameter.grad.flatten().double() for parameter in model.parameters()])


def assert_equal(found: Any, expected: Any) -> None:
    assert float(expected.norm()) > 1e-3
    assert float((found - expected).norm() / expected.norm()) <= 1e-6


def test_order_padding_and_micro_batches_leave_the_gradient(name: str) -> None:
    kind = algorithm(name, **VALUES.get(name, {}))
    step = rollouts(kind)
    made = rows(kind, step)
    whole = gradient(kind, [made])

    groups = {number: [one for one in step if one.group == number] for number in range(4)}
    turned = [one for number in (2, 0, 3, 1) for one in groups[number]]
    assert_equal(gradient(kind, [rows(kind, turned)]), whole)

    lengths = [len(row.ids) for row in made]
    for micro_tokens in (1, 96):
        parts = plan(lengths, micro_tokens=micro_tokens, ranks=1, layout=Layout.PADDED)[0]
        assert len(parts) > 1
        assert_equal(gradient(kind, [[made[index] for index in part] for part in parts]), whole)
    assert_equal(gradient(kind, [made], Layout.PACKED), whole)


def test_what_the_interpreter_printed_reaches_the_gradient_as_context_alone(name: str) -> None:
    """With other ids in an output the loss has the same trained tokens, weights and advantages."""
    kind = algorithm(name, **VALUES.get(name, {}))
    one, other = rollouts(kind), rollouts(kind)
    for rollout in other:
        rollout.tokens.ids[rollout.tokens.author == 2] = 5
    for left, right in zip(rows(kind, one), rows(kind, other), strict=True):
        assert np.array_equal(left.weight, right.weight)
        assert np.array_equal(left.advantage, right.advantage)
        assert np.array_equal(left.ids[left.weight > 0], right.ids[right.weight > 0])
