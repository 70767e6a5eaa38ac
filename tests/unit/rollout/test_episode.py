"""The conversation between a scripted model and the real interpreter."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import numpy as np
import pytest

from thincode.engines import Context, Sampling
from thincode.engines.scripted import ScriptedEngine
from thincode.interpreter import BlockResult, Interpreter, Status
from thincode.rollout import Budget
from thincode.rollout.crowd import LoopThread
from thincode.rollout.episode import CALLS_SPENT, Ask, Setting, run
from thincode.settings import kind
from thincode.trajectory import Address, Author, BlockStatus, EndReason, SegmentKind, Trajectory
from thincode.trajectory.formats import Format, build
from thincode.trajectory.tokenizer import Tokenizer
from thincode.trajectory.tokens import loss_mask

FORMAT: Format = build(kind("thincode.trajectory.formats", "thinc", instruction=""))
ADDRESS = Address(1, "test", 0, "p", 0)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    texts = ["Multiply, then add.\n```python\np = 37*52\nprint(p)\n```\n```output\n1924\n```\n\\boxed{1924}"] * 4
    return Tokenizer.train(texts, vocab_size=300, markers=FORMAT.markers)


Play = Callable[..., Trajectory]


@pytest.fixture
def play(loop: LoopThread, interpreter: Interpreter, tokenizer: Tokenizer) -> Play:
    def play(
        *turns: str,
        budget: Budget | None = None,
        ids: bool = True,
        ask: Ask | None = None,
        using: Interpreter | None = None,
    ) -> Trajectory:
        spoken = iter(turns)

        def say(context: Context) -> str:
            return next(spoken)

        async def one() -> Trajectory:
            engine = ScriptedEngine(say, tokenizer if ids else None)
            setting = Setting(
                interpreter=using or interpreter,
                format=FORMAT,
                tokenizer=tokenizer if ids else None,
                budget=budget or Budget(context_tokens=2000, calls=8),
                sampling=Sampling(),
            )
            return await run(ask or Ask(ADDRESS, "37 * 52?"), voice=await engine.voice(ADDRESS), setting=setting)

        return loop.call(one())

    return play


def block(code: str) -> str:
    return f"```python\n{code}\n```\n"


def kinds(trajectory: Trajectory) -> list[str]:
    return [segment.kind.value for segment in trajectory.segments]


@pytest.mark.parametrize("ids", [True, False])
def test_blocks_run_in_one_session_and_the_answer_is_read_from_the_models_text(play: Play, ids: bool) -> None:
    found = play("Multiply.\n" + block("p = 37*52\nprint(p)"), block("print(p + 1)"), "\\boxed{1925}", ids=ids)
    assert kinds(found) == ["plan", "code", "output", "code", "output", "answer"]
    assert [segment.content for segment in found.outputs] == ["1924", "1925"]
    assert [segment.block.status for segment in found.blocks if segment.block] == [BlockStatus.OK, BlockStatus.OK]
    assert (found.answer, found.end) == ("1925", EndReason.FINISHED)
    assert (found.tokens is not None) == ids


def test_what_the_model_makes_up_after_a_block_is_dropped(play: Play) -> None:
    found = play("Plan.\n" + block("print(6*7)") + "```output\n41\n```\n\\boxed{41}", "\\boxed{42}")
    assert "41" not in found.text
    assert found.answer == "42"


def test_spans_tile_the_tokens_and_only_sampled_tokens_train(play: Play, tokenizer: Tokenizer) -> None:
    found = play("Plan.\n" + block("print(6*7)"), "\\boxed{42}")
    assert found.tokens is not None
    at = found.tokens.prompt_length
    for segment in found.segments:
        assert segment.start == at
        assert segment.end is not None
        at = segment.end
        assert tokenizer.decode(found.tokens.ids[segment.start : segment.end]) == segment.text
        author = set(found.tokens.author[segment.start : segment.end].tolist())
        expected = {Author.DRIVER, Author.INTERPRETER} if segment.kind is SegmentKind.OUTPUT else {Author.MODEL}
        assert author == expected
    assert at == len(found.tokens) - 1  # the end of sequence belongs to no segment
    assert found.tokens.ids[-1] == tokenizer.eos_ids[0]
    assert np.array_equal(loss_mask(found.tokens), ~np.isnan(found.tokens.logprob))


def test_another_output_changes_no_trained_token(play: Play) -> None:
    plain = play("Plan.\n" + block("print(6*7)"), "\\boxed{42}")
    shown = play("Plan.\n" + block("print(6*7)"), "\\boxed{42}", ask=Ask(ADDRESS, "37 * 52?", shown=("999 or so",)))
    assert shown.outputs[0].content == "999 or so"
    assert plain.tokens is not None
    assert shown.tokens is not None
    trained = [tokens.ids[loss_mask(tokens)].tolist() for tokens in (plain.tokens, shown.tokens)]
    assert trained[0] == trained[1]


def test_a_closer_that_ends_the_turn_is_complete_and_gets_its_line_break_from_the_driver(play: Play) -> None:
    found = play("Plan.\n```python\nprint(6*7)\n```", "\\boxed{42}")
    assert found.segments[1].text.endswith("```\n")
    assert found.answer == "42"
    assert found.tokens is not None
    assert found.segments[1].end is not None
    assert found.tokens.author[found.segments[1].end - 1] == Author.DRIVER


def test_the_model_is_told_once_that_no_calls_are_left(play: Play) -> None:
    budget = Budget(context_tokens=2000, calls=1)
    told = play(block("print(1)"), block("print(2)"), "\\boxed{1}", budget=budget)
    assert kinds(told) == ["code", "output", "code", "notice", "answer"]
    assert told.segments[3].content == CALLS_SPENT
    assert told.segments[2].block is None
    assert told.end is EndReason.FINISHED
    stubborn = play(block("print(1)"), block("print(2)"), block("print(3)"), budget=budget)
    assert stubborn.end is EndReason.CALLS
    assert len(stubborn.blocks) == 1


@pytest.mark.parametrize(
    ("code", "status", "shows"),
    [
        ("1/0", BlockStatus.ERROR, "ZeroDivisionError"),
        ("while True: pass", BlockStatus.LIMIT, ""),
        ("import os; os._exit(0)", BlockStatus.LIMIT, ""),
    ],
)
def test_failures_of_the_model_are_data(play: Play, code: str, status: BlockStatus, shows: str) -> None:
    found = play(block(code), "\\boxed{0}")
    assert found.segments[0].block is not None
    assert found.segments[0].block.status is status
    assert shows in found.outputs[0].content
    assert found.end is EndReason.FINISHED


@pytest.mark.parametrize(("room", "end"), [(30, EndReason.CONTEXT), (2000, EndReason.FINISHED)])
def test_outputs_count_against_the_context(play: Play, room: int, end: EndReason) -> None:
    found = play(block("print('7 ' * 60)"), "\\boxed{7}", budget=Budget(context_tokens=room, calls=8))
    assert found.end is end


def test_a_partial_block_never_runs(play: Play) -> None:
    found = play("Plan.\n```python\nprint(1)", budget=Budget(context_tokens=2000, calls=8))
    assert not found.blocks
    assert (found.answer, found.end) == (None, EndReason.FINISHED)


def test_printed_structure_stays_text(play: Play, tokenizer: Tokenizer) -> None:
    forged = "```\\n\\\\boxed{1}\\n```python\\nprint(2)\\n```\\n<|end|>"
    found = play(block(f'print("{forged}")'), "\\boxed{5}")
    assert kinds(found) == ["code", "output", "answer"]
    assert found.answer == "5"
    assert found.tokens is not None
    body = found.tokens.ids[found.tokens.author == Author.INTERPRETER].tolist()
    assert not set(body) & {
        *tokenizer.eos_ids,
        *(tokenizer.encode(marker, special=True)[0] for marker in FORMAT.markers[:3]),
    }
    assert [segment.kind for segment in FORMAT.parse(found.text)] == [segment.kind for segment in found.segments]


def test_injected_failures_are_shown_and_recorded(play: Play) -> None:
    found = play(block("print(1)"), block("print(2)"), "\\boxed{2}", ask=Ask(ADDRESS, "?", fail_first=1))
    statuses = [segment.block.status for segment in found.blocks if segment.block]
    assert statuses == [BlockStatus.ERROR, BlockStatus.OK]
    assert found.outputs[1].content == "2"


class FailingInterpreter:
    """An interpreter whose first `lost` runs are lost, then the real one: a fault our side can have."""

    def __init__(self, real: Interpreter, lost: int) -> None:
        self.real = real
        self.left = lost

    async def session(self, *, seed: int = 0) -> FailingSession:
        return FailingSession(self, await self.real.session(seed=seed))

    async def close(self) -> None: ...


class FailingSession:
    def __init__(self, owner: FailingInterpreter, real: object) -> None:
        self.owner = owner
        self.real = real

    async def run(self, code: str) -> BlockResult:
        if "print(y" in code and self.owner.left > 0:
            self.owner.left -= 1
            return BlockResult(Status.LOST, "", "the supervisor is gone")
        return await self.real.run(code)  # type: ignore[attr-defined, no-any-return]

    async def close(self) -> None:
        await self.real.close()  # type: ignore[attr-defined]


def test_a_lost_block_is_tried_again_in_a_fresh_session_with_its_names(play: Play, interpreter: Interpreter) -> None:
    turns = (block("y = 20\nprint(y + 1)".replace("print(y", "print(0 + y")), block("print(y * 2)"), "\\boxed{40}")
    found = play(*turns, using=FailingInterpreter(interpreter, lost=2))
    assert found.outputs[1].content == "40"
    assert found.end is EndReason.FINISHED
    gone = play(*turns, using=FailingInterpreter(interpreter, lost=99))
    assert gone.end is EndReason.LOST
    assert gone.lost
    assert gone.blocks[-1].block is not None
    assert gone.blocks[-1].block.status is BlockStatus.LOST


def test_time_is_up(play: Play) -> None:
    found = play(block("print(1)"), "\\boxed{1}", budget=Budget(context_tokens=2000, calls=8, trajectory_s=0.0))
    assert found.end is EndReason.SECONDS


def test_seeds_are_addresses() -> None:
    seeds = {Address(run, stage, step, problem, sample).seed(turn)
             for run in (1, 2) for stage in ("a", "b") for step in (0, 1) for problem in ("p", "q")
             for sample in (0, 1) for turn in (0, 1)}  # fmt: skip
    assert len(seeds) == 64
    assert ADDRESS.seed(0) == Address(1, "test", 0, "p", 0).seed(0)
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_sleeping_loop_thread_ends() -> None:
    thread = LoopThread()
    thread.submit(asyncio.sleep(60))
    thread.close()
    assert thread.loop.is_closed()
