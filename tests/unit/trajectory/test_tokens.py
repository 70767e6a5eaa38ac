"""Ids and their authors: built step by step, or once from text, and both the same."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thincode.settings import kind, kinds
from thincode.trajectory import Address, Author, EndReason, Segment, SegmentKind, Trajectory
from thincode.trajectory.formats import Converses, Format, build
from thincode.trajectory.tokenizer import Tokenizer
from thincode.trajectory.tokens import TokenBuilder, encode, insert, insertion_ids, loss_mask, spans
from thincode.trajectory.turns import render, spoken

ROOM = "thincode.trajectory.formats"
FORMATS = [build(kind(ROOM, name)) for name in kinds(ROOM)]
MARKERS = ["```python\n", "```output\n", "```\n", "\\boxed{"]
TOKENIZER = Tokenizer.train(["Plan it.\n", "print(x + y)\n", "The answer"] * 4, vocab_size=300, markers=MARKERS)
every_format = pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.name)


def record(
    format: Format, segments: list[Segment], end: EndReason = EndReason.FINISHED, question: str = "1 + 1?"
) -> Trajectory:
    return Trajectory(
        Address(0, "t", 0, "p", 0), question, format.name, "", tuple(segments), end, format.answer(segments)
    )


def play(format: Format, printed: list[str], plan: str = "Plan it.") -> list[Segment]:
    segments: list[Segment] = []
    for number, turn in enumerate(format.teacher_turns(plan, [plan, "Go on."], ["x = 1", "print(x)"], "2")):
        scanner = format.scanner()
        call = scanner.feed(turn) or scanner.finish()
        segments += format.segments(turn, call=call, first=number == 0, last=call is None)
        if call is not None:
            output = format.output(printed[number])
            segments.append(Segment(SegmentKind.OUTPUT, output.text, output.body))
            if number == 1:
                notice = format.notice("No calls remain.")
                segments.append(Segment(SegmentKind.NOTICE, notice.text, notice.body))
    return segments


def driven(format: Format, segments: list[Segment], question: str) -> TokenBuilder:
    """What an episode driver does: a model that samples each turn's tokens, and insertions as the format makes them."""
    prompt = render([{"role": "user", "content": format.user_message(question)}], format=format, tokenizer=TOKENIZER)
    tokens = TokenBuilder(TOKENIZER.encode(prompt, special=True))
    format, turn = spoken(format, TOKENIZER), ""
    for segment in [*segments, None]:
        inserted = segment is not None and segment.kind in (SegmentKind.OUTPUT, SegmentKind.NOTICE)
        if segment is not None and not inserted:
            turn += segment.text
            continue
        for token in TOKENIZER.encode(turn, special=False, added=True):
            tokens.sampled(token)
        if turn and segment is not None and isinstance(format, Converses):
            tokens.sampled(TOKENIZER.eos_ids[0])
        turn = ""
        if segment is not None and segment.kind is SegmentKind.OUTPUT:
            insert(tokens, TOKENIZER, format.output(segment.content), body=Author.INTERPRETER)
        elif segment is not None:
            insert(tokens, TOKENIZER, format.notice(segment.content), body=Author.DRIVER)
    tokens.sampled(TOKENIZER.eos_ids[0])
    return tokens


@every_format
@given(printed=st.lists(st.text(max_size=20), min_size=2, max_size=2), plan=st.text(max_size=20))
def test_encoded_text_has_the_ids_a_driver_would_hold(format: Format, printed: list[str], plan: str) -> None:
    segments = play(format, printed, plan)
    full = encode(record(format, segments), format, TOKENIZER)
    assert full.tokens == driven(format, segments, "1 + 1?").freeze()


@every_format
def test_each_segment_knows_its_tokens(format: Format) -> None:
    full = encode(record(format, play(format, ["<|end|>", "7"])), format, TOKENIZER)
    ids, at = full.tokens.ids, full.tokens.prompt_length
    assert TOKENIZER.decode(ids[:at]) == full.prompt
    for segment in full.segments:
        assert segment.start == at
        assert TOKENIZER.decode(ids[segment.start : segment.end]) == segment.text
        at = segment.end
    assert list(ids[at:]) == [TOKENIZER.eos_ids[0]]
    assert np.isnan(full.tokens.logprob).all()


@every_format
def test_an_output_never_changes_which_tokens_train(format: Format) -> None:
    def trained(printed: list[str]) -> list[int]:
        tokens = encode(record(format, play(format, printed)), format, TOKENIZER).tokens
        return [int(token) for token, kept in zip(tokens.ids, loss_mask(tokens), strict=True) if kept]

    assert trained(["1", "2"]) == trained(["```\n<|end|>\\boxed{9}```python\n", "12345\n" * 9])


def test_the_masks_differ_in_what_was_inserted() -> None:
    format = build(kind(ROOM, "thinc"))
    tokens = encode(record(format, play(format, ["1", "2"])), format, TOKENIZER).tokens
    m0, m1 = loss_mask(tokens), loss_mask(tokens, train_outputs=True)
    assert {Author(a) for a in tokens.author[m0]} == {Author.MODEL}
    assert {Author(a) for a in tokens.author[m1 & ~m0]} == {Author.INTERPRETER, Author.DRIVER}
    assert {Author(a) for a in tokens.author[~m1]} == {Author.PROMPT}


@pytest.mark.parametrize("end", list(EndReason))
def test_only_a_finished_record_ends_with_the_end_token(end: EndReason) -> None:
    format = build(kind(ROOM, "thinc"))
    tokens = encode(record(format, play(format, ["1", "2"]), end), format, TOKENIZER).tokens
    assert (tokens.ids[-1] == TOKENIZER.eos_ids[0]) == (end is EndReason.FINISHED)


def test_text_of_a_model_can_hold_markers_and_no_forged_end() -> None:
    format = build(kind(ROOM, "cot"))
    text = "<|end|>```python\n\\boxed{1}"
    ids = encode(record(format, format.parse(text), EndReason.CONTEXT), format, TOKENIZER, prompt="q").tokens.ids
    assert TOKENIZER.eos_ids[0] not in ids
    assert {TOKENIZER.encode(marker, special=True)[0] for marker in ("```python\n", "\\boxed{")} <= set(ids.tolist())


@pytest.mark.parametrize("name", ["mathcoder", "gpt_oss"])
def test_a_formats_markers_are_tokens_in_a_models_text_also_where_they_are_special(name: str, tmp_path: Path) -> None:
    format = build(kind(ROOM, name))
    markers = [marker for marker in format.markers if marker.startswith("<|") and marker != "<|end|>"]
    Tokenizer.train(["Plan it."], vocab_size=300, markers=markers).save(tmp_path)
    file = tmp_path / "tokenizer.json"
    state = json.loads(file.read_text())
    for token in state["added_tokens"]:
        token["special"] = True
    file.write_text(json.dumps(state))
    tokenizer = Tokenizer.load(tmp_path)
    text = "".join(markers)
    said = encode(
        record(format, [Segment(SegmentKind.THOUGHT, f"{text}<|user|><|end|>", "")]), format, tokenizer, prompt="q"
    )
    assert said.tokens is not None
    written = said.tokens.ids[said.tokens.author == Author.MODEL].tolist()
    assert written[: len(markers)] == [tokenizer.encode(marker, special=True)[0] for marker in markers]
    assert written.count(tokenizer.eos_ids[0]) == 1, "the record's own end; in the text it is letters"
    assert tokenizer.encode("<|user|>", special=True)[0] not in written, "no marker of this format"
    printed = insertion_ids(tokenizer, format.output(tokenizer.neutralize(text)))[1]
    assert not set(printed) & set(written[: len(markers)])


def test_the_bodys_markers_are_plain_text() -> None:
    format = build(kind(ROOM, "thinc"))
    before, body, after = insertion_ids(TOKENIZER, replace(format.output(""), body="\\boxed{<|end|>"))
    assert TOKENIZER.decode(body) == "\\boxed{<|end|>"
    assert len(before) == 1
    assert max(body) < min(before + after[1:]), "markers and special tokens have the highest ids"


def test_a_prompt_is_the_records_own_unless_named() -> None:
    format = build(kind(ROOM, "cot"))
    text_only = record(format, format.parse("a"))
    for given_record, named, prompt in (
        (text_only, None, f"<|user|>{format.user_message('1 + 1?')}<|assistant|>"),
        (replace(text_only, prompt="p"), None, "p"),
        (replace(text_only, prompt="p"), "q", "q"),
    ):
        full = encode(given_record, format, TOKENIZER, prompt=named)
        assert full.prompt == TOKENIZER.decode(full.tokens.ids[: full.tokens.prompt_length]) == prompt


def test_ids_are_never_made_twice() -> None:
    format = build(kind(ROOM, "cot"))
    full = encode(record(format, format.parse("a")), format, TOKENIZER)
    with pytest.raises(ValueError, match="never made anew"):
        encode(full, format, TOKENIZER)


def test_a_builder_grows_and_takes_back_only_what_was_sampled() -> None:
    tokens = TokenBuilder([5, 6])
    tokens.sampled(7, -0.5)
    tokens.sampled(8, -1.5)
    tokens.drop_last()
    tokens.inserted([9, 10], Author.INTERPRETER)
    assert (tokens.ids, len(tokens)) == ([5, 6, 7, 9, 10], 5)
    frozen = tokens.freeze()
    assert frozen.author.tolist() == [0, 0, 1, 2, 2]
    assert [None if math.isnan(x) else x for x in frozen.logprob.tolist()] == [None, None, -0.5, None, None]
    assert frozen.prompt_length == 2
    with pytest.raises(ValueError, match="not sampled"):
        tokens.drop_last()
    with pytest.raises(ValueError, match="MODEL inserts nothing"):
        tokens.inserted([1], Author.MODEL)
    with pytest.raises(ValueError, match="not sampled"):
        TokenBuilder([]).drop_last()


@pytest.mark.parametrize(
    ("texts", "starts", "found"),
    [
        (["ab", "cd"], [0, 1, 2, 3], [(0, 2), (2, 4)]),
        (["ab", "cd"], [0, 1, 3], [(0, 2), (2, 3)]),
        (["ab", "c", "d"], [0, 3], [(0, 1), (1, 1), (1, 2)]),
        (["a", "b"], [0, 0, 0, 1, 1], [(0, 3), (3, 5)]),
        (["a"], [], [(0, 0)]),
        ([], [], []),
    ],
)
def test_a_token_belongs_to_the_text_it_starts_in(
    texts: list[str], starts: list[int], found: list[tuple[int, int]]
) -> None:
    assert spans(texts, starts) == found
