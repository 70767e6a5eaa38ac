"""Log-probabilities of the tokens of a micro-batch that count: what the trainer learns by, and the same without gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.nn import functional

from ..trajectory.tokens import loss_mask
from . import Rollout, Row
from .batch import Layout, MicroBatch, collate, plan

if TYPE_CHECKING:
    from numpy.typing import NDArray


def trained_logprobs(
    model: Any, micro: MicroBatch, *, temperature: float, fused: bool = False, device: Any = None
) -> torch.Tensor:
    """(K,) log-probabilities of the trained tokens of a micro-batch, float32.

    Args:
        model: a causal language model, wrapped or not.
        micro: K trained tokens.
        temperature: logits are divided by it; a fused head has been told it.
        fused: the model has TRL's head in tiles.
        device: where to compute.
    """
    predicts_BT = torch.from_numpy(micro.predicts_BT).to(device)
    target_K = torch.from_numpy(micro.target_K).to(device)
    inputs: dict[str, Any] = {"input_ids": torch.from_numpy(micro.ids_BT).to(device), "use_cache": False}
    if micro.position_BT is not None:
        inputs["position_ids"] = torch.from_numpy(micro.position_BT).to(device)
    if fused:
        labels_BT = torch.full(predicts_BT.shape, -100, device=device).masked_scatter(predicts_BT, target_K)
        tiles: torch.Tensor = model(**inputs, shift_labels=labels_BT, fused_lm_head=True).log_probs
        return tiles[predicts_BT].float()
    logits_KV = model(**inputs, logits_to_keep=predicts_BT).logits.float()
    if temperature != 1.0:
        logits_KV = logits_KV / temperature
    return -functional.cross_entropy(logits_KV, target_K, reduction="none")


@torch.no_grad()
def logprobs(
    model: Any, rollouts: Sequence[Rollout], *, temperature: float, micro_tokens: int
) -> list[NDArray[np.float32]]:
    """For each rollout, (T,): the log-probability `model` gives each token its sampler wrote, 0 elsewhere.

    Args:
        model: a causal language model; set to evaluation, and left as it was.
        rollouts: finished ones.
        temperature: of the rollouts.
        micro_tokens: tokens of one forward, padding counted.
    """
    device = next(model.parameters()).device
    made = [np.zeros(len(rollout.tokens), dtype=np.float32) for rollout in rollouts]
    rows = [_row(rollout) for rollout in rollouts]
    training = model.training
    model.eval()
    lengths = [len(row.ids) for row in rows]
    for indices in plan(lengths, micro_tokens=micro_tokens, ranks=1, layout=Layout.PADDED)[0]:
        micro = collate([rows[index] for index in indices], layout=Layout.PADDED)
        found_K = trained_logprobs(model, micro, temperature=temperature, device=device).cpu().numpy()
        start = 0
        for index in indices:
            mask_T = rows[index].weight > 0
            made[index][mask_T] = found_K[start : start + int(mask_T.sum())]
            start += max(int(mask_T.sum()), 1)
    model.train(training)
    return made


def _row(rollout: Rollout) -> Row:
    mask_T = loss_mask(rollout.tokens).astype(np.float32)
    return Row(ids=rollout.tokens.ids, behavior=mask_T, advantage=mask_T, weight=mask_T)
