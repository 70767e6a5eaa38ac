"""What every algorithm keeps: pure, blind to masked tokens, indifferent to padding and to the order of groups."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from thincode.settings import dump, kinds, parse
from thincode.training.algorithms import _groups
from training_cases import ROOM, algorithm, group, step_rollouts

pytestmark = pytest.mark.parametrize("name", kinds(ROOM))


def test_settings_survive_a_recipe(name: str) -> None:
    settings = algorithm(name).settings
    assert parse(type(settings), dump(settings)) == settings


def test_selection_is_ascending_and_inside_the_step(name: str) -> None:
    kind, rollouts = algorithm(name), step_rollouts(0)
    keep = list(kind.module.select(kind.settings, rollouts).keep)
    assert keep == sorted(set(keep))
    assert set(keep) <= set(range(len(rollouts)))


def test_a_step_without_rollouts_is_no_error(name: str) -> None:
    kind = algorithm(name)
    assert list(kind.module.select(kind.settings, []).keep) == []
    assert kind.module.advantages(kind.settings, []) == []
    assert kind.module.weights(kind.settings, []) == []


def test_tokens_the_model_did_not_write_get_nothing(name: str) -> None:
    kind, rollouts = algorithm(name), step_rollouts(1)
    advantages = kind.module.advantages(kind.settings, rollouts)
    weights = kind.module.weights(kind.settings, rollouts)
    for rollout, advantage, weight in zip(rollouts, advantages, weights, strict=True):
        masked = rollout.tokens.author != 1
        assert advantage.shape == weight.shape == (len(rollout.tokens),)
        assert advantage.dtype == weight.dtype == np.float32
        assert not advantage[masked].any()
        assert not weight[masked].any()
        assert (weight[~masked] > 0).all()


def test_what_the_interpreter_printed_changes_no_number(name: str) -> None:
    kind, rollouts = algorithm(name), step_rollouts(1)
    other = copy.deepcopy(rollouts)
    for rollout in other:
        rollout.tokens.ids[rollout.tokens.author == 2] = 2
    for function in (kind.module.advantages, kind.module.weights):
        for left, right in zip(function(kind.settings, rollouts), function(kind.settings, other), strict=True):
            assert np.array_equal(left, right)


def test_the_order_of_groups_does_not_matter(name: str) -> None:
    kind, rollouts = algorithm(name), step_rollouts(2)
    blocks = list(_groups.members(rollouts).values())
    order = [index for block in reversed(blocks) for index in block]
    turned = [rollouts[index] for index in order]
    for function in (kind.module.advantages, kind.module.weights):
        here, there = function(kind.settings, rollouts), function(kind.settings, turned)
        for place, index in enumerate(order):
            assert there[place] == pytest.approx(here[index], abs=1e-7)


def test_rollouts_outside_the_update_weigh_nothing(name: str) -> None:
    from dataclasses import replace

    kind = algorithm(name)
    rollouts = [replace(rollout, in_update=False) for rollout in group(0, [1.0, 0.0])] + group(1, [1.0, 0.0])
    weights = kind.module.weights(kind.settings, rollouts)
    assert [bool(values.any()) for values in weights] == [False, False, True, True]


@pytest.mark.train
def test_masked_tokens_get_no_gradient_whatever_they_hold(name: str) -> None:
    import torch

    kind = algorithm(name)
    logprob = torch.tensor([[-1.0, -2.0, float("-inf"), -3.0]], requires_grad=True)
    loss = kind.module.loss(
        kind.settings,
        logprob_BT=logprob,
        behavior_BT=torch.tensor([[-1.1, -1.9, 0.0, float("nan")]]),
        advantage_BT=torch.tensor([[1.0, -1.0, 5.0, 5.0]]),
        weight_BT=torch.tensor([[0.5, 0.5, 0.0, 0.0]]),
    )
    loss.total.backward()
    assert logprob.grad is not None
    assert (logprob.grad != 0).tolist() == [[True, True, False, False]]
    assert all(np.isfinite(value) for value in loss.stats.values())


@pytest.mark.train
def test_padding_and_splitting_change_no_loss(name: str) -> None:
    import torch

    kind = algorithm(name)
    torch.manual_seed(0)
    shape = (4, 9)
    columns = {
        "logprob_BT": -torch.rand(shape) * 3,
        "behavior_BT": -torch.rand(shape) * 3,
        "advantage_BT": torch.randn(shape),
        "weight_BT": torch.rand(shape) * (torch.rand(shape) > 0.3),
    }
    whole = kind.module.loss(kind.settings, **columns)
    padded = {key: torch.nn.functional.pad(value, (0, 5)) for key, value in columns.items()}
    rows = [kind.module.loss(kind.settings, **{k: v[i : i + 1] for k, v in columns.items()}) for i in range(4)]
    for parts in ([kind.module.loss(kind.settings, **padded)], rows):
        assert float(sum(part.total for part in parts)) == pytest.approx(float(whole.total), rel=1e-5)
        for key, value in whole.stats.items():
            assert sum(part.stats[key] for part in parts) == pytest.approx(value, rel=1e-5)
