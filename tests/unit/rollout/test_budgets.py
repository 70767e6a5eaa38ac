"""What bounds a turn: its own tokens, a thought's tokens, and an interpreter that is off."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from thincode.engines import Context, Sampling
from thincode.engines.scripted import ScriptedEngine
from thincode.interpreter import Interpreter
from thincode.rollout import Budget
from thincode.rollout.crowd import LoopThread
from thincode.rollout.episode import Ask, Setting, run
from thincode.settings import kind
from thincode.trajectory import Address, Author, EndReason, Trajectory
from thincode.trajectory.formats import build
from thincode.trajectory.formats._text import TIME_IS_UP
from thincode.trajectory.tokenizer import Tokenizer

ADDRESS = Address(1, "test", 0, "p", 0)
Play = Callable[..., Trajectory]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train(["<think>\nabc abc abc\n</think>\n\\boxed{42}"] * 4, vocab_size=300, markers=())


@pytest.fixture
def play(loop: LoopThread, interpreter: Interpreter, tokenizer: Tokenizer) -> Play:
    def play(
        *turns: str, format: str, budget: Budget, executes: bool = True, heard: list[Context] | None = None
    ) -> Trajectory:
        spoken = iter(turns)

        def say(context: Context) -> str:
            if heard is not None:
                heard.append(context)
            return next(spoken)

        async def one() -> Trajectory:
            engine = ScriptedEngine(say, tokenizer)
            setting = Setting(
                interpreter=interpreter,
                format=build(kind("thincode.trajectory.formats", format, instruction="")),
                tokenizer=tokenizer,
                budget=budget,
                sampling=Sampling(),
                executes=executes,
            )
            return await run(Ask(ADDRESS, "q"), voice=await engine.voice(ADDRESS), setting=setting)

        return loop.call(one())

    return play


def kinds(found: Trajectory) -> list[str]:
    return [segment.kind.value for segment in found.segments]


def test_a_thought_that_has_used_its_tokens_is_closed_and_the_model_answers(play: Play) -> None:
    budget = Budget(context_tokens=2000, thinking_tokens=20)
    found = play("<think>\n" + "abc " * 200, "\\boxed{42}", format="cot", budget=budget)
    assert kinds(found) == ["thought", "notice", "answer"]
    assert (found.answer, found.end) == ("42", EndReason.FINISHED)
    assert found.segments[1].text == f"\n{TIME_IS_UP}\n</think>\n\n"
    assert found.tokens is not None
    thought, notice, _ = found.segments
    assert (thought.end or 0) - (thought.start or 0) == 20
    assert set(found.tokens.author[notice.start : notice.end].tolist()) == {Author.DRIVER}


def test_a_thought_that_ends_in_time_is_left_alone(play: Play) -> None:
    budget = Budget(context_tokens=2000, thinking_tokens=400)
    found = play("<think>\nabc\n</think>\n\\boxed{42}", format="cot", budget=budget)
    assert kinds(found) == ["thought", "answer"]
    assert (found.answer, found.end) == ("42", EndReason.FINISHED)


def test_a_thought_may_end_within_the_cut_turn_and_the_answer_goes_on(play: Play) -> None:
    budget = Budget(context_tokens=2000, thinking_tokens=40)
    found = play("<think>\nabc\n</think>\n" + "abc " * 200, "\\boxed{42}", format="cot", budget=budget)
    assert "notice" not in kinds(found)
    assert (found.answer, found.end) == ("42", EndReason.FINISHED)


def test_a_format_without_thoughts_has_no_such_budget(play: Play) -> None:
    budget = Budget(context_tokens=2000, thinking_tokens=5)
    found = play("abc " * 20 + "\\boxed{42}", format="thinc", budget=budget)
    assert (kinds(found), found.answer) == (["answer"], "42")


def test_a_turn_that_has_used_its_tokens_ends_the_trajectory(play: Play) -> None:
    found = play("abc " * 200, format="thinc", budget=Budget(context_tokens=2000, turn_tokens=30))
    assert found.end is EndReason.CONTEXT
    assert found.tokens is not None
    assert int((found.tokens.author == Author.MODEL).sum()) == 30


def test_turns_have_their_tokens_each(play: Play) -> None:
    block = "```python\nprint(1)\n```\n"
    budget = Budget(context_tokens=4000, turn_tokens=60)
    found = play("abc\n" + block, "abc\n" + block, "\\boxed{1}", format="tir", budget=budget)
    assert (len(found.blocks), found.answer, found.end) == (2, "1", EndReason.FINISHED)


def test_with_the_interpreter_off_the_text_goes_on_behind_a_block(play: Play) -> None:
    text = "abc\n```python\nprint(1)\n```\nIt would print \\boxed{1}"
    found = play(text, format="tir", budget=Budget(context_tokens=2000), executes=False)
    assert kinds(found) == ["plan", "code", "answer"]
    assert (len(found.blocks), found.answer, found.end) == (0, "1", EndReason.FINISHED)


def test_a_box_in_a_draft_that_a_budget_cut_is_no_answer(play: Play) -> None:
    text = "abc it may be \\boxed{42} abc\n"
    whole = play(text, format="tir", budget=Budget(context_tokens=2000))
    cut = play(text + "abc\n" * 500, format="tir", budget=Budget(context_tokens=100))
    assert (whole.end, whole.answer) == (EndReason.FINISHED, "42")
    assert "\\boxed{42}" in cut.text
    assert (cut.end, cut.answer) == (EndReason.CONTEXT, None)
    block = "```python\nprint(1)\n```\n"
    asked = play(block, "so \\boxed{1}\n" + block, block, format="tir", budget=Budget(context_tokens=4000, calls=1))
    assert (asked.end, asked.answer) == (EndReason.CALLS, None)


@pytest.mark.parametrize(
    ("format", "executes", "stop"),
    [
        ("thinc", True, "\n```output"),
        ("thinc", False, ""),
        ("retool", True, "\n<interpreter>"),
        ("mathcoder", True, "<|execution|>"),
        ("aster", True, ""),
        ("cot", True, ""),
        ("qwen3_thinking", True, ""),
    ],
)
def test_a_server_is_told_to_stop_where_an_output_would_begin_and_nowhere_else(
    play: Play, format: str, executes: bool, stop: str
) -> None:
    heard: list[Context] = []
    play("\\boxed{1}", format=format, budget=Budget(context_tokens=2000), executes=executes, heard=heard)
    assert heard[0].stop == stop


def test_an_end_of_thought_that_code_prints_ends_no_thought(play: Play) -> None:
    block = "```python\nprint('</think>')\n```\n"
    budget = Budget(context_tokens=2000, thinking_tokens=120)
    found = play("<think>\n" + block, "abc " * 200, "\\boxed{42}", format="cort", budget=budget)
    assert TIME_IS_UP in found.text
