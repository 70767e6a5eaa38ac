"""Keep trajectories with enough blocks that differ: repeating a block must not buy the third one of `min_blocks`.

Comments and white space don't count. Two blocks are the same if their sets of token 3-grams are `alike` (Jaccard) or more.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ...settings import Share, settings
from ...trajectory.formats import COMMENTS, language_of
from .. import Graded, Verdict
from ._shingles import WORD, alike, shingles

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_COMMENT = {language: re.compile(f"{re.escape(mark)}.*") for language, mark in COMMENTS.items()}


@settings
class Settings:
    """How many, and how different."""

    n: int = 3
    """Executed blocks that differ from each other."""
    alike: Share = 0.9


def judge(settings: Settings, graded: Graded) -> Verdict:
    """Keep if at least `n` blocks differ, each from all before it."""
    different: list[NDArray[np.uint64]] = []
    comment = _COMMENT[language_of(graded.trajectory.format)]
    for segment in graded.trajectory.blocks:
        grams = shingles(WORD.findall(comment.sub("", segment.content)), n=3)
        if not any(_same(grams, other, settings.alike) for other in different):
            different.append(grams)
    enough = len(different) >= settings.n
    return Verdict(
        enough, f"{settings.n} different blocks or more" if enough else f"fewer than {settings.n} different blocks"
    )


def _same(one: NDArray[np.uint64], other: NDArray[np.uint64], least: float) -> bool:
    """Whether two sets are so alike; they aren't if their sizes differ by more."""
    few, many = sorted((len(one), len(other)))
    return (not many or few / many >= least) and alike(one, other) >= least
