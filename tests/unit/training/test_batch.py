"""Planning and laying out micro-batches; batches of SFT."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thincode.training import Row
from thincode.training.batch import (
    BatchSize,
    Example,
    Layout,
    collate,
    epoch_batches,
    plan,
    supervised_batches,
    supervised_updates,
)


def row(ids: list[int], weight: list[float]) -> Row:
    column = np.array(weight, dtype=np.float32)
    return Row(ids=np.array(ids, dtype=np.int32), behavior=-column, advantage=column * 2, weight=column)


@settings(deadline=None)
@given(
    lengths=st.lists(st.integers(1, 40), max_size=30),
    ranks=st.integers(1, 4),
    layout=st.sampled_from(list(Layout)),
)
def test_a_plan_places_each_row_once_and_deals_evenly(lengths: list[int], ranks: int, layout: Layout) -> None:
    shares = plan(lengths, micro_tokens=64, ranks=ranks, layout=layout)
    assert len(shares) == ranks
    assert len({len(share) for share in shares}) == 1
    assert sorted(index for share in shares for micro in share for index in micro) == list(range(len(lengths)))
    for micro in (micro for share in shares for micro in share if len(micro) > 1):
        inside = [lengths[index] for index in micro]
        assert (max(inside) * len(inside) if layout is Layout.PADDED else sum(inside)) <= 64


@pytest.mark.parametrize("layout", list(Layout))
def test_a_row_longer_than_the_budget_stands_alone_uncut(layout: Layout) -> None:
    assert plan([5, 100, 5], micro_tokens=20, ranks=1, layout=layout) == [[[1], [0, 2]]]


def test_one_large_micro_batch_is_halved_for_two_ranks() -> None:
    assert plan([4, 4, 4, 4], micro_tokens=100, ranks=2, layout=Layout.PADDED) == [[[0, 2]], [[1, 3]]]


def test_one_row_for_two_ranks_leaves_one_empty() -> None:
    assert plan([4], micro_tokens=100, ranks=2, layout=Layout.PADDED) == [[[0]], [[]]]


def test_each_kept_position_predicts_the_next_token_of_its_row() -> None:
    rows = [row([11, 12, 13], [0, 0, 0.5]), row([21, 22, 23, 24], [0, 0.25, 0, 0.25])]
    padded = collate(rows, layout=Layout.PADDED)
    assert padded.ids_BT.tolist() == [[11, 12, 13, 0], [21, 22, 23, 24]]
    assert padded.position_BT is None
    assert padded.predicts_BT.tolist() == [[False, True, False, False], [True, False, True, False]]
    packed = collate(rows, layout=Layout.PACKED)
    assert packed.ids_BT.tolist() == [[11, 12, 13, 21, 22, 23, 24]]
    assert packed.position_BT is not None
    assert packed.position_BT.tolist() == [[0, 1, 2, 0, 1, 2, 3]]
    assert packed.predicts_BT.tolist() == [[False, True, False, True, False, True, False]]
    for micro in (padded, packed):
        assert micro.target_K.tolist() == [13, 22, 24]
        assert micro.weight_K.tolist() == [0.5, 0.25, 0.25]
        assert micro.advantage_K.tolist() == [1.0, 0.5, 0.5]
        assert micro.behavior_K.tolist() == [-0.5, -0.25, -0.25]


@pytest.mark.parametrize("layout", list(Layout))
@pytest.mark.parametrize("rows", [[], [row([5, 6, 7], [0, 0, 0])]], ids=["no rows", "nothing trained"])
def test_an_empty_share_still_has_one_position_of_weight_zero(rows: list[Row], layout: Layout) -> None:
    micro = collate(rows, layout=layout)
    assert micro.predicts_BT.sum() == 1
    assert micro.weight_K.tolist() == [0.0]


@settings(deadline=None)
@given(lengths=st.lists(st.integers(1, 50), min_size=1, max_size=60), seed=st.integers(0, 9), epoch=st.integers(0, 3))
def test_an_epoch_has_each_example_once_inside_the_budget(lengths: list[int], seed: int, epoch: int) -> None:
    batches = epoch_batches(lengths, size=BatchSize(64), seed=seed, epoch=epoch)
    assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
    assert all(len(batch) == 1 or sum(lengths[index] for index in batch) <= 64 for batch in batches)
    assert batches == epoch_batches(lengths, size=BatchSize(64), seed=seed, epoch=epoch)


def test_examples_of_like_length_share_a_batch_when_asked() -> None:
    lengths = np.random.default_rng(0).integers(60, 150, 400).tolist()

    def padding(alike: int) -> float:
        batches = epoch_batches(lengths, size=BatchSize(1024), seed=0, epoch=0, alike=alike)
        assert sorted(index for batch in batches for index in batch) == list(range(400))
        assert batches == epoch_batches(lengths, size=BatchSize(1024), seed=0, epoch=0, alike=alike)
        padded = sum(len(batch) * max(lengths[index] for index in batch) for batch in batches)
        return padded / sum(lengths)

    assert padding(1) > 1.25
    assert padding(8) < 1.15


def test_a_batch_can_be_so_many_examples() -> None:
    batches = epoch_batches([4] * 10, size=BatchSize(examples=4), seed=0, epoch=0)
    assert [len(batch) for batch in batches] == [4, 4, 2]


def test_weights_say_how_often_an_epoch_has_an_example() -> None:
    weights = [2.0, 1.0, 0.5, 0.0]
    counts = np.zeros(4)
    for epoch in range(200):
        batches = epoch_batches([1] * 4, size=BatchSize(examples=3), seed=0, epoch=epoch, weights=weights)
        drawn = np.bincount([index for batch in batches for index in batch], minlength=4)
        assert (drawn[0], drawn[1], drawn[3]) == (2, 1, 0)
        assert drawn[2] <= 1
        counts += drawn
    assert 70 < counts[2] < 130


def test_epochs_differ_in_order() -> None:
    lengths = [4] * 30
    assert epoch_batches(lengths, size=BatchSize(8), seed=0, epoch=0) != epoch_batches(
        lengths, size=BatchSize(8), seed=0, epoch=1
    )


@pytest.mark.parametrize(
    ("limits", "steps"),
    [
        ({"epochs": 2}, 10),
        ({"epochs": 2, "max_steps": 7}, 7),
        ({"epochs": None, "max_steps": 23}, 23),
        ({"epochs": None, "max_tokens": 30}, 4),  # 8 tokens a batch: the fourth passes 30
        ({"epochs": 1, "max_steps": 9, "max_tokens": 99}, 5),
    ],
)
def test_training_ends_at_the_first_limit(limits: dict[str, int | None], steps: int) -> None:
    assert len(supervised_batches([4] * 10, size=BatchSize(8), seed=0, **limits)) == steps  # type: ignore[arg-type]


def test_supervised_tokens_weigh_the_same_in_their_batch() -> None:
    examples = [
        Example(ids=np.arange(3, dtype=np.int32), mask=np.array([False, True, True])),
        Example(ids=np.arange(4, dtype=np.int32), mask=np.array([False, False, True, True])),
    ]
    (update,) = supervised_updates(examples, [[0, 1]], first_step=0)
    assert [found.weight.tolist() for found in update.rows] == [[0, 0.25, 0.25], [0, 0, 0.25, 0.25]]
    assert update.last


def test_supervised_updates_go_on_where_they_stopped() -> None:
    examples = [Example(ids=np.full(3, i, dtype=np.int32), mask=np.ones(3, dtype=np.bool_)) for i in range(4)]
    batches = [[0], [1], [2], [3]]
    assert [int(update.rows[0].ids[0]) for update in supervised_updates(examples, batches, first_step=2)] == [2, 3]
