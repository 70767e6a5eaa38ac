"""SFT trains token for token what the episode driver holds for the same text, and the masks agree."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from thincode.engines import Context, Sampling
from thincode.engines.scripted import ScriptedEngine
from thincode.interpreter import Limits, open_interpreter
from thincode.problems import Problem
from thincode.problems.sources import drills
from thincode.rollout import Budget, Schedule
from thincode.rollout.crowd import Crowd, LoopThread
from thincode.rollout.episode import Ask, Setting
from thincode.runs.distill import teacher_script
from thincode.settings import kind
from thincode.trajectory import Address
from thincode.trajectory.formats import build
from thincode.trajectory.tokenizer import Tokenizer
from thincode.trajectory.tokens import encode, loss_mask

TOLD = "Plan first, then think in code."


@pytest.mark.parametrize(
    ("name", "instruction"),
    [(name, told) for name in ("thinc", "tir", "aster") for told in ("", TOLD)]
    + [("tool_star", ""), ("simpletir", TOLD)],
)
def test_a_teachers_trajectory_has_the_same_ids_both_ways(name: str, instruction: str) -> None:
    format = build(kind("thincode.trajectory.formats", name, instruction=instruction))
    source = drills.Settings(count=33, seed=5)
    problems: list[Problem] = list(drills.load(source))
    solutions = {problem.id: drills.worked_solution(source, problem, seed=1) for problem in problems}
    script = teacher_script(solutions, format)
    asks = [Ask(Address(1, "test", 0, problem.id, 0), problem.question) for problem in problems]
    backend = kind("thincode.interpreter.backends", "python", preload=[])
    with LoopThread() as loop:
        interpreter = open_interpreter(backend, limits=Limits())

        def roll(tokenizer: Tokenizer | None, say: object = script) -> list[object]:
            setting = Setting(interpreter, format, tokenizer, Budget(context_tokens=2000, calls=8), Sampling())
            crowd = Crowd(loop=loop, engine=ScriptedEngine(say, tokenizer), schedule=Schedule.OVERLAPPED)  # type: ignore[arg-type]
            return list(crowd.roll(asks, setting))

        texts = roll(None)
        corpus = [trajectory.question + trajectory.text for trajectory in texts]  # type: ignore[attr-defined]
        tokenizer = Tokenizer.train(corpus, vocab_size=400, markers=format.markers)

        def one_turn_at_a_time(context: Context) -> str:
            return script(context)

        driven = roll(tokenizer, one_turn_at_a_time)
        loop.call(interpreter.close())
    for text_only, held in zip(texts, driven, strict=True):
        made = encode(replace(text_only, prompt=held.prompt), format, tokenizer)  # type: ignore[type-var, attr-defined]
        assert made.tokens is not None
        assert np.array_equal(made.tokens.ids, held.tokens.ids)  # type: ignore[attr-defined]
        assert np.array_equal(made.tokens.author, held.tokens.author)  # type: ignore[attr-defined]
        for train_outputs in (False, True):
            assert np.array_equal(
                loss_mask(made.tokens, train_outputs=train_outputs),
                loss_mask(held.tokens, train_outputs=train_outputs),  # type: ignore[attr-defined]
            )
        spans = [[(segment.start, segment.end) for segment in one.segments] for one in (made, held)]  # type: ignore[attr-defined]
        assert spans[0] == spans[1]
