"""A reward that knows nothing: drawn from the sample's address. The control in experiments, never a recipe's reward."""

from __future__ import annotations

from ...settings import Share, settings
from .. import Graded


@settings
class Settings:
    """How often it pays."""

    share: Share = 0.5


def reward(settings: Settings, graded: Graded) -> float:
    """1 with probability `share`, else 0; the same for the same address."""
    return float(graded.trajectory.address.seed("reward") / 2**63 < settings.share)
