"""MATH500: 500 problems of the test split of MATH (Lightman et al. 2023, arXiv 2305.20050), tagged by subject and level.

A third of the answers are no integers: fractions, radicals, tuples, intervals, matrices, units, degrees, words.

License: MIT (MATH, Hendrycks et al. 2021, arXiv 2103.03874); the hub's card states none.
Source: https://github.com/openai/prm800k, the split of "Let's Verify Step by Step"
Hub: HuggingFaceH4/MATH-500
"""

from __future__ import annotations

from collections.abc import Sequence

from ...problems import Problem
from ...settings import settings
from ._contest import Place
from ._contest import load as load_contest


@settings
class Settings(Place):
    """From where."""


def load(settings: Settings) -> Sequence[Problem]:
    """See `Benchmark`."""
    return load_contest(settings, name="math500", dataset="math500", count=500)
