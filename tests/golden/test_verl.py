"""Where verl's pure functions define the same estimator, ours agree with them to 1e-6 on a thousand drawn steps.

Left out because verl defines something else there: groups of one (it hands the bare reward through, ours have no signal), and
steps whose returns are all equal (it whitens the 1e-8 that stands in its mean; ours are 0).
`make_verl.py` wrote what is compared with.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from golden.verl_cases import COUNT, Case, case
from thincode.training import Rollout
from thincode.training.algorithms import _surrogate, dr_grpo, grpo, reinforce_pp, reinforce_pp_baseline, rloo
from thincode.training.algorithms._groups import Denominator, Sigma
from thincode.trajectory.tokens import Author, Tokens

TOLERANCE = {"rtol": 1e-6, "atol": 1e-6}


@cache
def golden() -> dict[str, Any]:
    with np.load(Path(__file__).with_name("verl.npz")) as found:
        return dict(found)


@cache
def cases() -> list[tuple[Case, list[Rollout]]]:
    return [(one, rollouts(one)) for one in map(case, range(COUNT))]


def rollouts(one: Case) -> list[Rollout]:
    """One prompt token, then the case's."""
    made = []
    for number, mask in enumerate(one.mask_NT):
        author = np.array([Author.PROMPT, *np.where(mask, Author.MODEL, Author.INTERPRETER)], dtype=np.uint8)
        width = len(author)
        empty = np.zeros(width, dtype=np.float32)
        credit = tuple(
            (place + 1, float(one.credit_NT[number, place])) for place in np.flatnonzero(one.credit_NT[number])
        )
        made.append(
            Rollout(
                tokens=Tokens(ids=np.ones(width, dtype=np.int32), author=author, logprob=empty),
                group=int(one.group_N[number]),
                reward=float(one.reward_N[number]),
                credit=credit,
            )
        )
    return made


PER_ROLLOUT = {
    "grpo": (grpo, grpo.Settings(sigma=Sigma.SAMPLE)),
    "dr_grpo": (dr_grpo, dr_grpo.Settings()),
    "rloo": (rloo, rloo.Settings()),
    "reinforce_pp_baseline": (reinforce_pp_baseline, reinforce_pp_baseline.Settings()),
}


@pytest.mark.parametrize("name", PER_ROLLOUT)
def test_one_value_a_rollout(name: str) -> None:
    module, settings = PER_ROLLOUT[name]
    found: list[float] = []
    for one, step in cases():
        for values, mask in zip(module.advantages(settings, step), one.mask_NT, strict=True):
            kept = values[1:][mask]
            assert (kept == kept[0]).all()
            found.append(float(kept[0]))
    np.testing.assert_allclose(found, golden()[name], **TOLERANCE)


def test_one_value_a_token() -> None:
    start, flat = 0, 0
    for one, step in cases():
        made = reinforce_pp.advantages(reinforce_pp.Settings(), step)
        found = np.concatenate([values[1:][mask] for values, mask in zip(made, one.mask_NT, strict=True)])
        expected = golden()["reinforce_pp"][start : start + len(found)]
        start += len(found)
        if found.any():
            np.testing.assert_allclose(found, expected, **TOLERANCE)
        else:
            flat += 1
            assert np.abs(expected).max() < 1e-4
    assert start == len(golden()["reinforce_pp"])
    assert flat < COUNT / 10


@pytest.mark.train
class TestLosses:
    @pytest.mark.parametrize(
        ("name", "module", "settings"),
        [
            ("token_mean", grpo, grpo.Settings(denominator=Denominator.BATCH)),
            ("corrected", grpo, grpo.Settings(denominator=Denominator.BATCH)),
            ("sequence_mean", grpo, grpo.Settings(denominator=Denominator.SEQUENCE)),
            ("constant", dr_grpo, dr_grpo.Settings(horizon=7)),
        ],
    )
    def test_value_and_gradient_with_clips_and_dual_clip(self, name: str, module: Any, settings: Any) -> None:
        import torch

        found: list[float] = []
        for one, step in cases():
            surrogate = _surrogate.Surrogate(
                clip_low=one.clip_low,
                clip_high=one.clip_high,
                dual_clip=one.dual_clip,
                importance_cap=one.cap if name == "corrected" else None,
            )
            columns = self.columns(one, module.weights(settings, step))
            more = {"old_BT": torch.tensor(one.old_NT)} if name == "corrected" else {}
            total = _surrogate.loss(surrogate, **columns, **more).total
            total.backward()
            found += [total.item(), columns["logprob_BT"].grad.norm().item()]
        np.testing.assert_allclose(found, golden()[name], **TOLERANCE)

    def test_penalty_against_a_reference(self) -> None:
        import torch

        settings, found = _surrogate.Surrogate(kl_coef=1.0), []
        for one, step in cases():
            columns = self.columns(one, grpo.weights(grpo.Settings(denominator=Denominator.BATCH), step))
            columns["advantage_BT"] = torch.zeros_like(columns["advantage_BT"])
            found.append(_surrogate.loss(settings, **columns, reference_BT=torch.tensor(one.reference_NT)).total.item())
        np.testing.assert_allclose(found, golden()["k3"][::2], **TOLERANCE)

    @staticmethod
    def columns(one: Case, weight_NT: Sequence[Any]) -> dict[str, Any]:
        import torch

        return {
            "logprob_BT": torch.tensor(one.logprob_NT, requires_grad=True),
            "behavior_BT": torch.tensor(one.behavior_NT),
            "advantage_BT": torch.tensor(one.advantage_NT),
            # In double precision, as verl was asked: the weights themselves are float32.
            "weight_BT": torch.tensor(np.stack(weight_NT)[:, 1:].astype(np.float64)),
        }
