"""What other systems' formats ask of the driver: refused calls, answers that a block prints, thoughts with code in them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from thincode.engines import Context, Sampling
from thincode.engines.scripted import ScriptedEngine
from thincode.interpreter import Interpreter
from thincode.rollout import Budget
from thincode.rollout.crowd import LoopThread
from thincode.rollout.episode import CALLS_SPENT, Ask, Setting, run
from thincode.settings import kind
from thincode.trajectory import Address, Author, EndReason, Trajectory
from thincode.trajectory.formats import build
from thincode.trajectory.formats.tool_star import NO_SEARCH
from thincode.trajectory.tokenizer import Tokenizer

ADDRESS = Address(1, "test", 0, "p", 0)
Play = Callable[..., Trajectory]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train(
        ["<python>print(1)</python> <result> \\boxed{42}"] * 4, vocab_size=290, markers=("</python> a",)
    )


@pytest.fixture
def play(loop: LoopThread, interpreter: Interpreter, tokenizer: Tokenizer) -> Play:
    def play(format: str, *turns: str, budget: Budget | None = None) -> Trajectory:
        spoken = iter(turns)

        def say(context: Context) -> str:
            return next(spoken)

        async def one() -> Trajectory:
            setting = Setting(
                interpreter=interpreter,
                format=build(kind("thincode.trajectory.formats", format, instruction="")),
                tokenizer=tokenizer,
                budget=budget or Budget(context_tokens=2000),
                sampling=Sampling(),
            )
            voice = await ScriptedEngine(say, tokenizer).voice(ADDRESS)
            return await run(Ask(ADDRESS, "q"), voice=voice, setting=setting)

        return loop.call(one())

    return play


def kinds(found: Trajectory) -> list[str]:
    return [segment.kind.value for segment in found.segments]


def authors(found: Trajectory, index: int) -> set[Author]:
    segment = found.segments[index]
    assert found.tokens is not None
    return {Author(author) for author in found.tokens.author[segment.start : segment.end].tolist()}


def test_a_search_is_answered_in_the_place_of_a_result_and_counts_as_a_call(play: Play) -> None:
    search, block = "<think>a</think><search>primes</search> b", "<python>\nprint(2)\n</python>"
    found = play("tool_star", search, block, block, "<answer>2</answer>", budget=Budget(context_tokens=2000, calls=2))
    assert kinds(found) == ["plan", "code", "notice", "code", "output", "code", "notice", "answer"]
    assert found.segments[2].text == f" <result>\n{NO_SEARCH}\n</result>"
    assert (found.segments[6].content, found.segments[6].text) == (CALLS_SPENT, f" <notice>\n{CALLS_SPENT}\n</notice>")
    assert (found.answer, found.end, len(found.blocks)) == ("2", EndReason.FINISHED, 1)
    assert authors(found, 2) == {Author.DRIVER}
    assert authors(found, 4) == {Author.DRIVER, Author.INTERPRETER}


def test_a_closer_that_shares_its_token_is_put_back(play: Play, tokenizer: Tokenizer) -> None:
    assert len(tokenizer.encode("</python> a", special=False, added=True)) == 1
    found = play("tool_star", "<python>print(2)</python> and more", "<answer>2</answer>")
    assert kinds(found) == ["code", "output", "answer"]
    assert found.segments[0].text == "<python>print(2)</python>"
    assert authors(found, 0) == {Author.MODEL, Author.DRIVER}
    assert found.tokens is not None
    assert tokenizer.decode(found.tokens.ids.tolist()).count("and more") == 0


def test_a_printed_box_ends_the_trajectory_where_the_format_says_so(play: Play) -> None:
    boxed = "```py\nprint('\\\\boxed{7}')\n```\n"
    found = play("simpletir", boxed)
    assert (kinds(found), found.answer, found.end) == (["code", "output"], "7", EndReason.FINISHED)
    found = play("tir", boxed.replace("py\n", "python\n"), "It is \\boxed{8}")
    assert (kinds(found), found.answer) == (["code", "output", "answer"], "8")


@pytest.mark.parametrize("text", ["ans = 6 * 7\nprint(ans)", "Think.\n```python\nans = 6 * 7\nprint(ans)\n```\nDone."])
def test_a_program_is_the_whole_trajectory(play: Play, text: str) -> None:
    found = play("pot", text)
    assert kinds(found)[-2:] == ["code", "output"]
    assert (found.blocks[0].content, found.answer, found.end) == ("ans = 6 * 7\nprint(ans)", "42", EndReason.FINISHED)


def test_a_program_cut_by_the_budget_never_runs(play: Play) -> None:
    found = play("pal", "def solution():\n" + "    x = 1\n" * 200, budget=Budget(context_tokens=200))
    assert (kinds(found), found.answer, found.end) == (["code"], None, EndReason.CONTEXT)
    assert not found.blocks


def test_a_thought_with_code_in_it_is_closed_when_its_tokens_are_spent(play: Play) -> None:
    block = "a\n```python\nprint(6 * 7)\n```\n"
    budget = Budget(context_tokens=2000, thinking_tokens=120)
    found = play("cort", block, "\\boxed{1} " * 200, "It is \\boxed{42}.", budget=budget)
    assert kinds(found) == ["plan", "code", "output", "thought", "notice", "answer"]
    assert (found.answer, found.end) == ("42", EndReason.FINISHED)
