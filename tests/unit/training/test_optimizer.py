"""Learning rates and the two rules."""

from __future__ import annotations

from typing import Any

import pytest

from thincode.errors import RecipeError
from thincode.training.optimizer import Decay, OptimizerKind, OptimizerSettings, ScheduleSettings, build, share_at


@pytest.mark.parametrize(
    ("settings", "shares"),
    [
        (ScheduleSettings(), {0: 1.0, 500: 1.0}),
        (ScheduleSettings(warmup_updates=4), {0: 0.25, 3: 1.0, 4: 1.0}),
        (
            ScheduleSettings(warmup_updates=10, constant_share=0.5, decay=Decay.LINEAR, floor=0.05),
            {9: 1.0, 50: 1.0, 75: 0.525, 100: 0.05, 200: 0.05},
        ),
        (ScheduleSettings(decay=Decay.COSINE), {0: 1.0, 50: 0.5, 100: 0.0}),
    ],
)
def test_learning_rate_over_a_hundred_updates(settings: ScheduleSettings, shares: dict[int, float]) -> None:
    assert {update: share_at(settings, update, total=100) for update in shares} == pytest.approx(shares)


def test_a_decay_needs_an_end() -> None:
    with pytest.raises(RecipeError, match=r"schedule\.decay"):
        share_at(ScheduleSettings(decay=Decay.LINEAR), 0, total=None)


@pytest.mark.train
class TestRules:
    def gradients(self, model: Any, seed: int = 0) -> None:
        import torch

        torch.manual_seed(seed)
        for parameter in model.parameters():
            parameter.grad = torch.randn_like(parameter)

    def test_own_adamw_moves_as_torch_does(self) -> None:
        from thincode.training._muon import MuonAdamW
        from training_cases import difference, tiny_model

        one, other = tiny_model(), tiny_model()
        torch_rule = build(OptimizerSettings(lr=1e-2, weight_decay=0.1), one)
        twin = {id(mine): its for mine, its in zip(one.parameters(), other.parameters(), strict=True)}
        own_rule = MuonAdamW(
            {
                **{key: group[key] for key in ("lr", "betas", "eps", "weight_decay")},
                "rule": "adamw",
                "params": [twin[id(parameter)] for parameter in group["params"]],
            }
            for group in torch_rule.param_groups
        )
        for step in range(3):
            for model, rule in ((one, torch_rule), (other, own_rule)):
                self.gradients(model, step)
                rule.step()
        assert difference(one, other) < 1e-6

    def test_muon_takes_the_matrices_of_the_layers_only(self) -> None:
        from training_cases import tiny_model

        model = tiny_model()
        rule = build(OptimizerSettings(kind=OptimizerKind.MUON, weight_decay=0.1), model)
        names = {id(parameter): name for name, parameter in model.named_parameters()}
        muon, embeddings, rest = ([names[id(p)] for p in group["params"]] for group in rule.param_groups)
        assert all("layers" in name and "proj" in name for name in muon)
        assert len(muon) == 14
        assert embeddings == ["model.embed_tokens.weight"]
        assert all("norm" in name for name in rest)
        assert [group["weight_decay"] for group in rule.param_groups] == [0.1, 0.1, 0.0]

    @pytest.mark.parametrize("shape", [(8, 8), (24, 8), (8, 24)])
    def test_a_muon_step_is_nearly_orthogonal(self, shape: tuple[int, int]) -> None:
        import torch

        from thincode.training._muon import orthogonalize

        torch.manual_seed(0)
        values = torch.linalg.svdvals(orthogonalize(torch.randn(3, *shape), iterations=5))
        assert float(values.min()) > 0.5
        assert float(values.max()) < 1.3

    def test_a_muon_step_is_the_same_alone_and_in_a_batch(self) -> None:
        import torch

        from thincode.training._muon import MuonAdamW

        def stepped(count: int) -> torch.Tensor:
            torch.manual_seed(1)
            weights = [torch.nn.Parameter(torch.randn(8, 4)) for _ in range(count)]
            for weight in weights:
                weight.grad = weight.detach().clone()
            group = {
                "params": weights,
                "rule": "muon",
                "lr": 0.1,
                "momentum": 0.9,
                "iterations": 5,
                "weight_decay": 0.0,
            }
            MuonAdamW([group]).step()
            return weights[0].detach()

        assert torch.allclose(stepped(1), stepped(3), atol=1e-6)

    @pytest.mark.parametrize("kind", list(OptimizerKind))
    def test_without_gradients_nothing_moves(self, kind: OptimizerKind) -> None:
        from training_cases import difference, tiny_model

        model, untouched = tiny_model(), tiny_model()
        rule = build(OptimizerSettings(kind=kind, lr=1.0, weight_decay=0.5), model)
        rule.step()
        assert difference(model, untouched) == 0.0

    @pytest.mark.parametrize("kind", list(OptimizerKind))
    def test_a_saved_state_goes_on_the_same(self, kind: OptimizerKind) -> None:
        import copy

        from training_cases import difference, tiny_model

        settings = OptimizerSettings(kind=kind, lr=1e-2)
        model = tiny_model()
        rule = build(settings, model)
        self.gradients(model, 0)
        rule.step()
        other = copy.deepcopy(model)
        resumed = build(settings, other)
        resumed.load_state_dict(copy.deepcopy(rule.state_dict()))
        for one, its_rule in ((model, rule), (other, resumed)):
            self.gradients(one, 1)
            its_rule.step()
        assert difference(model, other) == 0.0
