"""The engine `local`: rows, schedules, failures, models it refuses."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from driving import Listener, address, context, drive
from thincode.engines import Finish, Sampling, local
from thincode.errors import InfrastructureError, ModelError, RecipeError

pytestmark = pytest.mark.train
torch = pytest.importorskip("torch", reason="needs torch: pip install 'thincode[train]'")

from tiny_models import tiny_model  # noqa: E402

VOCABULARY = 97
GREEDY = Sampling(temperature=0.0)


def opened(*, schedule: str = "overlapped", tokenizer: Any = None, model: Any = None, **settings: Any) -> Any:
    model = model or tiny_model("qwen3", vocabulary=VOCABULARY)
    return local.open(local.Settings(**settings), model=model, tokenizer=tokenizer, schedule=schedule)


async def say(
    engine: Any, sample: int, sink: Listener, *, ids: Any = (5, 6, 7), sampling: Sampling = GREEDY, n: int = 20
) -> Finish:
    voice = await engine.voice(address(sample))
    try:
        return Finish(await voice.generate(context(ids), sink=sink, sampling=sampling, max_tokens=n, seed=sample))
    finally:
        await voice.close()


def greedy_by_hand(model: Any, ids: list[int], n: int) -> list[int]:
    model.eval()
    for _ in range(n):
        with torch.no_grad():
            ids = [*ids, int(model(torch.tensor([ids])).logits[0, -1].argmax())]
    return ids[-n:]


def test_importing_the_settings_loads_no_torch() -> None:
    check = "import sys, thincode.engines.local; sys.exit('torch' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run([sys.executable, "-c", check], check=False, env=environment).returncode == 0


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("architecture", ["qwen3", "gpt2"])
def test_greedy_is_the_most_likely_token_up_to_the_last_position(architecture: str, attention: str) -> None:
    model = tiny_model(architecture, vocabulary=VOCABULARY, positions=64, attention=attention)
    engine = opened(model=model)
    sinks = {1: Listener(), 30: Listener(), 63: Listener()}

    async def all_to_the_end() -> None:
        await asyncio.gather(
            *(say(engine, n, sink, ids=[i % VOCABULARY for i in range(n)], n=64 - n) for n, sink in sinks.items())
        )

    drive(engine, all_to_the_end())
    for n, sink in sinks.items():
        assert sink.ids == greedy_by_hand(model, [i % VOCABULARY for i in range(n)], 64 - n)


@pytest.mark.parametrize("schedule", ["overlapped", "deterministic"])
def test_more_voices_than_rows_take_turns(schedule: str) -> None:
    engine = opened(rows=2, schedule=schedule)
    sinks = [Listener() for _ in range(7)]

    async def everyone() -> None:
        voices = [await engine.voice(address(i)) for i in range(7)]

        async def one(i: int) -> None:
            await voices[i].generate(context([i, 1, 2]), sink=sinks[i], sampling=GREEDY, max_tokens=5 + i, seed=0)
            await voices[i].close()

        await asyncio.gather(*(one(i) for i in range(7)))

    drive(engine, everyone())
    model = tiny_model("qwen3", vocabulary=VOCABULARY)
    for i, sink in enumerate(sinks):
        assert sink.ids == greedy_by_hand(model, [i, 1, 2], 5 + i)


def test_an_end_of_sequence_id_is_pushed_and_ends_the_turn() -> None:
    class Ends:
        eos_ids = (greedy_by_hand(tiny_model("qwen3", vocabulary=VOCABULARY), [5, 6, 7], 4)[3],)

    engine, sink = opened(tokenizer=Ends()), Listener()
    assert drive(engine, say(engine, 0, sink)) is Finish.ENDED
    assert sink.ids[-1] in Ends.eos_ids
    assert len(sink.ids) <= 4


def run_with_jitter(jitter: int) -> list[list[float]]:
    """Twelve episodes of several turns in places for five; what happens between turns takes random time."""
    engine = opened(schedule="deterministic", rows=4)
    clock = random.Random(jitter)
    waiting = list(range(12))
    heard: dict[int, list[float]] = {}

    async def episode(sample: int, voice: Any) -> None:
        rng = random.Random(sample)
        ids = [rng.randrange(VOCABULARY) for _ in range(rng.randint(2, 40))]
        heard[sample] = []
        for turn in range(rng.randint(1, 4)):
            await asyncio.sleep(clock.random() * 0.004)
            sink = Listener(stop_after=rng.randint(1, 9))
            await voice.generate(context(ids), sink=sink, sampling=Sampling(), max_tokens=50, seed=sample * 9 + turn)
            ids = ids + sink.ids + [rng.randrange(VOCABULARY) for _ in range(rng.randint(1, 20))]
            heard[sample] += [*sink.ids, *sink.logprobs]

    async def place(sample: int, voice: Any) -> None:
        while True:
            await episode(sample, voice)
            await asyncio.sleep(clock.random() * 0.004)
            following = (waiting.pop(0), voice) if waiting else None
            if following is None:
                return await voice.close()
            sample, last = following
            voice = await engine.voice(address(sample))  # The successor first: then nobody steps in between.
            await last.close()

    async def everyone() -> None:
        first = [(sample, await engine.voice(address(sample))) for sample in [waiting.pop(0) for _ in range(5)]]
        await asyncio.gather(*(place(sample, voice) for sample, voice in first))

    drive(engine, everyone())
    return [heard[sample] for sample in sorted(heard)]


def test_the_deterministic_schedule_repeats_to_the_last_bit() -> None:
    assert run_with_jitter(1) == run_with_jitter(2)


def test_the_deterministic_schedule_waits_for_every_open_voice() -> None:
    engine = opened(schedule="deterministic")
    early, late = Listener(), Listener()

    async def two() -> int:
        one, other = await engine.voice(address(0)), await engine.voice(address(1))
        first = asyncio.ensure_future(one.generate(context([1, 2]), sink=early, sampling=GREEDY, max_tokens=3, seed=0))
        await asyncio.sleep(0.05)
        before = len(early.ids)
        await other.generate(context([1, 2]), sink=late, sampling=GREEDY, max_tokens=3, seed=0)
        await asyncio.gather(other.close(), first)
        return before

    assert drive(engine, two()) == 0
    assert early.ids == late.ids


def test_a_failed_step_is_an_infrastructure_error_and_the_engine_goes_on() -> None:
    model = tiny_model("qwen3", vocabulary=VOCABULARY)
    engine, before, after = opened(model=model), Listener(), Listener()

    async def all_of_it() -> Any:
        voice = await engine.voice(address(9))  # Idle while others fail; its cache must not be trusted afterwards.
        await voice.generate(context([5, 6, 7]), sink=before, sampling=GREEDY, max_tokens=9, seed=0)
        bad = VOCABULARY + 5  # No such row in the embedding.
        failed = await asyncio.gather(
            say(engine, 0, Listener(), ids=[bad, 1]), say(engine, 1, Listener(), n=400), return_exceptions=True
        )
        await voice.generate(context([5, 6, 7, *before.ids]), sink=after, sampling=GREEDY, max_tokens=9, seed=0)
        await voice.close()
        return failed

    for error in drive(engine, all_of_it()):
        assert isinstance(error, InfrastructureError)
        assert "generation step failed: IndexError" in str(error)
    assert before.ids + after.ids == greedy_by_hand(model, [5, 6, 7], 18)


def test_a_voice_may_be_asked_to_go_back() -> None:
    model = tiny_model("qwen3", vocabulary=VOCABULARY)
    engine = opened(model=model)
    first = list(range(30))
    asked = [first, first, first[:10], [*first[:5], 77, *first[6:]], [*first, 3, 4]]

    async def back_and_forth() -> list[Listener]:
        voice, sinks = await engine.voice(address(0)), [Listener() for _ in asked]
        for ids, sink in zip(asked, sinks, strict=True):
            await voice.generate(context(ids), sink=sink, sampling=GREEDY, max_tokens=6, seed=0)
        await voice.close()
        return sinks

    for ids, sink in zip(asked, drive(engine, back_and_forth()), strict=True):
        assert sink.ids == greedy_by_hand(model, ids, 6)


@pytest.mark.parametrize("schedule", ["overlapped", "deterministic"])
def test_samples_of_one_problem_compute_its_prompt_once(schedule: str) -> None:
    model = tiny_model("qwen3", vocabulary=VOCABULARY)
    engine, prompt, sinks = (
        opened(model=model, schedule=schedule, rows=3),
        list(range(40)),
        [Listener() for _ in range(8)],
    )
    columns: list[int] = []
    watch = model.register_forward_pre_hook(
        lambda _, __, given: columns.append(given["input_ids"].numel()), with_kwargs=True
    )

    async def group() -> None:
        voices = [await engine.voice(address(sample)) for sample in range(len(sinks))]

        async def one(sample: int) -> None:
            await voices[sample].generate(
                context(prompt), sink=sinks[sample], sampling=Sampling(), max_tokens=5 + sample, seed=sample
            )
            await voices[sample].close()

        await asyncio.gather(*map(one, range(len(sinks))))

    drive(engine, group())
    watch.remove()
    assert max(columns) == len(prompt) - 1  # one row's prompt in the one prefill, and afterwards a column a row
    assert sorted(columns)[-2] <= 3
    for sink in sinks:
        with torch.no_grad():
            logits = model(torch.tensor([prompt + sink.ids])).logits[0, len(prompt) - 1 : -1]
        expected = logits.log_softmax(-1).gather(1, torch.tensor(sink.ids)[:, None])[:, 0]
        torch.testing.assert_close(torch.tensor(sink.logprobs), expected, atol=1e-4, rtol=1e-4)


def test_a_cancelled_episode_frees_its_row() -> None:
    engine, sink = opened(rows=1), Listener()

    async def one_after_another() -> None:
        first = Listener()
        talking = asyncio.ensure_future(say(engine, 0, first, n=400))
        await asyncio.to_thread(first.started.wait, 30)
        talking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await talking
        await say(engine, 1, sink)

    drive(engine, one_after_another())
    assert len(sink.ids) == 20


def test_after_close_nobody_speaks() -> None:
    engine = opened()

    async def closed() -> None:
        voice = await engine.voice(address(0))
        await engine.close()
        with pytest.raises(InfrastructureError, match="closed"):
            await voice.generate(context([1]), sink=Listener(), sampling=GREEDY, max_tokens=1, seed=0)
        with pytest.raises(InfrastructureError, match="closed"):
            await engine.voice(address(1))

    drive(engine, closed())


def test_driving_leaves_mode_threads_and_gradients_as_they_were() -> None:
    model = tiny_model("llama", vocabulary=VOCABULARY)
    model.train()
    model.model.layers[0].eval()
    modes = [module.training for module in model.modules()]
    threads = torch.get_num_threads()
    engine = opened(model=model, threads=threads + 1)
    seen: list[tuple[bool, int]] = []

    class Watching(Listener):
        def token(self, token_id: int, logprob: float) -> bool:
            seen.append((model.training, torch.get_num_threads()))
            return super().token(token_id, logprob)

    drive(engine, say(engine, 0, Watching(), n=3))
    assert seen == [(False, threads + 1)] * 3
    assert [module.training for module in model.modules()] == modes
    assert torch.get_num_threads() == threads
    model(torch.tensor([[1, 2, 3]]), labels=torch.tensor([[1, 2, 3]])).loss.backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_a_budget_beyond_the_models_positions_says_so() -> None:
    engine = opened(model=tiny_model("qwen3", vocabulary=VOCABULARY, positions=32))
    with pytest.raises(ModelError, match=r"lower budget\.context_tokens to 32"):
        drive(engine, say(engine, 0, Listener(), n=30))


def test_a_saved_model_speaks_as_the_live_one(tmp_path: Path) -> None:
    model = tiny_model("qwen3", vocabulary=VOCABULARY)
    model.save_pretrained(tmp_path)
    engine, sink = local.open(local.Settings(model=str(tmp_path), device="cpu", dtype="float32")), Listener()
    drive(engine, say(engine, 0, sink))
    assert sink.ids == greedy_by_hand(model, [5, 6, 7], 20)
    assert engine.name == str(tmp_path)


def test_what_cannot_be_loaded_names_the_place_and_the_next_step(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="nowhere is no folder; give one with"):
        local.open(local.Settings(model="nowhere"))
    tiny_model("qwen3", vocabulary=VOCABULARY).config.save_pretrained(tmp_path)
    with pytest.raises(ModelError, match=r"has no \*.safetensors or \*.bin.*download the weights"):
        local.open(local.Settings(model=str(tmp_path)))
    (tmp_path / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(ModelError, match="can't be loaded"):
        local.open(local.Settings(model=str(tmp_path)))


def sharded_by_map(model: Any) -> Any:
    model.hf_device_map = {"model": 0, "lm_head": 1}
    return model


def sharded_by_deepspeed(model: Any) -> Any:
    next(model.parameters()).ds_id = 0  # The mark that DeepSpeed ZeRO-3 leaves.
    return model


def sharded_by_fsdp(model: Any) -> Any:
    model.wrapped = type("FullyShardedDataParallel", (torch.nn.Module,), {})()
    return model


def spread_over_devices(model: Any) -> Any:
    model.lm_head = model.lm_head.to("meta")
    return model


@pytest.mark.parametrize("shard", [sharded_by_map, sharded_by_deepspeed, sharded_by_fsdp, spread_over_devices])
def test_a_sharded_model_is_refused_and_vllm_named(shard: Any) -> None:
    with pytest.raises(ModelError, match=r"is sharded.*engine: vllm"):
        opened(model=shard(tiny_model("qwen3", vocabulary=VOCABULARY)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda model: model.to("meta"), "has no weights"),
        (
            lambda model: setattr(model.config, "layer_types", ["full_attention", "sliding_attention"]),
            "sliding_attention",
        ),
        (
            lambda model: setattr(model.config, "_attn_implementation", "flash_attention_2"),
            "attn_implementation='sdpa'",
        ),
    ],
)
def test_what_would_come_out_wrong_is_refused(change: Any, message: str) -> None:
    model = tiny_model("qwen3", vocabulary=VOCABULARY)
    change(model)
    with pytest.raises(ModelError, match=message):
        opened(model=model)


@pytest.mark.parametrize(("settings", "message"), [({"rows": 0}, "rows: 0"), ({"threads": -1}, "threads: -1")])
def test_impossible_settings_are_refused(settings: dict[str, int], message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        opened(**settings)


def test_neither_model_nor_folder_is_refused() -> None:
    with pytest.raises(RecipeError, match="model: missing"):
        local.open(local.Settings())
