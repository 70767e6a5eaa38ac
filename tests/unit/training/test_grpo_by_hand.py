"""Tables worked by hand: advantages, denominators, clips."""

from __future__ import annotations

import numpy as np
import pytest

from thincode.settings import Kind
from thincode.training import Rollout
from thincode.training.algorithms import dapo, grpo
from thincode.training.algorithms._groups import Denominator
from training_cases import algorithm, group, tokens

BOTH = [algorithm("grpo"), algorithm("dapo")]


def names(kind: Kind) -> str:
    return kind.name


@pytest.mark.parametrize("kind", BOTH, ids=names)
@pytest.mark.parametrize(
    ("correct", "right", "wrong"),
    [(1, 2.645751, -0.377964), (4, 1.0, -1.0), (7, 0.377964, -2.645751), (0, None, 0.0), (8, 0.0, None)],
)
def test_advantage_is_standardized_with_the_population_sigma(
    kind: Kind, correct: int, right: float, wrong: float
) -> None:
    rollouts = group(0, [1.0] * correct + [0.0] * (8 - correct))
    found = [values[2] for values in kind.module.advantages(kind.settings, rollouts)]
    assert found == pytest.approx([right] * correct + [wrong] * (8 - correct), abs=1e-6)


@pytest.mark.parametrize("kind", BOTH, ids=names)
def test_rewards_that_differ_by_rounding_give_no_advantage(kind: Kind) -> None:
    rollouts = group(0, [0.1 + 0.2, 0.3, 0.3, 0.3])
    assert not any(values.any() for values in kind.module.advantages(kind.settings, rollouts))


@pytest.mark.parametrize("kind", BOTH, ids=names)
def test_only_tokens_of_the_model_have_an_advantage_and_a_weight(kind: Kind) -> None:
    rollouts = group(0, [1.0, 0.0], "ppmmidm")
    for values in [*kind.module.advantages(kind.settings, rollouts), *kind.module.weights(kind.settings, rollouts)]:
        assert (values != 0).tolist() == [False, False, True, True, False, False, True]


def test_the_two_denominators_differ_when_groups_differ_in_length() -> None:
    # Group 0 has 2 trainable tokens, group 1 has 6: Eq. 5 gives each group half; the token mean gives each token 1/8.
    rollouts = group(0, [1.0, 0.0], "pm") + group(1, [1.0, 0.0], "pmmm")
    table = {
        Denominator.GROUP: [[0, 1 / 4], [0, 1 / 4], [0, 1 / 12, 1 / 12, 1 / 12], [0, 1 / 12, 1 / 12, 1 / 12]],
        Denominator.BATCH: [[0, 1 / 8], [0, 1 / 8], [0, 1 / 8, 1 / 8, 1 / 8], [0, 1 / 8, 1 / 8, 1 / 8]],
    }
    for denominator, expected in table.items():
        for module in (grpo, dapo):
            found = module.weights(module.Settings(denominator=denominator), rollouts)
            assert [values.tolist() for values in found] == [pytest.approx(row) for row in expected]
    assert grpo.Settings().denominator is Denominator.GROUP
    assert dapo.Settings().denominator is Denominator.BATCH


@pytest.mark.parametrize(
    ("denominator", "shares"),
    [
        (Denominator.GROUP, [1 / 6, 2 / 6, 3 / 6]),
        (Denominator.BATCH, [1 / 6, 2 / 6, 3 / 6]),
        (Denominator.SEQUENCE, [1 / 3] * 3),
    ],
)
def test_a_rollout_outside_the_update_counts_in_statistics_only(denominator: Denominator, shares: list[float]) -> None:
    shapes = ["pm", "pmm", "pmmm", "pmmmm"]
    rollouts = group(0, [1.0, 0.0, 0.0, 0.0], shapes)
    rollouts[3] = Rollout(tokens=rollouts[3].tokens, group=0, reward=0.0, in_update=False)
    settings = grpo.Settings(denominator=denominator)
    assert grpo.advantages(settings, rollouts)[0][1] == pytest.approx(np.sqrt(3.0))  # μ = 1/4, σ = √3/4
    weights = grpo.weights(settings, rollouts)
    assert not weights[3].any()
    assert [float(values.sum()) for values in weights[:3]] == pytest.approx(shares)


def test_dapo_leaves_out_groups_without_signal_and_asks_for_as_many() -> None:
    rollouts = group(0, [1.0, 1.0]) + group(1, [1.0, 0.0]) + group(2, [0.0, 0.0])
    selection = dapo.select(dapo.Settings(), rollouts)
    assert list(selection.keep) == [2, 3]
    assert selection.missing_groups == 2
    assert selection.reasons == {"all rewards equal and positive": 2, "all rewards equal and not positive": 2}
    assert dapo.select(dapo.Settings(dynamic_sampling=False), rollouts).missing_groups == 0


def test_grpo_keeps_groups_without_signal_unless_told_otherwise() -> None:
    rollouts = group(0, [1.0, 1.0]) + group(1, [1.0, 0.0])
    assert list(grpo.select(grpo.Settings(), rollouts).keep) == [0, 1, 2, 3]
    dropping = algorithm("grpo", zero_advantage_groups="drop")
    assert list(grpo.select(dropping.settings, rollouts).keep) == [2, 3]


@pytest.mark.parametrize(
    ("length", "penalty"), [(16_384, 0.0), (18_432, -0.5), (20_480, -1.0), (1, 0.0), (30_000, -1.0)]
)
def test_overlong_punishment_grows_over_the_cache(length: int, penalty: float) -> None:
    assert dapo.overlong_penalty(length, limit=20_480, cache=4_096) == pytest.approx(penalty)


def test_overlong_punishment_makes_signal_only_after_selection() -> None:
    rollouts = group(0, [1.0, 1.0], ["pmmm", "pmmmmm"])
    settings = dapo.Settings(overlong_limit=5, overlong_cache=2)
    assert list(dapo.select(settings, rollouts).keep) == []
    assert dapo.advantages(settings, rollouts)[1][1] == pytest.approx(-1.0)


@pytest.mark.train
class TestSurrogate:
    @pytest.mark.parametrize(
        ("ratio", "advantage", "objective", "gradient"),
        [
            (1.0, 2.0, 2.0, 2.0),
            (1.27, 1.0, 1.27, 1.27),
            (1.5, 1.0, 1.28, 0.0),  # clipped above
            (0.5, 1.0, 0.5, 0.5),  # a low ratio is not clipped for a good token
            (0.5, -1.0, -0.8, 0.0),  # clipped below
            (1.5, -1.0, -1.5, -1.5),
            (20.0, -1.0, -20.0, -20.0),
        ],
    )
    def test_min_of_both_terms(self, ratio: float, advantage: float, objective: float, gradient: float) -> None:
        assert self.at(grpo, ratio, advantage) == pytest.approx((-objective, -gradient), rel=1e-5)

    def test_dual_clip_bounds_a_bad_token(self) -> None:
        assert self.at(dapo, 20.0, -1.0) == pytest.approx((10.0, 0.0), rel=1e-5)
        assert self.at(dapo, 5.0, -1.0) == pytest.approx((5.0, 5.0), rel=1e-5)
        assert self.at(grpo, 5.0, -1.0, dual_clip=3.0) == pytest.approx((3.0, 0.0), rel=1e-5)

    @staticmethod
    def at(module: object, ratio: float, advantage: float, **more: float) -> tuple[float, float]:
        import torch

        logprob = torch.tensor([[float(np.log(ratio)) - 3.0]], requires_grad=True)
        one = torch.ones(1, 1)
        found = module.loss(  # type: ignore[attr-defined]
            module.Settings(**more),  # type: ignore[attr-defined]
            logprob_BT=logprob,
            behavior_BT=torch.full((1, 1), -3.0),
            advantage_BT=one * advantage,
            weight_BT=one,
        )
        found.total.backward()
        assert logprob.grad is not None
        return found.total.item(), logprob.grad.item()

    def test_statistics_of_four_tokens(self) -> None:
        import torch

        ratio = torch.tensor([[1.0, 1.5, 0.5, 1.1]])
        found = grpo.loss(
            grpo.Settings(),
            logprob_BT=ratio.log() - 2.0,
            behavior_BT=torch.full((1, 4), -2.0),
            advantage_BT=torch.tensor([[1.0, 1.0, -1.0, 1.0]]),
            weight_BT=torch.full((1, 4), 0.25),
        )
        expected = {"tokens": 4, "weight": 1.0, "clip_low": 0.25, "clip_high": 0.25, "ratio": 1.025}
        expected["approx_kl"] = float(np.mean([r - 1 - np.log(r) for r in (1.0, 1.5, 0.5, 1.1)]))
        expected["entropy"] = float(2.0 - np.mean(np.log([1.0, 1.5, 0.5, 1.1])))
        expected["mismatch"] = float(np.mean(np.abs(np.log([1.0, 1.5, 0.5, 1.1]))))
        expected |= {"correction": 1.0, "clip_dual": 0.0, "reference_kl": 0.0}
        assert found.stats == pytest.approx(expected, rel=1e-5)


def test_cases_spell_authors() -> None:
    assert tokens("pmid").author.tolist() == [0, 1, 2, 3]
