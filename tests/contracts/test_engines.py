"""What every engine promises. An engine joins with a function that opens it and keeps it talking for at least 40 tokens."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from driving import Listener, address, context, drive
from openai_server import OpenAIServer, rambler
from thincode.engines import Finish, Sampling
from thincode.trajectory.tokenizer import Tokenizer


def _local() -> Any:
    pytest.importorskip("torch", reason="needs torch: pip install 'thincode[train]'")
    from thincode.engines import local
    from tiny_models import tiny_model

    return local.open(local.Settings(), model=tiny_model("qwen3", vocabulary=97))


def _openai(server: OpenAIServer, **changes: Any) -> Any:
    from thincode.engines import openai

    return openai.open(openai.Settings(base_url=server.url, model=server.model, **changes))


def _vllm(server: OpenAIServer) -> Any:
    from thincode.engines import vllm

    tokenizer = Tokenizer.train(["no text is needed"], vocab_size=300)
    return vllm.open(vllm.Settings(base_url=server.url, model=server.model), tokenizer=tokenizer)


ENGINES = [
    pytest.param(lambda server: _local(), id="local", marks=pytest.mark.train),
    pytest.param(lambda server: _openai(server, way="continue"), id="openai-continue"),
    pytest.param(lambda server: _openai(server, way="turns"), id="openai-turns"),
    pytest.param(_vllm, id="vllm"),
]

every_engine = pytest.mark.parametrize("engine", ENGINES, indirect=True)


@pytest.fixture(scope="module")
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer(speak=rambler, tick_s=0.001) as running:
        yield running


@pytest.fixture
def engine(request: pytest.FixtureRequest, server: OpenAIServer) -> Iterator[Any]:
    opened = request.param(server)
    yield opened
    drive(None, opened.close())


async def _speak(
    engine: Any, sample: int, sink: Listener, *, ids: Sequence[int] = (5, 6, 7), max_tokens: int = 40, seed: int = 11
) -> Finish:
    voice = await engine.voice(address(sample))
    try:
        finish = await voice.generate(context(ids), sink=sink, sampling=Sampling(), max_tokens=max_tokens, seed=seed)
        return Finish(finish)
    finally:
        await voice.close()


@every_engine
def test_each_id_has_its_logprob_or_there_are_only_texts(engine: Any) -> None:
    sink = Listener()
    drive(engine, _speak(engine, 0, sink))
    assert sink.heard
    assert len(sink.ids) == len(sink.logprobs)
    assert all(logprob <= 0 for logprob in sink.logprobs)
    assert bool(sink.ids) == engine.speaks_ids != bool(sink.pieces)


@every_engine
@pytest.mark.parametrize("after", [1, 2, 7])
def test_nothing_is_pushed_after_the_sink_said_stop(engine: Any, after: int) -> None:
    sink = Listener(stop_after=after)
    assert drive(engine, _speak(engine, 0, sink)) is Finish.STOPPED
    assert len(sink.heard) == after


@every_engine
@pytest.mark.parametrize("most", [0, 1, 7])
def test_no_more_than_max_tokens_are_generated(engine: Any, most: int) -> None:
    sink = Listener()
    assert drive(engine, _speak(engine, 0, sink, max_tokens=most)) is Finish.LENGTH
    assert len(sink.ids) <= most
    assert len(sink.ids) == most or not engine.speaks_ids


@every_engine
def test_a_seed_repeats_whoever_speaks_beside_it(engine: Any) -> None:
    alone = Listener()
    drive(engine, _speak(engine, 0, alone))

    async def crowd(sinks: list[Listener]) -> None:
        others = (
            _speak(engine, i, sink, ids=range(1, 3 + 7 * i), seed=i) for i, sink in enumerate(sinks[:-1], start=1)
        )
        await asyncio.gather(*others, _speak(engine, 9, sinks[-1]))

    sinks = [Listener(stop_after=5 * i) for i in range(1, 6)] + [Listener()]
    drive(engine, crowd(sinks))
    assert sinks[-1].heard == alone.heard
    assert sinks[-1].logprobs == pytest.approx(alone.logprobs, abs=1e-5)


@every_engine
def test_another_seed_speaks_otherwise(engine: Any) -> None:
    if not engine.speaks_ids:
        pytest.skip("what a text engine makes of a seed is its own matter")
    sinks = [Listener() for _ in range(4)]
    for seed, sink in enumerate(sinks):
        drive(engine, _speak(engine, 0, sink, seed=seed))
    assert len({tuple(sink.ids) for sink in sinks}) == 4


@every_engine
def test_a_voice_goes_on_where_its_context_ends(engine: Any) -> None:
    if not engine.speaks_ids:
        pytest.skip("a context without ids is the format's matter")

    async def in_two_turns() -> list[int]:
        voice = await engine.voice(address(0))
        first, second = Listener(stop_after=9), Listener(stop_after=9)
        greedy = Sampling(temperature=0.0)
        await voice.generate(context([5, 6, 7]), sink=first, sampling=greedy, max_tokens=40, seed=1)
        await voice.generate(context([5, 6, 7, *first.ids]), sink=second, sampling=greedy, max_tokens=40, seed=2)
        await voice.close()
        return first.ids + second.ids

    async def in_one() -> list[int]:
        voice, sink = await engine.voice(address(1)), Listener(stop_after=18)
        await voice.generate(context([5, 6, 7]), sink=sink, sampling=Sampling(temperature=0.0), max_tokens=40, seed=3)
        await voice.close()
        return sink.ids

    assert drive(engine, in_two_turns()) == drive(engine, in_one())


@every_engine
def test_closing_a_voice_ends_what_it_was_saying(engine: Any) -> None:

    async def interrupted() -> int:
        voice, sink = await engine.voice(address(0)), Listener()
        asked = context([5, 6, 7])
        speaking = asyncio.ensure_future(voice.generate(asked, sink=sink, sampling=Sampling(), max_tokens=400, seed=1))
        await asyncio.to_thread(sink.started.wait, 30)
        await voice.close()
        await voice.close()  # Closing twice is closing.
        with pytest.raises(asyncio.CancelledError):
            await speaking
        other = Listener(stop_after=3)  # The engine goes on for others, and the closed voice stays silent.
        await _speak(engine, 1, other)
        heard = len(sink.heard)
        await _speak(engine, 2, other)
        return len(sink.heard) - heard

    assert drive(engine, interrupted()) == 0


@every_engine
def test_a_sink_that_raises_fails_only_its_own_request(engine: Any) -> None:

    class Broken(Listener):
        def token(self, token_id: int, logprob: float) -> bool:
            raise KeyError("broken")

        def text(self, piece: str) -> bool:
            raise KeyError("broken")

    async def both() -> list[Any]:
        sound = Listener(stop_after=5)
        return await asyncio.gather(_speak(engine, 0, Broken()), _speak(engine, 1, sound), return_exceptions=True)

    broken, sound = drive(engine, both())
    assert isinstance(broken, KeyError)
    assert sound is Finish.STOPPED
