"""HMMT, February 2025: 30 problems, of which only 14 have a plain integer for an answer (one is -984).

The others are fractions, radicals, 1 - 2/π, 2^25 · 26!, and one that asks for two values: without comparison by value
more than half of the contest is graded by luck.

License: cc-by-nc-sa-4.0 by the hub's card; the problems belong to HMMT.
Source: Harvard-MIT Mathematics Tournament, https://www.hmmt.org
Hub: MathArena/hmmt_feb_2025
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
    return load_contest(settings, name="hmmt25", dataset="hmmt_feb_2025", count=30)
