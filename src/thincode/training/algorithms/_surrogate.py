"""The clipped surrogate that group-relative algorithms share (PPO; asymmetric clip: DAPO; dual clip: Ye et al. 2020)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import Loss

if TYPE_CHECKING:
    import torch

STATS = ("tokens", "weight", "clip_low", "clip_high", "ratio", "approx_kl", "entropy")


def clipped_surrogate(
    *,
    logprob_BT: torch.Tensor,
    behavior_BT: torch.Tensor,
    advantage_BT: torch.Tensor,
    weight_BT: torch.Tensor,
    clip_low: float,
    clip_high: float,
    dual_clip: float | None = None,
    importance_cap: float | None = None,
) -> Loss:
    """− Σ w · min(ρA, clip(ρ, 1 − clip_low, 1 + clip_high) A), ρ = exp(logprob − behavior).

    Args:
        logprob_BT: log-probabilities under the policy that learns, at the rollout's temperature.
        behavior_BT: those the sampler gave.
        advantage_BT: A.
        weight_BT: w, 1 ÷ denominator; a token with w = 0 gets no gradient whatever stands in its other columns.
        clip_low: ε below 1.
        clip_high: ε above 1.
        dual_clip: c; where A < 0 the term is bounded below by cA.
        importance_cap: no token's gradient is weighted by more than this ratio (truncated importance weights).

    Returns:
        Stats: `tokens` is a count, `weight` Σw; the others are sums of w × value, so that ÷ `weight` gives means: the
        shares of clipped tokens, the ratio, the k3 estimate of KL(behavior ‖ policy), and − log-probability of what
        was sampled, which estimates the entropy while the policy is near the sampler.
    """
    import torch

    on_BT = weight_BT > 0
    # Columns of masked tokens may hold anything, also what would give inf × 0.
    log_ratio_BT = torch.where(on_BT, logprob_BT - behavior_BT, torch.zeros_like(logprob_BT))
    ratio_BT = log_ratio_BT.exp()
    raw_BT = ratio_BT.detach()
    if importance_cap is not None:
        ratio_BT = ratio_BT * (importance_cap / raw_BT).clamp(max=1.0)
    bounded_BT = ratio_BT.clamp(1.0 - clip_low, 1.0 + clip_high)
    objective_BT = torch.minimum(ratio_BT * advantage_BT, bounded_BT * advantage_BT)
    if dual_clip is not None:
        floor_BT = torch.where(advantage_BT < 0, dual_clip * advantage_BT, torch.full_like(advantage_BT, -torch.inf))
        objective_BT = torch.maximum(objective_BT, floor_BT)
    total = -(weight_BT * objective_BT).sum()
    with torch.no_grad():
        low_BT = (advantage_BT < 0) & (raw_BT < 1.0 - clip_low)
        high_BT = (advantage_BT > 0) & (raw_BT > 1.0 + clip_high)
        surprise_BT = torch.where(on_BT, -logprob_BT, torch.zeros_like(logprob_BT))
        kl_BT = raw_BT - 1.0 - log_ratio_BT
        sums = [(weight_BT * value_BT).sum() for value_BT in (low_BT, high_BT, raw_BT, kl_BT, surprise_BT)]
        # One transfer for all of them.
        values = torch.stack([on_BT.sum().to(weight_BT.dtype), weight_BT.sum(), *sums]).tolist()
    return Loss(total=total, stats=dict(zip(STATS, values, strict=True)))
