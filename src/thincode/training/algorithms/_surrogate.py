"""The loss that all algorithms share: the clipped surrogate (PPO; asymmetric clip: DAPO; dual clip: Ye et al. 2020)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ...settings import NonNegativeFloat, PositiveFloat, settings
from . import Loss

if TYPE_CHECKING:
    import torch

STATS = (
    "tokens",
    "weight",
    "clip_low",
    "clip_high",
    "clip_dual",
    "ratio",
    "mismatch",
    "correction",
    "approx_kl",
    "reference_kl",
    "entropy",
)
"""`tokens` is a count, `weight` Σw; the others are sums of w × value, so that ÷ `weight` gives means: the shares of clipped
tokens, ρ, |logprob − behavior| (before the first update, what sampler and trainer disagree by), the importance correction, the
k3 estimates of KL(behavior ‖ policy) and KL(policy ‖ reference), and − log-probability of what was sampled, which estimates the
entropy while the policy is near the sampler."""


@settings
class Surrogate:
    """What the loss may be told; each algorithm's `Settings` begins with it and has its source's values."""

    clip_low: NonNegativeFloat = 0.20
    """ε below 1."""
    clip_high: NonNegativeFloat = 0.28
    """ε above 1."""
    dual_clip: float | None = None
    """c > 1; a token with A < 0 never counts more than cA. None is off."""
    importance_cap: PositiveFloat | None = None
    """Truncated importance correction (Yao et al. 2025): ρ is then taken against the trainer's own log-probabilities before
    the step's first update, and each token weighs at most this much × π_trainer / π_sampler. None takes ρ against the
    sampler's log-probabilities alone, which corrects without truncation and spares a forward."""
    kl_coef: NonNegativeFloat = 0.0
    """β of a k3 penalty against the model that RL started from, in the loss (GRPO)."""
    entropy_coef: NonNegativeFloat = 0.0
    """Of an entropy bonus, estimated on the sampled tokens. Off everywhere: with it entropy grew without control (CIR)."""

    def check(self) -> Iterator[tuple[str, str]]:
        """What one field's type can't say."""
        if self.dual_clip is not None and self.dual_clip <= 1.0:
            yield "dual_clip", f"must be above 1, found {self.dual_clip}; null switches it off"

    @property
    def uses_reference(self) -> bool:
        """Whether rollouts need the starting model's log-probabilities."""
        return self.kl_coef > 0


def loss(
    settings: Surrogate,
    *,
    logprob_BT: torch.Tensor,
    behavior_BT: torch.Tensor,
    advantage_BT: torch.Tensor,
    weight_BT: torch.Tensor,
    old_BT: torch.Tensor | None = None,
    reference_BT: torch.Tensor | None = None,
) -> Loss:
    """− Σ w · (c · min(ρA, clip(ρ, 1 − clip_low, 1 + clip_high) A) − β k3 + η H).

    ρ = exp(logprob − old), c = min(exp(old − behavior), importance_cap), k3 = e^d − d − 1 with d = reference − logprob.

    Args:
        settings: clips, cap and coefficients.
        logprob_BT: log-probabilities under the policy that learns, at the rollout's temperature.
        behavior_BT: those the sampler gave.
        advantage_BT: A.
        weight_BT: w, 1 ÷ denominator; a token with w = 0 gets no gradient whatever stands in its other columns.
        old_BT: the trainer's own before the step's first update; None takes `behavior_BT`, so c = 1.
        reference_BT: those of the model that RL started from; needed where `kl_coef` is set.

    Returns:
        Stats as `STATS` says.
    """
    import torch

    on_BT = weight_BT > 0
    zero_BT = torch.zeros_like(logprob_BT)

    def on(values_BT: torch.Tensor) -> torch.Tensor:
        # Columns of masked tokens may hold anything, also what would give inf × 0.
        return torch.where(on_BT, values_BT, zero_BT)

    drift_BT = on(logprob_BT - behavior_BT)
    log_ratio_BT = drift_BT if old_BT is None else on(logprob_BT - old_BT)
    ratio_BT = log_ratio_BT.exp()
    raw_BT = ratio_BT.detach()
    correction_BT = torch.ones_like(raw_BT)
    if old_BT is not None and settings.importance_cap is not None:
        correction_BT = on(old_BT - behavior_BT).exp().clamp(max=settings.importance_cap)
    objective_BT, dual_BT = _clipped(settings, ratio_BT, advantage_BT)
    objective_BT = correction_BT * objective_BT
    reference_kl_BT = zero_BT
    if reference_BT is not None:
        apart_BT = on(reference_BT - logprob_BT)
        reference_kl_BT = apart_BT.exp() - apart_BT - 1.0
        objective_BT = objective_BT - settings.kl_coef * reference_kl_BT
    surprise_BT = on(-logprob_BT.detach())
    if settings.entropy_coef:
        # ∇H = −E[log π ∇log π]: the sampled surprise as a score, with the ratio that carries its gradient.
        objective_BT = objective_BT + settings.entropy_coef * ratio_BT * surprise_BT
    total = -(weight_BT * objective_BT).sum()
    with torch.no_grad():
        low_BT = (advantage_BT < 0) & (raw_BT < 1.0 - settings.clip_low)
        high_BT = (advantage_BT > 0) & (raw_BT > 1.0 + settings.clip_high)
        kl_BT = drift_BT.exp() - 1.0 - drift_BT
        means = (low_BT, high_BT, dual_BT, raw_BT, drift_BT.abs(), correction_BT, kl_BT, reference_kl_BT, surprise_BT)
        return Loss(total=total, stats=_sums(on_BT, weight_BT, means))


def _sums(on_BT: torch.Tensor, weight_BT: torch.Tensor, means: Sequence[torch.Tensor]) -> dict[str, float]:
    """What `STATS` names, in one transfer."""
    import torch

    sums = [(weight_BT * value_BT).sum() for value_BT in means]
    values = torch.stack([on_BT.sum().to(weight_BT.dtype), weight_BT.sum(), *sums]).tolist()
    return dict(zip(STATS, values, strict=True))


def _clipped(
    settings: Surrogate, ratio_BT: torch.Tensor, advantage_BT: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """The surrogate of each token, and where the dual clip held it."""
    import torch

    bounded_BT = ratio_BT.clamp(1.0 - settings.clip_low, 1.0 + settings.clip_high)
    objective_BT = torch.minimum(ratio_BT * advantage_BT, bounded_BT * advantage_BT)
    if settings.dual_clip is None:
        return objective_BT, torch.zeros_like(ratio_BT, dtype=torch.bool)
    floor_BT = torch.where(advantage_BT < 0, settings.dual_clip * advantage_BT, -torch.inf)
    return torch.maximum(objective_BT, floor_BT), objective_BT.detach() < floor_BT
