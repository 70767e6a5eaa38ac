"""A filter of one's own: drop trajectories in which a block only prints numbers it holds itself, `print(42)`.

In a recipe, from a package on Python's path: `filters: [correct, {kind: my_lab.no_prints_of_literals, allowed: 1}]`.
"""

import re

from thincode.grading import Graded, Verdict
from thincode.settings import NonNegativeInt, settings

_LITERAL = re.compile(r"\s*print\(\s*[-+\d.,\s]+\)\s*")


@settings
class Settings:
    """How many are forgiven."""

    allowed: NonNegativeInt = 0


def judge(settings: Settings, graded: Graded) -> Verdict:
    """Keep if at most `allowed` blocks print literals only; the reason is counted in the funnel."""
    found = sum(_LITERAL.fullmatch(block.content) is not None for block in graded.trajectory.blocks)
    keep = found <= settings.allowed
    return Verdict(keep, "blocks compute" if keep else "a block prints literals only")
