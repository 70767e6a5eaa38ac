"""OlymMATH, English (Sun et al. 2025, arXiv 2503.21380): 100 easy problems, at about AIME's level, and 100 hard ones.

Tagged by subject: geometry, combinatorics, algebra, number theory (33, 29, 25 and 13 of the easy ones). About half of the
answers are no integers.

License: MIT.
Source: https://github.com/RUCAIBox/OlymMATH
Hub: RUC-AIBOX/OlymMATH, configurations en-easy and en-hard
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from ...problems import Problem
from ...settings import settings
from ._contest import Place
from ._contest import load as load_contest


@settings
class Settings(Place):
    """Which half, from where."""

    level: Literal["easy", "hard"] = "easy"


def load(settings: Settings) -> Sequence[Problem]:
    """See `Benchmark`."""
    name = f"olymmath_{settings.level}"
    return load_contest(settings, name=name, dataset=f"olymmath_en_{settings.level}", count=100)
