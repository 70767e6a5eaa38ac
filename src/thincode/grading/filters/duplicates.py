"""Keep the first of trajectories that are the same, or nearly: question and text, white space apart.

Near: the sets of word n-grams have a Jaccard similarity of `near` or more, estimated from 64 min-hashes (Broder 1997; standard
error at 0.9: 0.04) among those that share one of 16 bands of them. The filter stands last in a recipe: what it lets pass counts
as there.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from ...settings import Share, settings
from .. import Graded, Verdict
from ._shingles import WORD, shingles

if TYPE_CHECKING:
    from numpy.typing import NDArray

_HASHES, _BANDS = 64, 16


@settings
class Settings:
    """What counts as near."""

    near: Share = 0.9
    """1 drops exact duplicates only."""
    words: Annotated[int, Field(ge=1)] = 5
    """Words in an n-gram."""


def open(settings: Settings) -> Callable[[Graded], Verdict]:
    """A judge that remembers what it has let pass: 1 KB a trajectory."""
    seen: set[bytes] = set()
    near = _Near(settings.near)

    def judge(graded: Graded) -> Verdict:
        text = " ".join(f"{graded.trajectory.question}\n{graded.trajectory.text}".split())
        digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        if digest in seen:
            return Verdict(False, "duplicate")
        if settings.near < 1.0 and near.seen(shingles(WORD.findall(text), n=settings.words)):
            return Verdict(False, "near duplicate")
        seen.add(digest)
        return Verdict(True, "no duplicate")

    return judge


class _Near:
    """Min-hash signatures in bands."""

    def __init__(self, near: float) -> None:
        rng = np.random.default_rng(13)
        self._factor_H = rng.integers(1, 1 << 32, _HASHES, dtype=np.uint32) | np.uint32(1)
        self._shift_H = rng.integers(0, 1 << 32, _HASHES, dtype=np.uint32)
        self._near = near
        self._signatures: list[NDArray[np.uint32]] = []
        self._bands: dict[tuple[int, bytes], list[int]] = defaultdict(list)

    def seen(self, grams: NDArray[np.uint64]) -> bool:
        """Whether something near was shown before; if not, these n-grams are remembered."""
        signature = self._signature(grams)
        values, size = signature.tobytes(), signature.nbytes // _BANDS
        keys = [(band, values[band * size : (band + 1) * size]) for band in range(_BANDS)]
        candidates = {number for key in keys for number in self._bands.get(key, ())}
        least = self._near * _HASHES
        if any(np.count_nonzero(self._signatures[number] == signature) >= least for number in candidates):
            return True
        for key in keys:
            self._bands[key].append(len(self._signatures))
        self._signatures.append(signature)
        return False

    def _signature(self, grams: NDArray[np.uint64]) -> NDArray[np.uint32]:
        """(64,) the smallest value of each hash function over the n-grams."""
        if not len(grams):
            return np.zeros(_HASHES, np.uint32)
        short_N = (grams >> np.uint64(32)).astype(np.uint32)
        hashed_HN = self._factor_H[:, None] * short_N[None, :] + self._shift_H[:, None]
        return np.asarray(hashed_HN.min(axis=1), dtype=np.uint32)
