"""Draws of the engine `local`."""

from __future__ import annotations

import math

import numpy as np
import pytest

pytestmark = pytest.mark.train
torch = pytest.importorskip("torch", reason="needs torch: pip install 'thincode[train]'")

from thincode.engines._sampler import draw, uniforms  # noqa: E402

NOTHING = -math.inf
ALMOST_ONE = 1 - 2.0**-53


def draw_one(
    probabilities: list[float], u: float, *, temperature: float = 1.0, top_p: float = 1.0
) -> tuple[int, float]:
    logits = [math.log(p) if p else NOTHING for p in probabilities]
    drawn = draw(
        torch.tensor([logits]),
        temperature_S=np.array([temperature]),
        top_p_S=np.array([top_p]),
        uniform_S=np.array([u]),
    )
    return drawn.ids[0], math.exp(drawn.logprobs[0])


@pytest.mark.parametrize(
    ("probabilities", "u", "settings", "token", "probability"),
    [
        # The cumulative distribution is 0.1, 0.3, 0.6, 1.0.
        ([0.1, 0.2, 0.3, 0.4], 0.0, {}, 0, 0.1),
        ([0.1, 0.2, 0.3, 0.4], 0.15, {}, 1, 0.2),
        ([0.1, 0.2, 0.3, 0.4], 0.5, {}, 2, 0.3),
        ([0.1, 0.2, 0.3, 0.4], ALMOST_ONE, {}, 3, 0.4),
        # What has no probability is never drawn, at neither end.
        ([0.0, 0.5, 0.5, 0.0], 0.0, {}, 1, 0.5),
        ([0.0, 0.5, 0.5, 0.0], ALMOST_ONE, {}, 2, 0.5),
        ([0.0, 0.0, 1.0, 0.0], 0.3, {}, 2, 1.0),
        # Greedy: the first of the best, its probability at temperature 1, whatever top_p says.
        ([0.2, 0.4, 0.4, 0.0], 0.99, {"temperature": 0.0}, 1, 0.4),
        ([0.2, 0.5, 0.3, 0.0], 0.0, {"temperature": 0.0, "top_p": 0.1}, 1, 0.5),
        # Temperature 1/2 squares: 1, 4, 9, 16 of 30.
        ([0.1, 0.2, 0.3, 0.4], 0.2, {"temperature": 0.5}, 2, 9 / 30),
        # top_p 0.6 needs 0.4 and 0.3; of these the cumulative distribution, in order of ids, is 3/7, 1.
        ([0.1, 0.2, 0.3, 0.4], 0.0, {"top_p": 0.6}, 2, 3 / 7),
        ([0.1, 0.2, 0.3, 0.4], 0.45, {"top_p": 0.6}, 3, 4 / 7),
        ([0.1, 0.2, 0.3, 0.4], 0.9, {"top_p": 0.01}, 3, 1.0),
        # Equals at the edge of the nucleus: the lower id stays.
        ([0.25, 0.25, 0.25, 0.25], ALMOST_ONE, {"top_p": 0.4}, 1, 0.5),
    ],
)
def test_a_draw_inverts_the_cumulative_distribution(
    probabilities: list[float], u: float, settings: dict[str, float], token: int, probability: float
) -> None:
    drawn, p = draw_one(probabilities, u, **settings)
    assert drawn == token
    assert p == pytest.approx(probability, rel=1e-5)


def test_a_rows_draw_does_not_depend_on_the_rows_beside_it() -> None:
    rng = np.random.default_rng(0)
    rows = 60
    logits_SV = torch.from_numpy(rng.normal(size=(rows, 50)).astype(np.float32)) * 2
    temperature_S = rng.choice([0.0, 0.6, 1.0], size=rows)
    top_p_S = rng.choice([0.5, 0.95, 1.0], size=rows)
    uniform_S = rng.random(rows)
    together = draw(logits_SV, temperature_S=temperature_S, top_p_S=top_p_S, uniform_S=uniform_S)
    for s in range(rows):
        only = slice(s, s + 1)
        alone = draw(
            logits_SV[only], temperature_S=temperature_S[only], top_p_S=top_p_S[only], uniform_S=uniform_S[only]
        )
        assert alone.ids[0] == together.ids[s]
        assert alone.logprobs[0] == pytest.approx(together.logprobs[s], abs=1e-6)


def test_draws_follow_the_distribution() -> None:
    probabilities = np.array([0.05, 0.15, 0.0, 0.3, 0.5])
    n = 20_000
    u = uniforms(np.arange(n, dtype=np.uint64), np.full(n, 7, dtype=np.uint64))
    logits_SV = torch.from_numpy(np.log(np.maximum(probabilities, 1e-300))).repeat(n, 1)
    drawn = draw(logits_SV, temperature_S=np.ones(n), top_p_S=np.ones(n), uniform_S=u)
    counted = np.bincount(drawn.ids, minlength=5) / n
    # Five standard deviations of a share; the draw is a fixed function of the seeds, so this never flickers.
    assert np.all(np.abs(counted - probabilities) <= 5 * np.sqrt(probabilities * (1 - probabilities) / n))


def test_uniforms_are_in_range_and_as_good_as_independent() -> None:
    seed, position = np.meshgrid(np.arange(300, dtype=np.uint64), np.arange(300, dtype=np.uint64))
    u = uniforms(seed.ravel(), position.ravel())
    assert u.min() >= 0
    assert u.max() < 1
    assert len(np.unique(u)) == len(u)
    square = u.reshape(300, 300)
    shares = np.histogram(u, bins=20, range=(0, 1))[0] / len(u)
    assert np.all(np.abs(shares - 0.05) < 5 * math.sqrt(0.05 * 0.95 / len(u)))
    for one, other in (
        (square[:, 1:], square[:, :-1]),
        (square[1:], square[:-1]),
    ):  # Neighbors in seed and in position.
        assert abs(np.corrcoef(one.ravel(), other.ravel())[0, 1]) < 5 / math.sqrt(one.size)
