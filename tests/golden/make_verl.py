"""What verl's pure functions say of `verl_cases`, written to verl.npz. Run once, in an environment of verl's own:

python -m venv verl && verl/bin/pip install verl==0.9.1 torch==2.13.0 && verl/bin/python tests/golden/make_verl.py
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from verl.trainer.ppo import core_algos as verl
from verl_cases import COUNT, Case, case


def rewards(one: Case) -> torch.Tensor:
    """Per token: credit where it is earned, the rest at the last token the model wrote."""
    reward_NT = one.credit_NT.copy()
    for row, mask in enumerate(one.mask_NT):
        reward_NT[row, np.flatnonzero(mask)[-1]] += one.reward_N[row] - one.credit_NT[row].sum()
    return torch.tensor(reward_NT)


def advantages(one: Case) -> dict[str, Any]:
    mask = torch.tensor(one.mask_NT, dtype=torch.float64)
    given = {"token_level_rewards": rewards(one), "response_mask": mask}
    grouped = given | {"index": one.group_N}
    per_rollout = {
        "grpo": verl.compute_grpo_outcome_advantage(**grouped),
        "dr_grpo": verl.compute_grpo_outcome_advantage(**grouped, norm_adv_by_std_in_grpo=False),
        "rloo": verl.compute_rloo_outcome_advantage(**grouped),
        "reinforce_pp_baseline": verl.compute_reinforce_plus_plus_baseline_outcome_advantage(**grouped),
    }
    first_N = one.mask_NT.argmax(axis=1)
    rows = np.arange(len(first_N))
    found = {name: values.numpy()[rows, first_N] for name, (values, _) in per_rollout.items()}
    values, _ = verl.compute_reinforce_plus_plus_outcome_advantage(**given, config=SimpleNamespace(gamma=1.0))
    return found | {"reinforce_pp": values.numpy()[one.mask_NT]}


class Config(SimpleNamespace):
    """The few keys that verl's loss asks for."""

    def get(self, name: str, default: Any = None) -> Any:
        return getattr(self, name, default)


def losses(one: Case) -> dict[str, Any]:
    mask = torch.tensor(one.mask_NT, dtype=torch.float64)
    old, behavior = torch.tensor(one.old_NT), torch.tensor(one.behavior_NT)
    config = Config(
        clip_ratio=0.2, clip_ratio_low=one.clip_low, clip_ratio_high=one.clip_high, clip_ratio_c=one.dual_clip,
        global_batch_info={"loss_scale_factor": 7},
    )  # fmt: skip

    def loss(mode: str, against: torch.Tensor, weights: torch.Tensor | None = None) -> list[float]:
        logprob = torch.tensor(one.logprob_NT, requires_grad=True)
        total, _ = verl.compute_policy_loss_vanilla(
            against, logprob, torch.tensor(one.advantage_NT), mask, mode, config, weights
        )
        total.backward()
        return [total.item(), float(logprob.grad.norm())]

    truncated = (old - behavior).exp().clamp(max=one.cap)
    k3 = verl.kl_penalty(torch.tensor(one.logprob_NT), torch.tensor(one.reference_NT), "k3")
    return {
        "token_mean": loss("token-mean", behavior),
        "sequence_mean": loss("seq-mean-token-mean", behavior),
        "constant": loss("seq-mean-token-sum-norm", behavior),
        "corrected": loss("token-mean", old, truncated),
        "k3": [float((k3 * mask).sum() / mask.sum()), 0.0],
    }


def main() -> None:
    found: dict[str, list[Any]] = {}
    for number in range(COUNT):
        one = case(number)
        for name, values in {**advantages(one), **losses(one)}.items():
            found.setdefault(name, []).append(np.asarray(values, dtype=np.float64))
    arrays = {name: np.concatenate(values).astype(np.float32) for name, values in found.items()}
    np.savez_compressed(Path(__file__).with_name("verl.npz"), **arrays)


if __name__ == "__main__":
    main()
