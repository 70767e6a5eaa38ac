"""A reward of one's own: right answers earn less the longer the trajectory. In a recipe, with this file on Python's path:

    rl: {rewards: [{reward: correct}, {reward: {kind: short_answer, free: 200}, weight: 0.2}]}

A name without a dot is looked up among thincode's own files, so put it into a package: `my_lab.short_answer`.
"""

from thincode.grading import Graded
from thincode.grading.spans import length
from thincode.settings import PositiveInt, settings


@settings
class Settings:
    """Where the price begins and where it is full."""

    free: PositiveInt = 200
    """Tokens that cost nothing."""
    full: PositiveInt = 800


def reward(settings: Settings, graded: Graded) -> float:
    """From 0 down to −1 for a right answer; 0 for a wrong one, which shall not be long for its own sake either."""
    over = (length(graded.trajectory).generated - settings.free) / max(settings.full - settings.free, 1)
    return -min(max(over, 0.0), 1.0) if graded.grade.correct else 0.0
