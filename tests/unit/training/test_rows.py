"""From a step's rollouts to its updates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from thincode.errors import InfrastructureError
from thincode.training import Rollout
from thincode.training.rows import updates
from training_cases import algorithm, group, step_rollouts, step_updates, tokens


def test_whole_groups_are_dealt_and_the_last_update_ends_the_step() -> None:
    made = step_updates(algorithm("grpo"), 4, updates_per_step=2)
    assert [update.last for update in made] == [False, True]
    assert [update.step for update in made] == [4, 4]
    assert [len(update.rows) for update in made] == [8, 8]
    ids = sorted(row.ids.tobytes() for update in made for row in update.rows)
    assert ids == sorted(rollout.tokens.ids.tobytes() for rollout in step_rollouts(4))


@pytest.mark.parametrize("name", ["grpo", "dapo"])
def test_weights_of_each_update_sum_to_one(name: str) -> None:
    for update in step_updates(algorithm(name), 0):
        assert sum(float(row.weight.sum()) for row in update.rows) == pytest.approx(1.0, rel=1e-5)


def test_the_split_is_drawn_from_seed_and_step() -> None:
    def first(seed: int, step: int) -> list[bytes]:
        made = updates(algorithm("grpo"), step_rollouts(0), step=step, updates_per_step=2, seed=seed)
        return [row.ids.tobytes() for row in made[0].rows]

    assert first(1, 0) == first(1, 0)
    assert len({tuple(first(seed, step)) for seed in range(3) for step in range(3)}) > 2


def test_fewer_groups_than_updates_make_fewer_updates() -> None:
    made = updates(algorithm("grpo"), group(0, [1.0, 0.0]), step=0, updates_per_step=4, seed=0)
    assert [update.last for update in made] == [True]


@pytest.mark.parametrize("name", ["grpo", "dapo"])
@pytest.mark.parametrize("rollouts", [[], group(0, [1.0, 1.0]) + group(1, [0.0, 0.0])], ids=["nothing", "no signal"])
def test_a_step_without_signal_is_one_update_without_rows(name: str, rollouts: list[Rollout]) -> None:
    made = updates(algorithm(name), rollouts, step=3, updates_per_step=2, seed=0)
    assert [(len(update.rows), update.last, update.step) for update in made] == [(0, True, 3)]


def test_a_group_without_signal_dilutes_its_update_when_kept() -> None:
    rollouts = group(0, [1.0, 0.0]) + group(1, [1.0, 1.0])
    (kept,) = updates(algorithm("grpo"), rollouts, step=0, updates_per_step=1, seed=0)
    (dropped,) = updates(algorithm("grpo", zero_advantage_groups="drop"), rollouts, step=0, updates_per_step=1, seed=0)
    assert float(kept.rows[0].weight.max()) == pytest.approx(float(dropped.rows[0].weight.max()) / 2)


def test_a_rollout_outside_the_update_has_no_row_but_moves_the_mean() -> None:
    rollouts = group(0, [1.0, 0.0, 0.0, 0.0])
    rollouts[1] = replace(rollouts[1], in_update=False)
    (update,) = updates(algorithm("grpo"), rollouts, step=0, updates_per_step=1, seed=0)
    assert len(update.rows) == 3
    assert float(update.rows[0].advantage.max()) == pytest.approx(np.sqrt(3.0), rel=1e-5)


def test_columns_are_zero_where_nothing_is_trained() -> None:
    rollouts = [replace(r, tokens=tokens("ppmmiidm", seed=i)) for i, r in enumerate(group(0, [1.0, 0.0]))]
    (update,) = updates(algorithm("grpo"), rollouts, step=0, updates_per_step=1, seed=0)
    for row in update.rows:
        for column in (row.behavior, row.advantage, row.weight):
            assert (column != 0).tolist() == [False, False, True, True, False, False, False, True]


def test_a_sampled_token_without_logprob_is_named() -> None:
    broken = tokens("ppmm")
    broken.logprob[3] = np.nan
    rollouts = group(5, [1.0, 0.0])
    rollouts[0] = replace(rollouts[0], tokens=broken)
    with pytest.raises(InfrastructureError, match=r"step 2: a rollout of group 5 .* without a finite log-probability"):
        updates(algorithm("grpo"), rollouts, step=2, updates_per_step=1, seed=0)


def test_a_rollout_without_prompt_is_named() -> None:
    rollouts = group(5, [1.0, 0.0], "mmm")
    with pytest.raises(InfrastructureError, match="no prompt"):
        updates(algorithm("grpo"), rollouts, step=2, updates_per_step=1, seed=0)
