"""GRPO-RoC (rStar2-Agent, arXiv 2508.20722): more rollouts are sampled than learned from; right ones are chosen for their code.

A group is halved. Right and wrong ones keep their proportion, at least `least` of each where there are so many. Of the right
ones stay those with the lowest penalty: the share of their calls that failed or could not run (0.5 without any) + the share of
repeated answers. Of the wrong ones stay the first, which is a fair draw, because samples of a problem differ by their seed
alone: all kinds of failure stay. Then GRPO on what is left. Groups whose rewards are all equal are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...settings import PositiveInt, Share, settings
from .. import Rollout
from . import Selection, _groups, _surrogate
from ._groups import Denominator, Sigma

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

loss = _surrogate.loss


@settings
class Settings(_surrogate.Surrogate):
    """rStar2-Agent's values: 32 sampled, 16 kept."""

    keep_share: Share = 0.5
    """Of each group; with 0.5, sample twice what is to be learned from."""
    least: PositiveInt = 2
    """Right ones, and wrong ones, that stay where there are so many."""
    sigma: Sigma = Sigma.POPULATION
    denominator: Denominator = Denominator.BATCH


def penalty(rollout: Rollout) -> float:
    """Share of failed blocks + share of repeated answers."""
    return rollout.features.get("tool_error_share", 0.5) + rollout.features.get("answer_repeat_share", 0.0)


def select(settings: Settings, rollouts: Sequence[Rollout]) -> Selection:
    """Half of each group whose rewards differ."""
    keep: list[int] = []
    reasons = {"all rewards equal": 0, "right, with worse code": 0, "wrong, beyond its share": 0}
    for indices in _groups.members(rollouts).values():
        rewards = [rollouts[index].reward for index in indices]
        if not _groups.has_signal(rewards):
            reasons["all rewards equal"] += len(indices)
            continue
        mean = sum(rewards) / len(rewards)
        right = [index for index in indices if rollouts[index].reward > mean]
        wrong = [index for index in indices if rollouts[index].reward <= mean]
        count = _kept(settings, right=len(right), wrong=len(wrong))
        chosen = sorted(right, key=lambda index: (penalty(rollouts[index]), index))[: count[0]]
        keep += [*chosen, *wrong[: count[1]]]
        reasons["right, with worse code"] += len(right) - len(chosen)
        reasons["wrong, beyond its share"] += len(wrong) - count[1]
    return Selection(keep=sorted(keep), reasons=reasons)


def _kept(settings: Settings, *, right: int, wrong: int) -> tuple[int, int]:
    """How many right and how many wrong ones stay; `least` goes before `keep_share`."""
    wanted = round((right + wrong) * settings.keep_share)
    from_right = max(round(wanted * right / (right + wrong)), min(settings.least, right))
    return from_right, min(max(wanted - from_right, min(settings.least, wrong)), wrong)


def advantages(settings: Settings, rollouts: Sequence[Rollout]) -> list[NDArray[np.float32]]:
    """(r − μ) / σ on the tokens the model wrote; μ and σ of what was kept."""
    return _groups.group_advantages(rollouts, lambda group: _groups.standardized(group, settings.sigma))


def weights(settings: Settings, rollouts: Sequence[Rollout]) -> list[NDArray[np.float32]]:
    """1 ÷ all trainable tokens of the update, or as `denominator` says."""
    return _groups.token_weights(rollouts, settings.denominator)
