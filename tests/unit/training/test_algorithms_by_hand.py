"""Tables worked by hand for the algorithms beside GRPO and DAPO."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from thincode.errors import RecipeError
from thincode.settings import kind
from thincode.training import Rollout
from thincode.training.algorithms import (
    _groups,
    _surrogate,
    dr_grpo,
    grpo,
    grpo_roc,
    reinforce_pp,
    reinforce_pp_baseline,
    rloo,
)
from thincode.training.algorithms._groups import Denominator, Sigma
from training_cases import ROOM, algorithm, group


def of_rollouts(module: object, rollouts: list[Rollout], **values: object) -> list[float]:
    """The advantage of each rollout's second token."""
    settings = module.Settings(**values)  # type: ignore[attr-defined]
    return [float(found[1]) for found in module.advantages(settings, rollouts)]  # type: ignore[attr-defined]


# --- group baselines ------------------------------------------------------------------------------------------------

ONE_OF_FOUR = group(0, [1.0, 0.0, 0.0, 0.0], "pm")


@pytest.mark.parametrize(
    ("module", "values", "right", "wrong"),
    [
        (grpo, {}, np.sqrt(3), -1 / np.sqrt(3)),  # μ = 1/4, σ = √3/4
        (grpo, {"sigma": Sigma.SAMPLE}, 0.75 / 0.500001, -0.25 / 0.500001),  # s = √(3/16 · 4/3) = 1/2, + 1e-6
        (dr_grpo, {}, 0.75, -0.25),
        (rloo, {}, 1.0, -1 / 3),  # the others' mean is 0, or 1/3
        # Four tokens, one a rollout: mean 0, s = √((9 + 3)/16 / 3) = 1/2.
        (reinforce_pp_baseline, {}, 1.5, -0.5),
        (reinforce_pp, {}, 1.5, -0.5),
    ],
)
def test_one_of_four_right(module: object, values: dict[str, object], right: float, wrong: float) -> None:
    found = of_rollouts(module, ONE_OF_FOUR, **values)
    assert found == pytest.approx([right, wrong, wrong, wrong], abs=1e-6)


@pytest.mark.parametrize(
    ("name", "twice"),
    [
        ("grpo", 1),
        ("dapo", 1),
        ("grpo_roc", 1),
        ("reinforce_pp", 1),
        ("reinforce_pp_baseline", 1),
        ("dr_grpo", 2),
        ("rloo", 2),
    ],
)
def test_rewards_of_plus_and_minus_one_double_what_no_sigma_divides(name: str, twice: int) -> None:
    module = algorithm(name).module
    signed = [replace(rollout, reward=2 * rollout.reward - 1) for rollout in ONE_OF_FOUR]
    assert of_rollouts(module, signed) == pytest.approx([twice * a for a in of_rollouts(module, ONE_OF_FOUR)], abs=1e-6)


def test_a_group_of_one_has_no_baseline_and_no_signal() -> None:
    for name in ("grpo", "dapo", "dr_grpo", "rloo", "grpo_roc"):
        assert of_rollouts(algorithm(name).module, group(0, [1.0], "pm")) == [0.0]


# --- whitening and returns ------------------------------------------------------------------------------------------


def test_returns_skip_masked_tokens_and_are_not_reset() -> None:
    mask = np.array([True, True, False, False, True, True])
    reward = np.array([0.0, 0, 0, 0, 0, 1])
    assert _groups.returns_to_go(mask, reward).tolist() == [1, 1, 0, 0, 1, 1]


def test_a_reward_at_a_masked_last_token_belongs_to_the_model_before_it() -> None:
    rollout = group(0, [1.0], "pmmii")[0]
    assert reinforce_pp.returns(reinforce_pp.Settings(), rollout).tolist() == [0, 1, 1, 0, 0]


def test_a_longer_rollout_counts_more_in_the_whitening() -> None:
    # Returns 1,1,1 and 0: mean 3/4, s = √((3/16 + 9/16) / 3) = 1/2.
    rollouts = group(0, [1.0, 0.0], ["pmmm", "pm"])
    assert of_rollouts(reinforce_pp, rollouts) == pytest.approx([0.5, -1.5], abs=1e-6)
    # Against the group's mean: 1/2 three times and −1/2: mean 1/4, the same s.
    assert of_rollouts(reinforce_pp_baseline, rollouts) == pytest.approx([0.5, -1.5], abs=1e-6)


def test_whitening_goes_over_all_groups_and_baselines_stay_inside_theirs() -> None:
    rollouts = group(0, [1.0, 1.0], "pm") + group(1, [1.0, 0.0], "pm")
    # Returns 1,1,1,0: mean 3/4, s = 1/2.
    assert of_rollouts(reinforce_pp, rollouts) == pytest.approx([0.5, 0.5, 0.5, -1.5], abs=1e-6)
    # 0, 0, 1/2, −1/2: mean 0, s = √(1/2 / 3).
    bound = 0.5 / np.sqrt(1 / 6)
    assert of_rollouts(reinforce_pp_baseline, rollouts) == pytest.approx([0, 0, bound, -bound], abs=1e-6)


def test_equal_returns_leave_nothing() -> None:
    for module in (reinforce_pp, reinforce_pp_baseline):
        assert of_rollouts(module, group(0, [1.0, 1.0], "pmm")) == [0.0, 0.0]


def test_credit_on_the_way_counts_up_to_where_it_is_earned() -> None:
    rollout = replace(group(0, [1.5], "pmmimm")[0], credit=((2, 0.25), (4, 0.25)))
    assert reinforce_pp.returns(reinforce_pp.Settings(), rollout).tolist() == [0, 1.5, 1.5, 0, 1.25, 1.0]


def test_kl_in_the_reward_is_paid_token_by_token() -> None:
    plain = group(0, [1.0], "pmim")[0]
    reference = np.where(plain.tokens.author == 1, plain.tokens.logprob - 0.5, 7.0).astype(np.float32)
    rollout = replace(plain, reference=reference)
    settings = reinforce_pp.Settings(kl_in_reward=0.1)
    assert settings.uses_reference
    # Two tokens of KL 1/2 at β = 0.1.
    assert reinforce_pp.returns(settings, rollout) == pytest.approx([0, 0.9, 0, 0.95], abs=1e-6)


# --- denominators ---------------------------------------------------------------------------------------------------


def test_sequence_denominator_gives_each_rollout_the_same() -> None:
    rollouts = [*group(0, [1.0, 0.0], ["pm", "pmmm"]), replace(group(1, [1.0], "pmm")[0], in_update=False)]
    found = grpo.weights(grpo.Settings(denominator=Denominator.SEQUENCE), rollouts)
    assert [values.tolist() for values in found] == [
        pytest.approx([0, 1 / 2]),
        pytest.approx([0, 1 / 6, 1 / 6, 1 / 6]),
        [0, 0, 0],
    ]


def test_dr_grpo_divides_by_a_constant() -> None:
    rollouts = group(0, [1.0, 0.0], ["pm", "pmimm"])
    found = dr_grpo.weights(dr_grpo.Settings(horizon=10), rollouts)
    assert [values.tolist() for values in found] == [
        pytest.approx([0, 1 / 20]),
        pytest.approx([0, 1 / 20, 0, 1 / 20, 1 / 20]),
    ]


# --- resampling on correct ------------------------------------------------------------------------------------------


def sampled(rewards: str, errors: str, repeats: str | None = None) -> list[Rollout]:
    """One group: rewards and penalties in tenths, a digit a rollout."""
    made = group(0, [float(digit) for digit in rewards], "pm")
    repeats = repeats or "0" * len(rewards)
    features = [
        {"tool_error_share": int(error) / 10, "answer_repeat_share": int(repeat) / 10}
        for error, repeat in zip(errors, repeats, strict=True)
    ]
    return [replace(rollout, features=one) for rollout, one in zip(made, features, strict=True)]


@pytest.mark.parametrize(
    ("rewards", "errors", "keep"),
    [
        ("11110000", "90519999", [1, 3, 4, 5]),  # the two right ones with least failed blocks; the first wrong ones
        ("11111100", "35124000", [2, 3, 5, 6, 7]),  # 3 of 6 right, and both wrong ones (at least two)
        ("10000000", "90000000", [0, 1, 2, 3]),  # a single right one stays whatever its code
        ("11111110", "00000000", [0, 1, 2, 3, 7]),  # 3.5 → 4 right, and the only wrong one
        ("11110000", "55555555", [0, 1, 4, 5]),  # equal penalties: the first
    ],
)
def test_half_of_a_group_is_kept(rewards: str, errors: str, keep: list[int]) -> None:
    selection = grpo_roc.select(grpo_roc.Settings(), sampled(rewards, errors))
    assert list(selection.keep) == sorted(keep)
    assert selection.reasons is not None
    assert sum(selection.reasons.values()) == len(rewards) - len(keep)


def test_repeated_answers_are_penalized_like_failed_blocks() -> None:
    selection = grpo_roc.select(grpo_roc.Settings(), sampled("11110000", "00000000", "90500000"))
    assert list(selection.keep) == [1, 3, 4, 5]


def test_groups_without_signal_are_left_out() -> None:
    selection = grpo_roc.select(grpo_roc.Settings(), sampled("1111", "0000"))
    assert (list(selection.keep), selection.reasons) == (
        [],
        {"all rewards equal": 4, "right, with worse code": 0, "wrong, beyond its share": 0},
    )


# --- the surrogate's options ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [1.0, 0.5])
def test_a_dual_clip_below_one_is_refused(value: float) -> None:
    with pytest.raises(RecipeError, match="dual_clip: must be above 1"):
        kind(ROOM, "grpo", dual_clip=value)


def test_published_values() -> None:
    """Clip below, above and dual, as systems are run."""
    table = {
        "grpo": (0.20, 0.28, None),
        "dapo": (0.20, 0.28, 10.0),
        "reinforce_pp": (0.20, 0.28, 3.0),
        "reinforce_pp_baseline": (0.20, 0.28, 3.0),
        "grpo_roc": (0.20, 0.28, None),
        "rloo": (0.20, 0.20, None),
        "dr_grpo": (0.20, 0.20, None),
    }
    for name, values in table.items():
        settings = algorithm(name).settings
        assert (settings.clip_low, settings.clip_high, settings.dual_clip) == values
        assert (settings.kl_coef, settings.entropy_coef, settings.importance_cap) == (0.0, 0.0, None)


@pytest.mark.train
class TestOptions:
    def test_importance_correction_truncates_the_weight_and_leaves_the_ratio(self) -> None:
        # π/π_old = 1.1; π_old/π_sampler = 4, cut to 2: 2 · 1.1 · A, gradient the same.
        assert self.at(logprob=np.log(1.1), old=0.0, behavior=-np.log(4.0), importance_cap=2.0) == pytest.approx(
            (-2.2, -2.2), rel=1e-5
        )
        # Below the cap nothing is cut: 0.5 · 1.1.
        assert self.at(logprob=np.log(1.1), old=0.0, behavior=np.log(2.0), importance_cap=2.0) == pytest.approx(
            (-0.55, -0.55), rel=1e-5
        )

    def test_without_a_cap_the_samplers_own_log_probability_stands_in_the_ratio(self) -> None:
        assert self.at(logprob=np.log(1.1), behavior=0.0) == pytest.approx((-1.1, -1.1), rel=1e-5)
        assert self.at(logprob=np.log(1.1), behavior=-np.log(2.0)) == pytest.approx((-1.28, 0.0), rel=1e-5)  # ρ = 2.2

    def test_penalty_against_the_reference(self) -> None:
        # d = log 2: k3 = 2 − log 2 − 1, its gradient 1 − e^d = −1; with A = 0 that is all.
        found = self.at(logprob=0.0, behavior=0.0, reference=np.log(2.0), advantage=0.0, kl_coef=0.5)
        assert found == pytest.approx((0.5 * (1 - np.log(2.0)), -0.5), rel=1e-5)

    def test_the_entropy_bonus_pushes_likely_tokens_down(self) -> None:
        # η · ρ · (−log π) with log π = −2 and ρ = 1: value 2η, gradient of the loss −η · 2.
        found = self.at(logprob=-2.0, behavior=-2.0, advantage=0.0, entropy_coef=0.1)
        assert found == pytest.approx((-0.2, -0.2), rel=1e-5)

    def test_the_entropy_bonus_has_the_gradient_of_the_entropy(self) -> None:
        """Averaged over what the policy samples, the estimate's gradient is the exact one."""
        import torch

        logits = torch.tensor([0.3, -1.0, 1.2], dtype=torch.float64, requires_grad=True)
        logprob = torch.log_softmax(logits, -1)
        exact = torch.autograd.grad(-(logprob.exp() * logprob).sum(), logits, retain_graph=True)[0]
        found = _surrogate.loss(
            _surrogate.Surrogate(entropy_coef=1.0),
            logprob_BT=logprob[None],
            behavior_BT=logprob.detach()[None],
            advantage_BT=torch.zeros(1, 3, dtype=torch.float64),
            weight_BT=logprob.detach().exp()[None],
        )
        assert torch.allclose(torch.autograd.grad(-found.total, logits)[0], exact, atol=1e-12)

    @staticmethod
    def at(
        *,
        logprob: float,
        behavior: float,
        old: float | None = None,
        reference: float | None = None,
        advantage: float = 1.0,
        **values: float,
    ) -> tuple[float, float]:
        import torch

        def one(value: float) -> torch.Tensor:
            return torch.full((1, 1), float(value), dtype=torch.float64)

        at = one(logprob).requires_grad_()
        more = {name: one(x) for name, x in {"old_BT": old, "reference_BT": reference}.items() if x is not None}
        found = _surrogate.loss(
            _surrogate.Surrogate(**values),
            logprob_BT=at,
            behavior_BT=one(behavior),
            advantage_BT=one(advantage),
            weight_BT=one(1.0),
            **more,
        )
        found.total.backward()
        assert at.grad is not None
        return found.total.item(), at.grad.item()
