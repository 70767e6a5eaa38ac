"""Sets of word n-grams as numbers, and how alike two of them are."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

WORD = re.compile(r"\w+|[^\w\s]")
"""A word, a number, or one sign."""
_FACTOR = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1


def shingles(words: Sequence[str], *, n: int) -> NDArray[np.uint64]:
    """The distinct n-grams of `words` as 64-bit numbers, ascending; a shorter text is one n-gram. The same on every machine."""
    if not words:
        return np.zeros(0, np.uint64)
    ids = np.fromiter(map(_id, words), np.uint64, len(words))
    n = min(n, len(words))
    found = np.zeros(len(words) - n + 1, dtype=np.uint64)
    for place in range(n):
        found += ids[place : place + len(found)] * np.uint64(pow(_FACTOR, place + 1, 1 << 64))
    # The low bits of a sum of products are weak; fold the high ones in.
    found ^= found >> np.uint64(29)
    return np.unique(found * np.uint64(_FACTOR & _MASK))


@lru_cache(maxsize=50_000)
def _id(word: str) -> int:
    return zlib.crc32(word.encode("utf-8", "surrogatepass"))


def alike(one: NDArray[np.uint64], other: NDArray[np.uint64]) -> float:
    """Jaccard similarity: shared n-grams over all n-grams of both; 1 for two empty texts."""
    shared = len(np.intersect1d(one, other, assume_unique=True))
    union = len(one) + len(other) - shared
    return shared / union if union else 1.0
