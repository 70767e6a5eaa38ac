"""A KV cache in which every row stands at its own position: no left padding, no row waits for another.

Each layer holds one slab (rows, heads, length, head size). A forward says through `Window` which rows it is about and
which positions its columns have; keys and values are written there, and attention reads the rows from position 0 on. What
lies in a row beyond its own length is garbage that the mask of `Window` never shows: column with position p sees cells
0 … p. So forgetting a token is free, and a padding column may write anything just beyond the end of its row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers import Cache
from transformers.cache_utils import CacheLayerMixin

_LENGTH_STEP = 64
"""Slabs grow to multiples of this many positions."""
_READ_STEP = 16
"""Lengths that attention reads are rounded up to this: GPU kernels want aligned masks."""


@dataclass
class Window:
    """Where the next forward reads and writes; one for all layers."""

    rows: torch.Tensor
    """(B, 1): row of the slab for each row of the batch."""
    positions: torch.Tensor
    """(B, C): position of each column."""
    length: int
    """Positions read: past the largest position."""
    leading: int | None
    """B when the batch is the first B rows of the slab, which are then read without a copy."""
    rows_held: int
    """Rows that slabs must have."""
    length_held: int
    """Positions that slabs must have."""

    def mask(self) -> torch.Tensor:
        """What each column may see: (B, 1, C, length) booleans."""
        cell_L = torch.arange(self.length, device=self.positions.device)
        return cell_L <= self.positions[:, None, :, None]


class RaggedLayer(CacheLayerMixin):  # type: ignore[misc]
    """One layer's slab."""

    is_sliding = False
    keys: Any
    values: Any

    def __init__(self, window: Window) -> None:
        super().__init__()
        self.window = window

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """Bring the slabs to the size the window asks for, keeping what they hold."""
        self.keys = self._fit(self.keys, key_states)
        self.values = self._fit(self.values, value_states)
        self.is_initialized = True

    def _fit(self, slab: torch.Tensor | None, like: torch.Tensor) -> torch.Tensor:
        rows, length = self.window.rows_held, self.window.length_held
        if slab is not None and slab.shape[0] >= rows and slab.shape[2] >= length:
            return slab
        # Zeros and not empty: a masked NaN would still poison the weighted sum of values.
        grown = like.new_zeros(rows, like.shape[1], length, like.shape[3])
        if slab is not None:
            grown[: slab.shape[0], :, : slab.shape[2]] = slab
        return grown

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Write the columns (B, heads, C, head size); return everything the batch's rows may see."""
        self.lazy_initialization(key_states, value_states)
        at = self.window
        self.keys[at.rows, :, at.positions] = key_states.transpose(1, 2)
        self.values[at.rows, :, at.positions] = value_states.transpose(1, 2)
        if at.leading is not None:
            return self.keys[: at.leading, :, : at.length], self.values[: at.leading, :, : at.length]
        return self.keys[at.rows[:, 0], :, : at.length], self.values[at.rows[:, 0], :, : at.length]

    def swap(self, one: torch.Tensor, other: torch.Tensor, length: int) -> None:
        """Exchange rows pairwise, up to `length` positions."""
        if not self.is_initialized:
            return
        to, source = torch.cat([one, other]), torch.cat([other, one])
        for slab in (self.keys, self.values):
            slab[to, :, :length] = slab[source, :, :length]

    def copy(self, source: torch.Tensor, target: torch.Tensor, length: int) -> None:
        """Write the first `length` positions of the rows `source` over those of the rows `target`, pairwise."""
        self.lazy_initialization(self.keys, self.values)
        for slab in (self.keys, self.values):
            slab[target, :, :length] = slab[source, :, :length]

    def clear(self) -> None:
        """Give the memory back."""
        self.keys = self.values = None
        self.is_initialized = False

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """The window's length; our own 4D mask is used."""
        return self.window.length, 0

    def get_seq_length(self) -> int:
        """Rows differ: the longest. Positions are given to the model, so nothing is derived from it."""
        return self.window.length

    def get_max_length(self) -> int:
        """No bound."""
        return -1


class RaggedCache(Cache):  # type: ignore[misc]
    """Slabs of all layers.

    Args:
        layers: number of attention layers.
        device: where the model is.
        rows: the most rows slabs may grow to.
    """

    def __init__(self, *, layers: int, device: torch.device, rows: int) -> None:
        empty = torch.zeros(0, 1, dtype=torch.long, device=device)
        self.window = Window(empty, empty, 0, 0, 0, 0)
        super().__init__(layers=[RaggedLayer(self.window) for _ in range(layers)])
        self._device = device
        self._most_rows = rows

    def point(self, rows: Sequence[int] | int, position_BC: torch.Tensor, *, longest: int) -> torch.Tensor:
        """Aim the next forward.

        Args:
            rows: the rows of the batch, or a number: the first so many.
            position_BC: positions of the batch's columns.
            longest: one more than the largest of them.

        Returns:
            (B, 1, C, L) booleans: the attention mask.
        """
        window = self.window
        window.leading = rows if isinstance(rows, int) else None
        listed = range(rows) if isinstance(rows, int) else rows
        window.rows = torch.tensor(listed, device=self._device)[:, None]
        window.positions = position_BC
        window.length = _round_up(longest, _READ_STEP)
        self._hold(max(listed) + 1)
        if window.length > window.length_held:
            window.length_held = _round_up(max(window.length, window.length_held * 3 // 2), _LENGTH_STEP)
        return window.mask()

    def _hold(self, rows: int) -> None:
        """Ask the slabs for at least so many rows."""
        held = self.window.rows_held
        if rows > held:
            self.window.rows_held = min(max(rows, 2 * held, 8), max(self._most_rows, rows))

    def copy(self, source: Sequence[int], target: Sequence[int], *, length: int) -> None:
        """Give the rows `target` the first `length` positions of the rows `source`, pairwise."""
        self._hold(max(target) + 1)
        source_N, target_N = torch.tensor(source, device=self._device), torch.tensor(target, device=self._device)
        for layer in self.layers:
            layer.copy(source_N, target_N, length)

    def swap(self, one: Sequence[int], other: Sequence[int], *, length: int) -> None:
        """Exchange the rows `one` with the rows `other`, pairwise, up to `length` positions."""
        one_N, other_N = torch.tensor(one, device=self._device), torch.tensor(other, device=self._device)
        for layer in self.layers:
            layer.swap(one_N, other_N, length)

    def clear(self) -> None:
        """Forget every row and give the memory back."""
        self.window.rows_held = self.window.length_held = 0
        for layer in self.layers:
            layer.clear()


def _round_up(number: int, step: int) -> int:
    return -(-number // step) * step
