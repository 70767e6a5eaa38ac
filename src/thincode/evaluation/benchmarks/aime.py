"""AIME, both rounds of one year: 30 problems; answers are integers from 0 to 999, here without leading zeros.

Some problems keep Asymptote source of a figure.

License: the problems belong to the Mathematical Association of America; the hub's cards state none for 2024 and
cc-by-nc-sa-4.0 for 2025 and 2026.
Source: American Invitational Mathematics Examination, https://maa.org/maa-invitational-competitions/
Hub: HuggingFaceH4/aime_2024, MathArena/aime_2025, MathArena/aime_2026
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
    """Which year, from where."""

    year: Literal[2024, 2025, 2026] = 2024


def load(settings: Settings) -> Sequence[Problem]:
    """See `Benchmark`."""
    short = f"aime{settings.year % 100}"
    return load_contest(settings, name=short, dataset=short, count=30)
