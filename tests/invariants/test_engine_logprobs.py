"""Engine logprobs = those of a plain forward over the whole sequence."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from driving import Listener, address, context, drive
from thincode.engines import Finish, Sampling

pytestmark = pytest.mark.train
pytest.importorskip("torch", reason="needs torch: pip install 'thincode[train]'")

import torch  # noqa: E402

from thincode.engines import local  # noqa: E402
from tiny_models import ARCHITECTURES, tiny_model  # noqa: E402

VOCABULARY = 97


def plain_logprobs(model: Any, ids: list[int], sampling: Sampling) -> list[float]:
    """Log-probability of each id but the first, given those before it."""
    model.eval()
    with torch.no_grad():
        logits_TV = model(torch.tensor([ids])).logits[0, :-1].double() / (sampling.temperature or 1.0)
    logprob_TV = torch.log_softmax(logits_TV, dim=-1)
    if sampling.top_p < 1:
        for logprob_V in logprob_TV:
            best = logprob_V.argsort(descending=True).tolist()
            mass, kept = 0.0, []
            while mass < sampling.top_p:
                kept.append(best[len(kept)])
                mass += float(logprob_V[kept[-1]].exp())
            out = [i for i in range(VOCABULARY) if i not in kept]
            logprob_V[out] = float("-inf")
            logprob_V -= torch.logsumexp(logprob_V, dim=0)
    return [float(logprob_TV[t, token]) for t, token in enumerate(ids[1:])]


async def conversation(engine: Any, sample: int, sampling: Sampling) -> list[tuple[list[int], Listener]]:
    """Turns with a prompt of its own length, short and long insertions, and sometimes a dropped last token."""
    rng = random.Random(sample)
    await asyncio.sleep(0.01 * (sample % 4))  # Rows join at different times, and leave when they are done.
    voice = await engine.voice(address(sample))
    ids = [rng.randrange(VOCABULARY) for _ in range(rng.choice([1, 3, 16, 17, 18, 40, 90]))]
    turns = []
    for turn in range(rng.randint(1, 4)):
        sink = Listener(stop_after=rng.randint(1, 12))
        seed = sample * 100 + turn
        finish = await voice.generate(context(ids), sink=sink, sampling=sampling, max_tokens=64, seed=seed)
        assert finish is Finish.STOPPED
        turns.append((ids, sink))
        kept = sink.ids[:-1] if turn % 2 and len(sink.ids) > 1 else sink.ids
        ids = ids + kept + [rng.randrange(VOCABULARY) for _ in range(rng.choice([0, 1, 5, 17, 60]))]
        if rng.random() < 0.5:
            await asyncio.sleep(0.005)
    await voice.close()
    return turns


@pytest.mark.parametrize("schedule", ["overlapped", "deterministic"])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_logprob_is_that_of_a_plain_forward(architecture: str, schedule: str) -> None:
    model = tiny_model(architecture, vocabulary=VOCABULARY)
    engine = local.open(local.Settings(rows=5), model=model, schedule=schedule)
    kinds = [Sampling(), Sampling(temperature=0.0), Sampling(temperature=0.7, top_p=0.9)]

    async def everyone() -> list[Any]:
        return await asyncio.gather(*(conversation(engine, i, kinds[i % 3]) for i in range(9)))

    checked = 0
    for sample, turns in enumerate(drive(engine, everyone())):
        for ids, heard in turns:
            expected = plain_logprobs(model, ids + heard.ids, kinds[sample % 3])[len(ids) - 1 :]
            assert heard.logprobs == pytest.approx(expected, abs=1e-5)
            checked += len(expected)
    assert checked > 100


def test_a_cache_is_dropped_when_the_weights_change() -> None:
    model = tiny_model("qwen3", vocabulary=VOCABULARY)
    engine = local.open(local.Settings(), model=model)
    ids = list(range(30))
    first, second = Listener(), Listener()

    async def speak(voice: Any, ids: list[int], sink: Listener) -> None:
        await voice.generate(context(ids), sink=sink, sampling=Sampling(), max_tokens=5, seed=1)

    async def start() -> Any:
        voice = await engine.voice(address(0))
        await speak(voice, ids, first)
        return voice

    voice = drive(engine, start())
    loss = model(torch.tensor([ids]), labels=torch.tensor([ids])).loss
    loss.backward()  # The engine leaves the module trainable: gradients, mode and buffers.
    with torch.no_grad():
        for parameter in model.parameters():
            parameter -= 0.5 * parameter.grad
    engine.weights_changed()
    drive(engine, speak(voice, ids + first.ids, second))
    expected = plain_logprobs(model, ids + first.ids + second.ids, Sampling())[-5:]
    assert second.logprobs == pytest.approx(expected, abs=1e-5)
