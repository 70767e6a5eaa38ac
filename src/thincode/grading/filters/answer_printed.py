"""Keep trajectories whose answer was printed by the last block, and not made up behind it.

The answer's value must stand free in the last output, as in the metric `grounding` (`033`, `33.0` and `11*3` are 33; 7 is not in
17); of an answer of several parts all of them. An answer in words must stand there as words.
"""

from __future__ import annotations

import re

from ...settings import settings
from .. import Graded, Verdict, forms
from ..answers import numbers
from ..values import shown


@settings
class Settings:
    """Nothing to set."""


def judge(settings: Settings, graded: Graded) -> Verdict:
    """Keep if the last output shows the answer."""
    answer, outputs = graded.trajectory.answer, graded.trajectory.outputs
    if not (answer or "").strip():
        return Verdict(False, "no answer to look for")
    if not outputs:
        return Verdict(False, "no output to look in")
    found = _shows(outputs[-1].content, answer or "")
    return Verdict(found, "answer in the last output" if found else "answer not in the last output")


def _shows(output: str, answer: str) -> bool:
    parts = numbers(answer)
    if parts is not None:
        return {part.key for part in parts} <= {item.value.key for item in shown(output)}
    plain = " ".join(forms.undress(answer).casefold().split())
    return (
        bool(plain) and re.search(rf"(?<!\w){re.escape(plain)}(?!\w)", " ".join(output.casefold().split())) is not None
    )
