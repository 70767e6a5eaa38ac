"""Drawing the next token of many rows at once, each by its own seed, settings and position.

The randomness is counter-based: one uniform number is a hash of (seed, position), so what a row draws does not depend on
which rows share its batch, nor on how often anything was drawn before.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

_GAMMA = 0x9E3779B97F4A7C15


def uniforms(seed_S: NDArray[np.uint64], position_S: NDArray[np.uint64]) -> NDArray[np.float64]:
    """One number in [0, 1) for each (seed, position).

    Two rounds of the finalizer of SplitMix64 (Steele, Lea, Flood 2014, "Fast splittable pseudorandom number generators").
    """
    with np.errstate(over="ignore"):
        mixed_S = _mix(_mix(seed_S + np.uint64(_GAMMA)) + (position_S + np.uint64(1)) * np.uint64(_GAMMA))
    return (mixed_S >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _mix(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@dataclass(frozen=True, eq=False)
class Drawn:
    """The tokens of S rows and their log-probabilities under the distribution each was drawn from."""

    ids: list[int]
    logprobs: list[float]


def draw(
    logits_SV: torch.Tensor,
    *,
    temperature_S: NDArray[np.float64],
    top_p_S: NDArray[np.float64],
    uniform_S: NDArray[np.float64],
) -> Drawn:
    """Draw one token a row by inverting the cumulative distribution at its uniform number.

    Args:
        logits_SV: any float type; worked on in float32, summed in float64.
        temperature_S: 0 takes the most likely token (the lowest id among equals); its log-probability is that at 1.
        top_p_S: the smallest set of most likely tokens with at least this mass stays, renormalized (Holtzman et al. 2020,
            "The curious case of neural text degeneration"); among equals lower ids come first.
        uniform_S: in [0, 1).

    Returns:
        A token of probability zero is never drawn.
    """
    greedy_S = temperature_S == 0
    logits_SV = logits_SV.float()
    if np.any((temperature_S != 1) & ~greedy_S):
        scale_S = np.where(greedy_S, 1.0, temperature_S)
        logits_SV = logits_SV / torch.from_numpy(scale_S).to(logits_SV)[:, None]
    logprob_SV = torch.log_softmax(logits_SV, dim=-1)
    cut = np.flatnonzero((top_p_S < 1) & ~greedy_S)
    if len(cut):
        rows = torch.from_numpy(cut).to(logprob_SV.device)
        top_p = torch.from_numpy(top_p_S[cut]).to(logprob_SV.device)
        logprob_SV[rows] = _nucleus(logprob_SV[rows], top_p)
    if greedy_S.all():
        token_S = _first_best(logprob_SV)
    else:
        token_S = _invert(logprob_SV, torch.from_numpy(uniform_S).to(logprob_SV.device))
        if greedy_S.any():
            greedy = torch.from_numpy(greedy_S).to(logprob_SV.device)
            token_S = torch.where(greedy, _first_best(logprob_SV), token_S)
    picked_S = logprob_SV.gather(1, token_S[:, None])[:, 0]
    return Drawn(token_S.tolist(), picked_S.tolist())


def _first_best(logprob_SV: torch.Tensor) -> torch.Tensor:
    # argmax promises no order among equals; over booleans as bytes it would not either, so take the least index.
    vocabulary = logprob_SV.shape[1]
    best_SV = logprob_SV == logprob_SV.amax(dim=-1, keepdim=True)
    index_V = torch.arange(vocabulary, device=logprob_SV.device)
    return torch.where(best_SV, index_V, vocabulary).amin(dim=-1).clamp_(max=vocabulary - 1)


def _invert(logprob_SV: torch.Tensor, uniform_S: torch.Tensor) -> torch.Tensor:
    cumulative_SV = torch.cumsum(logprob_SV.exp(), dim=-1, dtype=torch.float64)
    total_S = cumulative_SV[:, -1]
    # Strictly below the total, so that the first cell above the target exists and has mass of its own.
    target_S = torch.minimum(uniform_S * total_S, torch.nextafter(total_S, torch.zeros_like(total_S)))
    token_S1 = torch.searchsorted(cumulative_SV, target_S[:, None], right=True)
    return token_S1[:, 0].clamp_(max=logprob_SV.shape[1] - 1)


def _nucleus(logprob_NV: torch.Tensor, top_p_N: torch.Tensor) -> torch.Tensor:
    sorted_NV, order_NV = torch.sort(logprob_NV, dim=-1, descending=True, stable=True)
    mass_NV = sorted_NV.exp().double()
    before_NV = mass_NV.cumsum(dim=-1) - mass_NV
    kept_NV = before_NV < top_p_N[:, None]
    kept_NV[:, 0] = True
    sorted_NV = sorted_NV.masked_fill(~kept_NV, float("-inf"))
    sorted_NV = sorted_NV - torch.logsumexp(sorted_NV, dim=-1, keepdim=True)
    return torch.empty_like(sorted_NV).scatter_(1, order_NV, sorted_NV)
