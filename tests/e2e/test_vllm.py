"""The engine `vllm` against a real vLLM server with a minute model: pytest -m slow --vllm PYTHON tests/e2e/test_vllm.py."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from driving import Listener, address, context, drive
from thincode.engines import Finish, Sampling
from thincode.trajectory.tokenizer import Tokenizer

pytestmark = [pytest.mark.slow, pytest.mark.train]
pytest.importorskip("torch", reason="needs torch: pip install 'thincode[train]'")

PATIENCE_S = 400.0


@dataclass(frozen=True)
class Served:
    """A model folder and where a server has it."""

    folder: Path
    url: str


@pytest.fixture(scope="module")
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    python = request.config.getoption("--vllm")
    if python is None:
        pytest.skip("needs a vLLM: pytest --vllm PYTHON (a Python that has it)")
    from thincode.training import models

    folder = tmp_path_factory.mktemp("served") / "model"
    tokenizer = Tokenizer.train(["What is 12 * 7? ```python print(12 * 7)```"], vocab_size=300)
    shape = models.ModelSettings(hidden=64, heads=2, kv_heads=1, head_dim=64, intermediate=128, context_tokens=512)
    model = models.build(
        shape, vocabulary=tokenizer.vocab_size, eos_id=tokenizer.eos_ids[0], pad_id=tokenizer.pad_id, seed=1
    )
    for parameter in model.parameters():
        parameter.data *= 4  # so that draws differ from even ones
    models.save(model, tokenizer, folder)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = f"--host 127.0.0.1 --port {port} --dtype float32 --max-model-len 256 --logprobs-mode processed_logprobs"
    log = folder.parent / "log"
    with log.open("wb") as out:
        command = [python, "-m", "vllm.entrypoints.openai.api_server", "--model", str(folder), *words.split()]
        process = subprocess.Popen([*command, "--served-model-name", "minute"], stdout=out, stderr=out)
    try:
        _wait_for(f"http://127.0.0.1:{port}/health", process, log)
        yield Served(folder, f"http://127.0.0.1:{port}/v1")
    finally:
        process.terminate()
        process.wait(60)


def _wait_for(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            urllib.request.urlopen(url, timeout=5).close()
            return
        except OSError:
            assert process.poll() is None, log.read_text()[-3000:]
            assert time.monotonic() < deadline, log.read_text()[-3000:]
            time.sleep(1)


@pytest.fixture
def engine(served: Served) -> Iterator[Any]:
    from thincode.engines import vllm

    opened = vllm.open(vllm.Settings(base_url=served.url, tokenizer=served.folder))
    assert drive(opened, opened.prepare()) == {"model": "minute", "logprobs": "processed"}
    yield opened
    drive(opened, opened.close())


async def speak(engine: Any, ids: list[int], sink: Listener, *, sampling: Sampling, most: int, seed: int) -> Finish:
    voice = await engine.voice(address(0))
    try:
        return Finish(await voice.generate(context(ids), sink=sink, sampling=sampling, max_tokens=most, seed=seed))
    finally:
        await voice.close()


@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_its_logprobs_are_those_of_a_plain_forward(engine: Any, served: Served, temperature: float) -> None:
    import torch

    from thincode.training import models

    model = models.load(str(served.folder)).eval()
    ids, sink = [5, 6, 7, 80, 9], Listener()
    sampling = Sampling(temperature=temperature)
    finish = drive(engine, speak(engine, ids, sink, sampling=sampling, most=60, seed=3), within_s=PATIENCE_S)
    with torch.no_grad():
        logits_TV = model(torch.tensor([ids + sink.ids])).logits[0].double() / temperature
    logprob_TV = torch.log_softmax(logits_TV, dim=-1)
    expected = [float(logprob_TV[len(ids) - 1 + t, token]) for t, token in enumerate(sink.ids)]
    assert sink.logprobs == pytest.approx(expected, abs=1e-4)
    assert min(expected) < -0.5, "the model is sure of everything, so that nothing was tried"
    eos = engine.tokenizer.eos_ids
    assert (finish is Finish.ENDED) == (sink.ids[-1] in eos)
    assert finish is Finish.ENDED or len(sink.ids) == 60


def test_a_seed_repeats_and_a_turn_goes_on_where_its_context_ends(engine: Any) -> None:
    async def play() -> list[list[int]]:
        heard = []
        for ids, stop, temperature, seed in (([5, 6], 400, 1.0, 1), ([5, 6], 400, 1.0, 1), ([5, 6], 400, 1.0, 2),
                                             ([5, 6], 8, 0.0, 1), ([5, 6], 4, 0.0, 1)):  # fmt: skip
            sink = Listener(stop_after=stop)
            await speak(engine, ids, sink, sampling=Sampling(temperature=temperature), most=20, seed=seed)
            heard.append(sink.ids)
        sink = Listener(stop_after=4)
        await speak(engine, [5, 6, *heard[-1]], sink, sampling=Sampling(temperature=0.0), most=20, seed=9)
        return [*heard, sink.ids]

    same, again, other, whole, first, second = drive(engine, play(), within_s=PATIENCE_S)
    assert same == again != other
    assert first + second == whole


def test_many_speak_at_once_and_one_is_silenced(engine: Any) -> None:
    async def play() -> list[Any]:
        voice, sink = await engine.voice(address(1)), Listener()
        asked = context([5, 6, 7])
        silenced = asyncio.ensure_future(voice.generate(asked, sink=sink, sampling=Sampling(), max_tokens=200, seed=1))
        others = [
            speak(engine, [5, number], Listener(), sampling=Sampling(), most=30, seed=number) for number in range(8)
        ]
        await asyncio.to_thread(sink.started.wait, 60)
        await voice.close()
        return await asyncio.gather(silenced, *others, return_exceptions=True)

    silenced, *others = drive(engine, play(), within_s=PATIENCE_S)
    assert isinstance(silenced, asyncio.CancelledError)
    assert all(isinstance(one, Finish) for one in others)


def test_a_context_too_long_for_the_server_ends_the_turn(engine: Any) -> None:
    asked = speak(engine, [5] * 300, Listener(), sampling=Sampling(), most=10, seed=1)
    assert drive(engine, asked, within_s=PATIENCE_S) is Finish.LENGTH
