"""Worked examples are true: their blocks print what the prompt claims, and they pass the filters they are to teach."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from thincode.errors import DataError, RecipeError
from thincode.grading import Graded, Sieve
from thincode.grading.answers import Grader
from thincode.interpreter import Limits, Status, open_interpreter
from thincode.interpreter.presets import Keeps
from thincode.problems import Problem
from thincode.rollout import prompt
from thincode.rollout.prompt import Exemplar
from thincode.settings import kind
from thincode.trajectory import Address, Block, BlockStatus, EndReason, Segment, SegmentKind, Trajectory
from thincode.trajectory.formats import Format, build
from thincode.trajectory.tokenizer import Tokenizer

SHOTS = prompt.load("thinc_3shot")
THINC: Format = build(kind("thincode.trajectory.formats", "thinc"))
TIR: Format = build(kind("thincode.trajectory.formats", "tir"))
each_example = pytest.mark.parametrize("exemplar", SHOTS.exemplars, ids=lambda exemplar: exemplar.topic)


def test_number_theory_combinatorics_and_algebra() -> None:
    assert [exemplar.topic for exemplar in SHOTS.exemplars] == ["number theory", "combinatorics", "algebra"]
    assert re.fullmatch(r"thinc_3shot@\d+:[0-9a-f]{8}", SHOTS.version)


@each_example
def test_each_block_prints_what_the_prompt_claims(exemplar: Exemplar) -> None:
    async def ran() -> list[tuple[Status, str]]:
        backend = kind("thincode.interpreter.backends", "python", preload=[])
        async with open_interpreter(backend, limits=Limits()) as interpreter, await interpreter.session() as session:
            results = [await session.run(step.code) for step in exemplar.steps]
            return [(result.status, result.output) for result in results]

    assert asyncio.run(ran()) == [(Status.OK, step.prints) for step in exemplar.steps]


@each_example
def test_each_block_prints_the_same_where_names_are_not_kept(exemplar: Exemplar) -> None:
    async def ran() -> list[tuple[Status, str]]:
        backend = kind("thincode.interpreter.backends", "python", preload=[])
        opened = open_interpreter(backend, limits=Limits(), keeps=Keeps.NOTHING)
        async with opened as interpreter, await interpreter.session() as session:
            results = [await session.run(step.code) for step in exemplar.steps]
            return [(result.status, result.output) for result in results]

    alone = SHOTS.standing_alone()
    exemplar = alone.exemplars[SHOTS.exemplars.index(exemplar)]
    assert asyncio.run(ran()) == [(Status.OK, step.prints) for step in exemplar.steps]
    assert alone.version != SHOTS.version, "a record says which it was made with"


@each_example
def test_each_example_has_the_shape_it_teaches(exemplar: Exemplar) -> None:
    assert len(exemplar.steps) >= 3
    assert not re.search(r"\d", exemplar.plan)
    assert len(exemplar.plan) < 250
    assert "assert" in exemplar.steps[-1].code
    assert exemplar.steps[-1].prints.split()[-1] == exemplar.answer
    names = [set(re.findall(r"^(\w+)(?:, \w+)* =", step.code, re.MULTILINE)) for step in exemplar.steps]
    for before, step in zip(names, exemplar.steps[1:], strict=False):
        assert any(re.search(rf"\b{name}\b", step.code) for name in before), "a block builds on the one before it"


@each_example
def test_each_example_passes_the_filters(exemplar: Exemplar) -> None:
    at = SHOTS.exemplars.index(exemplar)
    text = "".join(SHOTS.exchanges(THINC)[at].said)
    segments = tuple(
        Segment(one.kind, one.text, one.content, block=Block(BlockStatus.OK)) if one.kind is SegmentKind.CODE else one
        for one in THINC.parse(text)
    )
    answer = THINC.answer(segments)
    trajectory = Trajectory(
        Address(1, "t", 0, "p", 0), exemplar.question, "thinc", "", segments, EndReason.FINISHED, answer
    )
    with Grader() as grader:
        graded = Graded(
            Problem("p", exemplar.question, exemplar.answer), trajectory, grader.grade(answer, exemplar.answer)
        )
    names = ("correct", "blocks_ok", "min_blocks", "plan_share", "distinct_blocks", "answer_printed", "language")
    assert Sieve([kind("thincode.grading.filters", name) for name in names]).judge(graded).reason == "kept"
    assert [segment.kind for segment in segments if segment.kind is SegmentKind.THOUGHT] == []


def test_the_examples_are_said_in_any_format() -> None:
    thinc, tir = (SHOTS.exchanges(format)[0] for format in (THINC, TIR))
    assert thinc.user.startswith(SHOTS.preface)
    assert [one.user.endswith(SHOTS.reminder) for one in SHOTS.exchanges(THINC)] == [True] * 3
    assert SHOTS.user_message("1 + 1?", THINC) == f"{THINC.user_message('1 + 1?')}\n\n{SHOTS.reminder}"
    assert len(thinc.said) == len(tir.said) == 7
    assert SHOTS.exemplars[0].plan in thinc.said[0]
    assert SHOTS.exemplars[0].steps[1].thought in tir.said[2]
    assert thinc.said[1] == tir.said[1] == "```output\n[5, 8]\n```\n"
    assert thinc.said[-1].endswith("\\boxed{346}")


def test_a_tokenizer_renders_examples_before_the_question() -> None:
    tokenizer = Tokenizer.train(["any text"], vocab_size=300)
    bare = prompt.render("1 + 1?", format=THINC, tokenizer=tokenizer)
    shown = prompt.render("1 + 1?", format=THINC, tokenizer=tokenizer, shots=SHOTS)
    assert shown.endswith(bare.replace("<|assistant|>", f"\n\n{SHOTS.reminder}<|assistant|>"))
    assert shown.count("<|assistant|>") == 4
    assert prompt.render("1 + 1?", format=THINC, tokenizer=None, shots=SHOTS) == THINC.user_message("1 + 1?") + "\n\n"


def test_a_prompt_of_ones_own(tmp_path: Path) -> None:
    own = tmp_path / "mine.yaml"
    own.write_text(
        "version: 7\nexemplars: [{topic: a, question: q, answer: '1', plan: p, steps: "
        "[{code: print(1), prints: '1', thought: t}]}]\n"
    )
    shots = prompt.load(str(own))
    assert shots.version.startswith("mine@7:")
    assert shots.exchanges(THINC)[0].user == THINC.user_message("q")
    with pytest.raises(DataError, match=r"'absent': no such file; name a YAML file, or one .*: thinc_3shot"):
        prompt.load("absent")
    own.write_text("version: 7\nexemplars: [{topic: a}]\n")
    with pytest.raises(RecipeError, match=r"exemplars\.0\.question"):
        prompt.load(str(own))
