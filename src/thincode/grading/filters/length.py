"""Keep trajectories of a length: tokens after the prompt, outputs included, under the student's tokenizer.

The loop encodes records of text once, as the student will hold them (`distill.student` in a recipe).
"""

from __future__ import annotations

from collections.abc import Iterator

from ...settings import NonNegativeInt, PositiveInt, settings
from .. import Graded, Verdict
from ..spans import length


@settings
class Settings:
    """Between what and what, both included."""

    min_tokens: NonNegativeInt = 0
    max_tokens: PositiveInt = 32_768

    def check(self) -> Iterator[tuple[str, str]]:
        """What one field's type can't say."""
        if self.min_tokens > self.max_tokens:
            yield "min_tokens", f"{self.min_tokens} is above max_tokens, so nothing could pass"


def judge(settings: Settings, graded: Graded) -> Verdict:
    """Keep if the length is in range; a record without ids has no length and is dropped under a reason of its own."""
    found = length(graded.trajectory)
    if found.unit != "tokens":
        return Verdict(False, "no token ids to count; set distill.student")
    if found.total > settings.max_tokens:
        return Verdict(False, f"more than {settings.max_tokens} tokens")
    if found.total < settings.min_tokens:
        return Verdict(False, f"fewer than {settings.min_tokens} tokens")
    return Verdict(True, "length in range")
