"""Engines behind a server, against a real one: which way it can go, how it fails, what it costs, who may see the key."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chat_tokenizers import qwen_like
from driving import Listener, address, drive
from openai_server import FAULTS, OpenAIServer, rambler, teacher
from thincode.engines import Context, Exchange, Finish, Sampling, openai, vllm
from thincode.engines._http import _retry_after
from thincode.engines._thoughts import Thoughts
from thincode.errors import GenerationLostError, InfrastructureError, RecipeError
from thincode.settings import kind, parse
from thincode.trajectory.formats import build
from thincode.trajectory.tokenizer import Tokenizer

ASKED = "What is 12 * 7 + 100?"
FIRST = "Multiply, then add, then check.\n```python\np = 12 * 7\nprint(p)\n```\n"
OUTPUT = "```output\n84\n```\n"
SHOT = Exchange("What is 1 * 1 + 1?", ("A block.\n", "```output\n2\n```\n", "\\boxed{2}"))
QUICK = {"tries": 4, "silence_s": 0.3, "patience_s": 20.0}


def context(*said: str, shots: tuple[Exchange, ...] = (SHOT,)) -> Context:
    return Context(
        question_id="q",
        exchange=Exchange(ASKED, said),
        prompt="",
        text="".join(said),
        ids=None,
        shots=shots,
    )


def opened(server: OpenAIServer | str, limits: Mapping[str, Any] = QUICK, **values: Any) -> Any:
    url = server if isinstance(server, str) else server.url
    return openai.open(parse(openai.Settings, {"base_url": url, "limits": limits, **values}))


def say(engine: Any, sink: Listener, asked: Context, *, prepare: bool = False, most: int = 500) -> tuple[Finish, Any]:
    """One generation; gives its end and what it cost."""

    async def one() -> tuple[Finish, Any]:
        if prepare:
            await engine.prepare()
        voice = await engine.voice(address(0))
        try:
            return await voice.generate(asked, sink=sink, sampling=Sampling(), max_tokens=most, seed=1), voice.usage
        finally:
            await voice.close()

    return drive(engine, one())  # type: ignore[no-any-return]


def prepared(engine: Any) -> Mapping[str, str]:
    try:
        return drive(engine, engine.prepare())  # type: ignore[no-any-return]
    finally:
        drive(engine, engine.close())


def model_folder(folder: Path) -> Path:
    Tokenizer.train([ASKED], vocab_size=300).save(folder)
    return folder


# --- the three ways --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("can", "template", "way"),
    [
        ({"completions", "continue"}, True, "completions"),
        ({"completions", "continue"}, False, "continue"),
        ({"continue"}, True, "continue"),
        ({"completions"}, True, "completions"),
        ({"completions"}, False, "turns"),
        (set(), True, "turns"),
    ],
)
def test_the_way_is_what_the_server_can_do(can: set[str], template: bool, way: str, tmp_path: Path) -> None:
    values = {"template": str(model_folder(tmp_path))} if template else {}
    with OpenAIServer(can=frozenset(can)) as server:
        assert prepared(opened(server, **values)) == {"model": "teacher-1", "way": way}


def test_each_way_tells_the_server_what_was_said(tmp_path: Path) -> None:
    with OpenAIServer() as server:
        for way in ("continue", "turns", "completions"):
            engine = opened(server, way=way, template=str(model_folder(tmp_path)), omit=["seed"], extra={"top_k": 20})
            assert say(engine, Listener(), context(FIRST, OUTPUT))[0] is Finish.ENDED
            drive(engine, engine.close())
        goes_on, turns, raw = server.asked
    before = [{"role": "user", "content": SHOT.user}]
    asked = {"role": "user", "content": ASKED}
    shot, so_far = "".join(SHOT.said), FIRST + OUTPUT
    assert goes_on["messages"] == [
        *before,
        {"role": "assistant", "content": shot},
        asked,
        {"role": "assistant", "content": so_far},
    ]
    assert goes_on["continue_final_message"] is True
    assert goes_on["add_generation_prompt"] is False
    roles = ["assistant", "user", "assistant", "user", "assistant", "user"]
    texts = [*SHOT.said, ASKED, FIRST, OUTPUT]
    assert turns["messages"] == [*before, *({"role": r, "content": t} for r, t in zip(roles, texts, strict=True))]
    assert "continue_final_message" not in turns
    assert raw["prompt"].endswith(f"<|user|>{ASKED}<|assistant|>{so_far}")
    assert [("seed" in body, body["top_k"]) for body in (goes_on, turns, raw)] == [(False, 20)] * 3


def test_a_first_turn_has_nothing_to_continue() -> None:
    with OpenAIServer() as server:
        engine = opened(server, way="continue")
        say(engine, Listener(), context())
        drive(engine, engine.close())
        assert "continue_final_message" not in server.asked[0]
        assert server.asked[0]["messages"][-1]["content"] == ASKED


@pytest.mark.parametrize("echoes", [False, True])
def test_a_server_may_repeat_what_it_continues(echoes: bool) -> None:
    with OpenAIServer(echoes=echoes) as server:
        sink, engine = Listener(), opened(server, way="continue", stream=False)
        say(engine, sink, context(FIRST, OUTPUT))
        drive(engine, engine.close())
    assert "".join(sink.pieces) == teacher(ASKED + FIRST + OUTPUT)


# --- turns of a tool --------------------------------------------------------------------------------------------------

RETOOL: Any = build(kind("thincode.trajectory.formats", "retool_verl"))
CALLED = '<tool_call>\n{"name": "code_interpreter", "arguments": {"code": "print(84)"}}\n</tool_call>'


def with_tools() -> Context:
    said = (CALLED, RETOOL.output("84").text)
    turns = ({"role": "assistant", "content": CALLED}, {"role": "tool", "content": "84"})
    plain = context(*said, shots=())
    return replace(plain, exchange=Exchange(ASKED, said, turns), tools=RETOOL)


@pytest.mark.parametrize("way", ["continue", "turns"])
@pytest.mark.parametrize("can", [{"continue"}, {"continue", "tools"}])
def test_an_output_is_a_message_of_a_tool_where_the_server_knows_one(way: str, can: set[str]) -> None:
    with OpenAIServer(can=frozenset(can)) as server:
        engine = opened(server, way=way)
        for _ in range(2):
            say(engine, Listener(), with_tools())
        drive(engine, engine.close())
    said = [body for body in server.asked if body["max_tokens"] > 1]
    assert len(said) == 2
    assert len(server.asked) == 2 + ("tools" in can), "it is asked once what it takes"
    for body in said:
        user, called, heard = body["messages"]
        assert user == {"role": "user", "content": f"{ASKED}\n\n{RETOOL.tools_in_words}"}
        assert called == {"role": "assistant", "content": CALLED}
        if "tools" in can:
            assert heard == {"role": "tool", "content": "84"}
        else:
            assert heard == {"role": "user", "content": "<tool_response>\n84\n</tool_response>"}
        assert "continue_final_message" not in body


def test_a_template_writes_turns_of_a_tool_into_a_completion(tmp_path: Path) -> None:
    qwen_like("qwen3_thinking").save(tmp_path)
    with OpenAIServer(speak=lambda asked: "Seen.\n</think>\n\n\\boxed{84}") as server:
        engine, sink = opened(server, way="completions", template=str(tmp_path)), Listener()
        say(engine, sink, with_tools())
        drive(engine, engine.close())
    (body,) = server.asked
    assert body["prompt"].startswith('<|im_start|>system\n# Tools\n<tools>\n{"type": "function"')
    assert body["prompt"].endswith(
        f"{CALLED}<|im_end|>\n<|im_start|>user\n<tool_response>\n84\n</tool_response><|im_end|>\n"
        "<|im_start|>assistant\n<think>\n"
    )
    assert "".join(sink.pieces) == "\\boxed{84}", "each turn begins inside of a thought, which stays hidden"


# --- thoughts --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "opened", "thought", "speech"),
    [
        ("<think>2 and 2</think>\n\nPlan.", False, "2 and 2", "Plan."),
        ("\n<think>\nhm </thin </think>Plan. </think>", False, "\nhm </thin ", "Plan. </think>"),
        ("2 and 2</think>\nPlan.", True, "2 and 2", "Plan."),
        ("Plan <think>x</think>", False, "", "Plan <think>x</think>"),
        ("<thin", False, "", "<thin"),
        ("<think>for ever </th", False, "for ever </th", ""),
        (" \n", False, "", " \n"),
        ("", True, "", ""),
    ],
)
def test_a_thought_is_hidden_however_it_is_cut(text: str, opened: bool, thought: str, speech: str) -> None:
    for size in (1, 2, 3, 5, 8, 100):
        thoughts = Thoughts(opened=opened)
        pieces = [thoughts.feed(text[at : at + size]) for at in range(0, len(text), size)] + [thoughts.finish()]
        assert tuple("".join(part) for part in zip(*pieces, strict=True)) == (thought, speech), size


@pytest.mark.parametrize("stream", [True, False])
def test_thoughts_never_reach_the_text(stream: bool) -> None:
    with OpenAIServer(thought="<think>\n```python\nprint(1)\n```\n</think>\n") as server:
        sink = Listener()
        engine = opened(server, way="turns", stream=stream)
        say(engine, sink, context())
        drive(engine, engine.close())
    assert "".join(sink.pieces).startswith(FIRST)
    assert "".join(sink.thoughts) == "\n```python\nprint(1)\n```\n"


# --- faults ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_leaves_no_trace_in_the_text(fault: str, stream: bool) -> None:
    with OpenAIServer(faults=lambda number: fault if number in (1, 2) else None) as server:
        engine, sinks = opened(server, way="turns", stream=stream), [Listener(), Listener()]
        usage = [say(engine, sink, context())[1] for sink in sinks]
        drive(engine, engine.close())
    assert "".join(sinks[0].pieces) == "".join(sinks[1].pieces) == teacher(ASKED)
    retried = not (fault == "ids" or (fault == "half" and not stream))
    assert [one["requests"] for one in usage] == [1, 3 if retried else 1]


@pytest.mark.parametrize("fault", ["drop", "500", "hang", "name"])
def test_a_server_that_fails_ends_the_run_within_its_limits(fault: str) -> None:
    with OpenAIServer(faults=lambda number: fault if number else None) as server:
        engine = opened(server, {"tries": 3, "silence_s": 0.2, "patience_s": 5.0}, way="turns")
        say(engine, Listener(), context())
        with pytest.raises(InfrastructureError, match=r"failed 3 times in .* s; last: .*go on with --resume") as failed:
            say(engine, Listener(), context())
        assert not isinstance(failed.value, GenerationLostError)
        drive(engine, engine.close())


def test_a_request_that_fails_alone_is_lost_and_stops_nobody() -> None:
    with OpenAIServer(faults=lambda number: "500" if number in (0, 2, 3) else None) as server:
        engine = opened(server, {"tries": 3}, way="turns")

        async def both() -> tuple[Any, Any]:
            import asyncio

            voices = [await engine.voice(address(number)) for number in range(2)]

            async def speak(voice: Any) -> Any:
                return await voice.generate(context(), sink=Listener(), sampling=Sampling(), max_tokens=500, seed=1)

            first = asyncio.ensure_future(speak(voices[0]))
            await asyncio.sleep(0.1)  # its first try has failed; the next one comes after 0.25 s
            return await speak(voices[1]), (await asyncio.gather(first, return_exceptions=True))[0]

        well, ill = drive(engine, both())
        drive(engine, engine.close())
    assert well is Finish.ENDED
    assert isinstance(ill, GenerationLostError)


def test_a_server_may_ask_for_more_patience_than_there_is() -> None:
    with OpenAIServer(faults=lambda number: "429" if number else None) as server:
        engine = opened(server, {"patience_s": 0.04}, way="turns")
        say(engine, Listener(), context())
        with pytest.raises(InfrastructureError, match="failed 1 times in 0 s; last: 429 come back later"):
            say(engine, Listener(), context())
        drive(engine, engine.close())


@pytest.mark.parametrize(
    ("header", "least", "most"),
    [(None, 0, 0), ("7", 7, 7), ("-3", 0, 0), ("soon", 0, 0), ("Wed, 21 Oct 2015 07:28:00 GMT", 0, 0),
     ("Fri, 01 Jan 2100 00:00:00 GMT", 1e8, 1e10)],
)  # fmt: skip
def test_retry_after_is_seconds_or_a_date(header: str | None, least: float, most: float) -> None:
    assert least <= _retry_after(header) <= most


def test_a_context_too_long_for_the_server_ends_the_trajectory() -> None:
    with OpenAIServer(context_tokens=10) as server:
        engine = opened(server, way="turns")
        assert say(engine, Listener(), context())[0] is Finish.LENGTH
        drive(engine, engine.close())


# --- limits and cost -------------------------------------------------------------------------------------------------


def test_requests_keep_their_distance() -> None:
    with OpenAIServer() as server:
        engine = opened(server, {"requests_per_minute": 600}, way="turns")
        began = time.monotonic()
        for _ in range(4):
            say(engine, Listener(), context())
        drive(engine, engine.close())
    assert time.monotonic() - began >= 0.3


def test_the_server_is_hung_up_on_when_the_sink_has_enough() -> None:
    with OpenAIServer(speak=rambler, tick_s=0.01) as server:
        engine = opened(server, way="turns")
        assert say(engine, Listener(stop_after=3), context())[0] is Finish.STOPPED
        deadline = time.monotonic() + 10
        while not server.abandoned and time.monotonic() < deadline:
            time.sleep(0.01)
        drive(engine, engine.close())
        assert server.abandoned == 1


def test_what_is_charged_is_counted_and_estimated_where_the_server_was_cut_short() -> None:
    with OpenAIServer() as server:
        engine = opened(server, way="turns")
        _, whole = say(engine, Listener(), context())
        _, cut = say(engine, Listener(stop_after=2), context())
        drive(engine, engine.close())
    assert whole["generated_tokens"] == -(-len(teacher(ASKED)) // 12)
    assert (whole["requests"], whole["estimated_requests"]) == (1, 0)
    assert (cut["requests"], cut["estimated_requests"], cut["generated_tokens"]) == (1, 1, 2)
    assert cut["prompt_tokens"] == sum(map(len, (SHOT.user, *SHOT.said, ASKED))) // 4


# --- what the user can mend ------------------------------------------------------------------------------------------

KEY = "sk-very-secret-1234"


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"base_url": "127.0.0.1:8000"}, "base_url: '127.0.0.1:8000' is no address; write for example http"),
        ({"base_url": f"http://me:{KEY}@host/v1"}, "base_url: holds a password"),
        ({"way": "completions"}, "template: missing; the way completions renders"),
        ({"key_file": "absent.txt"}, "key_file: absent.txt: can't be read"),
        ({"key_variable": "NO_SUCH_KEY_VARIABLE"}, "key_variable: NO_SUCH_KEY_VARIABLE is not set"),
    ],
)
def test_settings_that_cannot_work_are_named_at_once(values: dict[str, Any], said: str) -> None:
    with pytest.raises(RecipeError, match=said) as refused:
        openai.open(parse(openai.Settings, values))
    assert KEY not in str(refused.value)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"model": "teacher-2"}, "model: 'teacher-2' is not served at .*; did you mean 'teacher-1'"),
        (
            {"base_url": "http://127.0.0.1:9/v1"},
            "base_url: http://127.0.0.1:9/v1 gives no usable answer: .*; start a server there",
        ),
        (
            {"key_variable": "A_KEY"},
            r"answers 401: Incorrect API key provided: Bearer \*\*\*; the key is wrong or missing",
        ),
    ],
)
def test_what_the_server_says_at_the_start_is_the_users_to_mend(
    values: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_KEY", KEY)
    with OpenAIServer(key="another" if "key_variable" in values else None) as server:
        engine = opened(values.pop("base_url", server.url), **values)
        with pytest.raises(RecipeError, match=said) as refused:
            prepared(engine)
    assert KEY not in str(refused.value)


def test_a_key_from_a_file_opens_the_door(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(f"{KEY}\n")
    with OpenAIServer(key=KEY) as server:
        assert prepared(opened(server, key_file=str(tmp_path / "key")))["model"] == "teacher-1"


# --- token ids -------------------------------------------------------------------------------------------------------


def test_the_ids_engine_needs_a_server_that_gives_ids(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="tokenizer: missing; name the folder"):
        vllm.open(vllm.Settings())
    named = {"tokenizer": str(model_folder(tmp_path))}
    with OpenAIServer() as server:
        engine = vllm.open(parse(vllm.Settings, {"base_url": server.url, **named}))
        assert prepared(engine) == {"model": "teacher-1", "logprobs": "processed"}
    with OpenAIServer(can=frozenset({"completions", "ids"})) as server:
        engine = vllm.open(parse(vllm.Settings, {"base_url": server.url, **named}))
        assert prepared(engine) == {"model": "teacher-1", "logprobs": "raw"}
    with OpenAIServer(can=frozenset({"completions"})) as server:
        engine = vllm.open(parse(vllm.Settings, {"base_url": server.url, **named}))
        with pytest.raises(RecipeError, match="gives no token ids; this engine needs vLLM"):
            prepared(engine)
