"""Muon and AdamW as one optimizer, so that one state is saved and resumed.

Muon in float32: torch's own runs its iteration in bfloat16, which a CPU without such units does sixty times slower.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)
"""Coefficients of the quintic iteration (Jordan et al. 2024): singular values end between about 0.7 and 1.2."""


def orthogonalize(matrix_BMN: Tensor, *, iterations: int) -> Tensor:
    """Bring the singular values of each of B matrices near 1 by Newton–Schulz iteration."""
    a, b, c = NEWTON_SCHULZ
    tall = matrix_BMN.shape[-2] > matrix_BMN.shape[-1]
    x = matrix_BMN.mT if tall else matrix_BMN
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(iterations):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.mT if tall else x


class MuonAdamW(torch.optim.Optimizer):
    """Each parameter group names its rule: `muon` or `adamw`. Parameters without a gradient stay as they are."""

    def __init__(self, groups: Iterable[dict[str, Any]]) -> None:
        """Take groups with all their values; see `optimizer.build`."""
        super().__init__(groups, {})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One update."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            moving = [parameter for parameter in group["params"] if parameter.grad is not None]
            if group["rule"] == "muon":
                self._muon(group, moving)
            else:
                for parameter in moving:
                    self._adamw(group, parameter)
        return loss

    def _muon(self, group: dict[str, Any], moving: list[Tensor]) -> None:
        by_shape: dict[tuple[int, ...], list[tuple[Tensor, Tensor]]] = {}
        for parameter in moving:
            assert parameter.grad is not None
            state = self.state[parameter]
            if "momentum" not in state:
                state["momentum"] = torch.zeros_like(parameter, dtype=torch.float32)
            gradient = parameter.grad.float()
            state["momentum"].lerp_(gradient, 1.0 - group["momentum"])
            direction = gradient.lerp(state["momentum"], group["momentum"])  # Nesterov
            rows, columns = direction.shape
            wide = direction.mT if rows > columns else direction
            by_shape.setdefault(tuple(wide.shape), []).append((parameter, wide))
        for same in by_shape.values():
            moved = orthogonalize(torch.stack([wide for _, wide in same]), iterations=group["iterations"])
            for (parameter, _), step in zip(same, moved, strict=True):
                rows, columns = parameter.shape
                scale = max(1.0, rows / columns) ** 0.5
                parameter.mul_(1.0 - group["lr"] * group["weight_decay"])
                parameter.add_(step.mT if rows > columns else step, alpha=-group["lr"] * scale)

    def _adamw(self, group: dict[str, Any], parameter: Tensor) -> None:
        assert parameter.grad is not None
        state = self.state[parameter]
        if "step" not in state:
            state["step"] = 0
            state["mean"] = torch.zeros_like(parameter, dtype=torch.float32)
            state["square"] = torch.zeros_like(parameter, dtype=torch.float32)
        state["step"] += 1
        beta1, beta2 = group["betas"]
        gradient = parameter.grad.float()
        state["mean"].lerp_(gradient, 1.0 - beta1)
        state["square"].mul_(beta2).addcmul_(gradient, gradient, value=1.0 - beta2)
        mean = 1.0 - beta1 ** state["step"]
        square = 1.0 - beta2 ** state["step"]
        parameter.mul_(1.0 - group["lr"] * group["weight_decay"])
        scale = (state["square"] / square).sqrt_().add_(group["eps"])
        parameter.addcdiv_(state["mean"], scale, value=-group["lr"] / mean)
