"""Small rollouts and models that several tests of training share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from thincode.settings import Kind, kind
from thincode.training import Rollout, Update
from thincode.training.rows import updates
from thincode.trajectory.tokens import Author, Tokens

ROOM = "thincode.training.algorithms"
VOCABULARY = 64


def tokens(authors: str, *, seed: int = 0, logprob: float | None = None) -> Tokens:
    """`p` prompt, `m` model, `i` interpreter, `d` driver: one letter a token."""
    rng = np.random.default_rng(seed)
    author = np.array(["pmid".index(letter) for letter in authors], dtype=np.uint8)
    sampled = author == Author.MODEL
    drawn = np.full(len(author), logprob) if logprob is not None else -rng.uniform(2.0, 6.0, len(author))
    return Tokens(
        ids=rng.integers(2, VOCABULARY, len(author)).astype(np.int32),
        author=author,
        logprob=np.where(sampled, drawn, np.nan).astype(np.float32),
    )


def group(number: int, rewards: Sequence[float], authors: str | Sequence[str] = "ppmmm") -> list[Rollout]:
    """One rollout a reward."""
    shapes = [authors] * len(rewards) if isinstance(authors, str) else authors
    return [
        Rollout(tokens=tokens(shape, seed=100 * number + place), group=number, reward=reward)
        for place, (reward, shape) in enumerate(zip(rewards, shapes, strict=True))
    ]


def step_rollouts(step: int, *, groups: int = 4, samples: int = 4) -> list[Rollout]:
    """A made-up step: lengths 7 to 50, an interpreter span in the longer ones, mixed rewards; drawn from `step` only."""
    rng = np.random.default_rng([7, step])
    made = []
    for number in range(groups):
        for place in range(samples):
            count = int(rng.integers(4, 40))
            shape = "ppp" + "m" * count + ("iiid" + "mm" if count > 12 else "")
            made.append(
                Rollout(
                    tokens=tokens(shape, seed=int(rng.integers(1 << 30))),
                    group=number,
                    reward=float(place == 0 or rng.random() < 0.4),
                )
            )
    return made


def step_updates(algorithm: Kind, step: int, *, updates_per_step: int = 2) -> list[Update]:
    return updates(algorithm, step_rollouts(step), step=step, updates_per_step=updates_per_step, seed=3)


def many_updates(algorithm: Kind, first: int, steps: int) -> Iterator[Update]:
    for step in range(first, steps):
        yield from step_updates(algorithm, step)


def algorithm(name: str, **values: Any) -> Kind:
    return kind(ROOM, name, **values)


def tiny_model(*, dropout: float = 0.0, seed: int = 0) -> Any:
    from thincode.training.models import ModelSettings, build

    settings = ModelSettings(
        layers=2, hidden=32, heads=2, head_dim=16, kv_heads=1, intermediate=64, context_tokens=256, dropout=dropout
    )
    return build(settings, vocabulary=VOCABULARY, eos_id=1, pad_id=0, seed=seed)


def difference(one: Any, other: Any) -> float:
    """Largest absolute difference of two models' weights."""
    pairs = zip(one.state_dict().values(), other.state_dict().values(), strict=True)
    return max(float((left - right).abs().max()) for left, right in pairs)


def train_policy(model: Any, kind_: Kind, folder: Path, *, steps: int, **more: Any) -> list[dict[str, float]]:
    """RL on the made-up steps; returns the records."""
    from thincode.training.on_accelerate import rl
    from thincode.training.optimizer import OptimizerKind, OptimizerSettings, ScheduleSettings

    records: list[dict[str, float]] = []
    values: dict[str, Any] = {
        "optimizer": OptimizerSettings(kind=OptimizerKind.ADAMW, lr=1e-3),
        "schedule": ScheduleSettings(warmup_updates=3),
        "micro_tokens": 96,
        "checkpoint_every": 2,
    }
    arguments: dict[str, Any] = {
        "updates": lambda first: many_updates(kind_, first, steps),
        "temperature": 1.0,
        "seed": 5,
        "total_updates": None,
        "resume_from": None,
        "state": dict,
        "on_update": records.append,
    }
    values |= {name: more.pop(name) for name in list(more) if name in rl.PolicySettings.__dataclass_fields__}
    rl.train_policy(model, settings=rl.PolicySettings(**values), folder=folder, **(arguments | more))
    return records
