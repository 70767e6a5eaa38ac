"""When training has gone wrong, though every number is finite. The run stops behind a whole step, checkpointed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import AlarmError
from ..settings import PositiveFloat, PositiveInt, settings

KEPT = "The checkpoint behind that step holds the run."


@settings
class AlarmSettings:
    """Thresholds. Not finite losses and gradients, and `lost_share_limit`, stop a run without being asked for."""

    entropy_below: PositiveFloat | None = None
    """Nats a token below which the policy counts as collapsed; None is off."""
    stuck_steps: PositiveInt | None = None
    """Steps in a row in which no group had a signal (all right, or all wrong); None is off."""
    mismatch_above: PositiveFloat | None = None
    """Mean |log π_trainer − log π_sampler| above which the two count as different models, as when a server keeps old weights;
    None is off."""
    patience: PositiveInt = 5
    """Steps in a row that the entropy must stay below, or the mismatch above."""


class Alarms:
    """Counts of bad steps in a row. They go into checkpoints, so that a resumed run rings at the same step."""

    def __init__(self, settings: AlarmSettings) -> None:
        self.settings = settings
        self.low = 0
        self.stuck = 0
        self.apart = 0

    def state(self) -> dict[str, int]:
        """Plain values; `restore` reads them back."""
        return {"low": self.low, "stuck": self.stuck, "apart": self.apart}

    def restore(self, state: Mapping[str, int]) -> None:
        """Go back to a checkpoint's counts."""
        self.low, self.stuck, self.apart = state["low"], state["stuck"], state["apart"]

    def count(self, figures: Mapping[str, Any]) -> None:
        """Take one step's figures."""
        entropy, floor = figures.get("entropy"), self.settings.entropy_below
        if entropy is not None and floor is not None:
            self.low = self.low + 1 if entropy < floor else 0
        mismatch, most = figures.get("mismatch"), self.settings.mismatch_above
        if mismatch is not None and most is not None:
            self.apart = self.apart + 1 if mismatch > most else 0
        flat = (figures.get("zero_right_share") or 0.0) + (figures.get("zero_wrong_share") or 0.0)
        self.stuck = self.stuck + 1 if figures.get("groups") and flat >= 1.0 - 1e-9 else 0

    def check(self, figures: Mapping[str, Any]) -> None:
        """Ring, if it is time; `figures` are those counted last.

        Raises:
            AlarmError: says which threshold was crossed, and what to do.
        """
        place = f"stage {figures.get('stage')}, step {figures.get('step')}"
        limits = self.settings
        if limits.entropy_below is not None and self.low >= limits.patience:
            raise AlarmError(
                f"{place}: the entropy, {figures.get('entropy'):.2g} nats a token, has been below "
                f"rl.alarms.entropy_below={limits.entropy_below:g} for {self.low} steps: the policy has collapsed. "
                f"{KEPT} Begin again from an earlier model with a lower rl.policy.optimizer.lr or a higher clip_high"
            )
        if limits.mismatch_above is not None and self.apart >= limits.patience:
            raise AlarmError(
                f"{place}: sampler and trainer disagree by {figures.get('mismatch'):.2g} nats a token, more than "
                f"rl.alarms.mismatch_above={limits.mismatch_above:g}, for {self.apart} steps: the sampler does not hold the "
                f"weights it was given, or rounds far more coarsely. {KEPT} Start the server anew on rl.engine.weights and "
                "resume; if it comes again, set the algorithm's importance_cap or serve in a finer dtype"
            )
        if limits.stuck_steps is not None and self.stuck >= limits.stuck_steps:
            raise AlarmError(
                f"{place}: no group has had both better and worse samples for {self.stuck} steps "
                f"(rl.alarms.stuck_steps={limits.stuck_steps}): the reward is stuck at {figures.get('reward_mean')}. "
                f"{KEPT} Ask easier or harder problems (rl.problems, a stage's filter), or begin with a better model"
            )
