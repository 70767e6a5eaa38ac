"""AMC 12 of 2023, both papers, as evaluations use it: the 40 problems whose answer is an integer, asked without choices.

License: the problems belong to the Mathematical Association of America; the hub's card was not read.
Source: American Mathematics Competitions, https://maa.org/student-programs/amc/
Hub: math-ai/amc23
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
    return load_contest(settings, name="amc23", dataset="amc23", count=40)
