"""GSM8K, test split (Cobbe et al. 2021, arXiv 2110.14168): 1,319 grade-school word problems; answers are integers.

Published re-annotations put wrong labels at one to two percent; they are not corrected here.

License: MIT.
Source: https://github.com/openai/grade-school-math
Hub: openai/gsm8k
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
    return load_contest(settings, name="gsm8k", dataset="gsm8k", count=1319)
