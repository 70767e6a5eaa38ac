# ruff: noqa: N815  (fields carry shape suffixes, as arguments do)
"""From rows to micro-batches, and from supervised examples to updates: pure, on numpy, the same on every rank.

Denominators live in the rows' weights, so no split into micro-batches, ranks or paddings changes an update.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from . import Row, Update

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Layout(StrEnum):
    """How the rows of a micro-batch lie beside each other."""

    PADDED = "padded"
    """One row a line, padded to the longest. The faster one on a CPU."""
    PACKED = "packed"
    """All rows in one line without padding, told apart by their positions. The better one with FlashAttention."""


@dataclass(frozen=True, eq=False)
class MicroBatch:
    """What one forward and backward needs. B lines of T tokens; K of their positions predict a token that is trained."""

    ids_BT: NDArray[np.int64]
    position_BT: NDArray[np.int64] | None
    """Place of each token in its row, when packed. None when padded: padding stands behind, where no causal attention
    looks, so such a batch needs neither positions nor an attention mask."""
    predicts_BT: NDArray[np.bool_]
    """Whether the *next* token of the same row is trained: the shift is made here and nowhere else."""
    target_K: NDArray[np.int64]
    """The tokens predicted, in the order of `predicts_BT`."""
    behavior_K: NDArray[np.float32]
    advantage_K: NDArray[np.float32]
    weight_K: NDArray[np.float32]
    old_K: NDArray[np.float32] | None = None
    reference_K: NDArray[np.float32] | None = None


def plan(lengths: Sequence[int], *, micro_tokens: int, ranks: int, layout: Layout) -> list[list[list[int]]]:
    """For each rank, its micro-batches as lists of row indices; every rank gets the same number of micro-batches.

    A micro-batch holds at most `micro_tokens` tokens, padding counted; a longer row stands alone and is never cut. Where
    micro-batches can't be dealt evenly, large ones are halved, and what is still missing is an empty micro-batch, which
    `collate` fills with a row of weight zero.
    """
    order = sorted(range(len(lengths)), key=lambda index: (-lengths[index], index))
    bins: list[list[int]] = []
    used: list[int] = []
    for index in order:
        for number, inside in enumerate(bins):
            # Rows come longest first, so a padded bin is as wide as its first row.
            width = lengths[inside[0]] if layout is Layout.PADDED else lengths[index]
            if used[number] + width <= micro_tokens:
                inside.append(index)
                used[number] += width
                break
        else:
            bins.append([index])
            used.append(lengths[index])
    while bins and len(bins) % ranks and max(map(len, bins)) > 1:
        largest = max(range(len(bins)), key=lambda number: (len(bins[number]), -number))
        whole = bins.pop(largest)
        bins += [whole[::2], whole[1::2]]
    bins += [[] for _ in range(-len(bins) % ranks)]
    return [bins[rank::ranks] for rank in range(ranks)]


def collate(rows: Sequence[Row], *, layout: Layout, pad_id: int = 0) -> MicroBatch:
    """Lay rows out; without rows, one row of weight zero, so that a rank with nothing to do still takes part."""
    rows = rows or [_dummy(pad_id)]
    lengths = [len(row.ids) for row in rows]
    width = max(lengths) if layout is Layout.PADDED else sum(lengths)
    lines = len(rows) if layout is Layout.PADDED else 1
    ids_BT = np.full((lines, width), pad_id, dtype=np.int64)
    position_BT = np.zeros((lines, width), dtype=np.int64)
    predicts_BT = np.zeros((lines, width), dtype=np.bool_)
    start = 0
    for number, (row, length) in enumerate(zip(rows, lengths, strict=True)):
        line = number if layout is Layout.PADDED else 0
        here = slice(start, start + length)
        ids_BT[line, here] = row.ids
        position_BT[line, here] = np.arange(length)
        predicts_BT[line, start : start + length - 1] = _kept(row)[1:]
        start += 0 if layout is Layout.PADDED else length
    return MicroBatch(
        ids_BT=ids_BT,
        position_BT=position_BT if layout is Layout.PACKED else None,
        predicts_BT=predicts_BT,
        target_K=np.concatenate([row.ids[_kept(row)] for row in rows]).astype(np.int64),
        behavior_K=np.concatenate([row.behavior[_kept(row)] for row in rows]),
        advantage_K=np.concatenate([row.advantage[_kept(row)] for row in rows]),
        weight_K=np.concatenate([row.weight[_kept(row)] for row in rows]),
        old_K=_optional(rows, [row.old for row in rows]),
        reference_K=_optional(rows, [row.reference for row in rows]),
    )


def _optional(rows: Sequence[Row], columns: Sequence[NDArray[np.float32] | None]) -> NDArray[np.float32] | None:
    """A column that all rows have, or none."""
    there = [column for column in columns if column is not None]
    if len(there) < len(rows):
        return None
    return np.concatenate([column[_kept(row)] for column, row in zip(there, rows, strict=True)])


def _kept(row: Row) -> NDArray[np.bool_]:
    """Trained tokens; in a row without any, its last one, with weight zero, so that no forward is empty."""
    kept = row.weight > 0
    kept[-1] |= not kept.any()
    return kept


def _dummy(pad_id: int) -> Row:
    zeros = np.zeros(2, dtype=np.float32)
    return Row(ids=np.full(2, pad_id, dtype=np.int32), behavior=zeros, advantage=zeros, weight=zeros)


# --- supervised -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Example:
    """One trajectory to imitate. Both arrays have length T."""

    ids: NDArray[np.int32]
    mask: NDArray[np.bool_]
    """Tokens to train, as `trajectory.tokens.loss_mask` gives them."""


@dataclass(frozen=True)
class BatchSize:
    """When a batch is full: at so many tokens (prompts and outputs counted), or at so many examples."""

    tokens: int | None = None
    examples: int | None = None

    def holds(self, examples: int, tokens: int) -> bool:
        """Whether a batch may have so many."""
        if self.examples is not None:
            return examples <= self.examples
        return self.tokens is None or tokens <= self.tokens

    def times(self, factor: int) -> BatchSize:
        """So many batches in one."""
        return BatchSize(*(None if size is None else size * factor for size in (self.tokens, self.examples)))


def epoch_batches(
    lengths: Sequence[int],
    *,
    size: BatchSize,
    seed: int,
    epoch: int,
    alike: int = 1,
    weights: Sequence[float] | None = None,
) -> list[list[int]]:
    """One epoch as batches of example indices, in an order drawn from (`seed`, `epoch`).

    A batch holds at least one example, and as many as `size` allows.

    Args:
        lengths: tokens of each example.
        size: of a batch.
        seed: of the order.
        epoch: counted from 0.
        alike: examples of so many batches are sorted by length before they are cut into batches, and the batches
            shuffled: less padding, batches less mixed. 1 sorts nothing.
        weights: how often an epoch has each example; 0.5 stands for every other epoch, on average. None: each once.
    """
    rng = np.random.default_rng([seed, epoch])
    if weights is None:
        order = rng.permutation(len(lengths)).tolist()
    else:
        share = np.asarray(weights, dtype=np.float64)
        times = (share + rng.random(len(lengths))).astype(np.int64)  # the fraction is drawn
        order = rng.permutation(np.repeat(np.arange(len(lengths)), times)).tolist()
    if alike == 1:
        return _cut(order, lengths, size)
    pools = _cut(order, lengths, size.times(alike))
    order = [index for pool in pools for index in sorted(pool, key=lambda index: lengths[index])]
    batches = _cut(order, lengths, size)
    return [batches[number] for number in rng.permutation(len(batches)).tolist()]


def _cut(order: Sequence[int], lengths: Sequence[int], size: BatchSize) -> list[list[int]]:
    parts: list[list[int]] = []
    tokens = 0
    for index in order:
        if not parts or not size.holds(len(parts[-1]) + 1, tokens + lengths[index]):
            parts.append([])
            tokens = 0
        parts[-1].append(index)
        tokens += lengths[index]
    return parts


def supervised_batches(
    lengths: Sequence[int],
    *,
    size: BatchSize,
    seed: int,
    epochs: int | None,
    max_steps: int | None = None,
    max_tokens: int | None = None,
    alike: int = 1,
    weights: Sequence[float] | None = None,
) -> list[list[int]]:
    """All batches of a run, in order; it ends at whichever of the three limits comes first (one must be given)."""
    batches: list[list[int]] = []
    tokens = epoch = 0
    while lengths and (epochs is None or epoch < epochs):
        for batch in epoch_batches(lengths, size=size, seed=seed, epoch=epoch, alike=alike, weights=weights):
            if (max_steps is not None and len(batches) >= max_steps) or (
                max_tokens is not None and tokens >= max_tokens
            ):
                return batches
            batches.append(batch)
            tokens += sum(lengths[index] for index in batch)
        epoch += 1
    return batches


def supervised_updates(
    examples: Sequence[Example], batches: Sequence[Sequence[int]], *, first_step: int
) -> Iterator[Update]:
    """One update a batch from `first_step` on; each trained token of a batch weighs the same, and they sum to 1."""
    for step in range(first_step, len(batches)):
        batch = [examples[index] for index in batches[step]]
        count = max(sum(int(example.mask[1:].sum()) for example in batch), 1)
        yield Update(rows=[_supervised_row(example, 1.0 / count) for example in batch], last=True, step=step)


def _supervised_row(example: Example, share: float) -> Row:
    zeros = np.zeros(len(example.ids), dtype=np.float32)
    weight = (example.mask * share).astype(np.float32)
    weight[0] = 0.0  # nothing stands before the first token to predict it
    return Row(ids=example.ids, behavior=zeros, advantage=zeros, weight=weight)
