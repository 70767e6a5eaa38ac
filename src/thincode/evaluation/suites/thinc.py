"""ThinC's evaluation (Hwang, Lee, Kang 2026, arXiv 2605.07237): five contests, avg@16 at T = 0.6, 32K tokens in all.

top-p is 1. The number of calls is not stated; 40 is that of the last training stage, which also has 32K.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...settings import settings
from . import Part, SuiteSettings, chosen


@settings
class Settings(SuiteSettings):
    """Where the files are."""


def parts(settings: Settings) -> Sequence[Part]:
    """AIME 2024 to 2026, HMMT February 2025, BeyondAIME."""
    benchmarks = {
        **{f"aime{y % 100}": chosen(settings, "aime", f"aime{y}.jsonl", year=y) for y in (2024, 2025, 2026)},
        "hmmt25": chosen(settings, "hmmt", "hmmt_feb_2025.jsonl"),
        "beyond_aime": chosen(settings, "beyond_aime", "beyond_aime.jsonl"),
    }
    return [
        Part(
            name,
            benchmark,
            samples=settings.samples or 16,
            temperature=0.6,
            top_p=1.0,
            context_tokens=32_768,
            turn_tokens=None,
            calls=40,
        )
        for name, benchmark in benchmarks.items()
    ]
