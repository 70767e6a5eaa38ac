"""CIR's evaluation (Bai et al. 2025, arXiv 2505.24480, Table 1): MATH500 greedy; AMC23, AIME and OlymMATH avg@16.

T = 1.0 and top-p = 0.95 where it samples, 16,384 new tokens a turn, five calls as in its evaluation script. The table has one
column OlymMATH and does not say which half it is: `olymmath` chooses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from ...settings import settings
from . import Part, SuiteSettings, chosen

_TURN, _CALLS = 16_384, 5


@settings
class Settings(SuiteSettings):
    """Where the files are, and which half of OlymMATH."""

    olymmath: Literal["easy", "hard"] = "easy"


def parts(settings: Settings) -> Sequence[Part]:
    """MATH500, AMC23, AIME 2024 and 2025, OlymMATH."""
    level = settings.olymmath
    benchmarks = {
        "math500": chosen(settings, "math500", "math500.jsonl"),
        "amc23": chosen(settings, "amc", "amc23.jsonl"),
        **{f"aime{y % 100}": chosen(settings, "aime", f"aime{y}.jsonl", year=y) for y in (2024, 2025)},
        f"olymmath_{level}": chosen(settings, "olymmath", f"olymmath_en_{level}.jsonl", level=level),
    }
    return [
        Part(
            name,
            benchmark,
            samples=1 if name == "math500" else settings.samples or 16,
            temperature=0.0 if name == "math500" else 1.0,
            top_p=0.95,
            context_tokens=(1 + _CALLS) * _TURN,
            turn_tokens=_TURN,
            calls=_CALLS,
        )
        for name, benchmark in benchmarks.items()
    ]
