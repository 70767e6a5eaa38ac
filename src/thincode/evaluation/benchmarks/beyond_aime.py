"""BeyondAIME: 100 problems harder than AIME's, written so that they can't be found; answers are positive integers.

License: cc0-1.0 (as far as known; read the hub's card).
Source: ByteDance Seed, 2025
Hub: ByteDance-Seed/BeyondAIME
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
    return load_contest(settings, name="beyond_aime", dataset="beyond_aime", count=100)
