"""What every wire format must hold; a new file in `trajectory/formats` is tested by being there."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thincode.interpreter.presets import PRESETS
from thincode.settings import kind, kinds
from thincode.trajectory import Segment, SegmentKind
from thincode.trajectory.formats import Call, Concludes, Format, Sheet, build, sheet
from thincode.trajectory.tokenizer import Tokenizer

ROOM = "thincode.trajectory.formats"
FORMATS: list[Format] = [build(kind(ROOM, name)) for name in kinds(ROOM)]
INSERTED = (SegmentKind.OUTPUT, SegmentKind.NOTICE)

FRAGMENTS = [
    *("```python\n", "```python", "```py\n", "```python3\n", "```\n", "```", "``", "`", "~~~\n"),
    *("```output\n", "```notice\n", "```output\n7\n```\n", "    ```\n", "\t```python\n", "``` \r\n", "```python\r\n"),
    *("x = 1\n", "print(x)\n", "'''\n", "s = '```'\n", "\n", " ", "\r\n", "\r", "text", "plan: use ```python here\n"),
    *(
        "\\boxed{42}",
        "\\boxed{",
        "}",
        "{",
        "\\{",
        "\\boxed{\\frac{1}{2}}",
        "<|end|>",
        "<|user|>",
        "</think>",
        "\0",
        "é",
    ),
    *("```gp\n", "```note\n", "```note\n```python\nx\n```\n", "n = 4\n", "assert n == 4\n"),
    *("<code>\n", "</code>", "<interpreter>", "</interpreter>", "<python>", "</python>", "<result>", "</result>"),
    *(
        "<tool_call>",
        "</tool_call>",
        "<tool_response>",
        "</tool_response>",
        '{"name": ',
        '<tool_call>\n{"name": "code_interpreter", "arguments": {"code": "1</tool_call>"}}\n</tool_call>',
        '<tool_call>{"name": "jupyter_code", "arguments": {"code": "1\\n2"}}</tool_call>',
        '<tool_call>{"name": "search", "arguments": {}}</tool_call>',
        "<tool_call>\n{",
        "<|im_end|>\n<|im_start|>user\n<tool_response>\n",
        "\n</tool_response><|im_end|>\n<|im_start|>assistant\n",
        "<notice>\n",
        "Tool call success\nstdout: ",
        "\nexecution time: 0.00s",
        "<answer>",
        "</answer>",
        "<search>",
        "</search>",
        "Code execution result: ",
        "Answer: 7",
        "def solution():\n",
        "\n\n\n",
        "<|channel|>final<|message|>",
        "\u2028",
    ),
]
texts = st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=4), max_size=24).map("".join)
every_format = pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.name)


def scan(format: Format, pieces: list[str]) -> Call | None:
    scanner = format.scanner()
    call = None
    for piece in pieces:
        call = call or scanner.feed(piece)
    return call or scanner.finish()


def split(data: st.DataObject, text: str) -> list[str]:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    return [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]


def play(format: Format, turns: list[str], printed: list[str]) -> list[Segment]:
    """The segments an episode would hold whose model says `turns` and whose blocks print `printed`."""
    segments: list[Segment] = []
    for number, turn in enumerate(turns):
        call = scan(format, [turn])
        last = call is None
        segments += format.segments(turn, call=call, first=number == 0, last=last)
        if last:
            break
        assert call is not None
        kind = SegmentKind.NOTICE if call.refused else SegmentKind.OUTPUT
        body = format.output(call.refused or printed[number])
        segments.append(Segment(kind, body.text, body.body))
        if isinstance(format, Concludes) and format.concluded(segments):
            break
    return segments


def taught(format: Format) -> list[Segment]:
    turns = format.teacher_turns("Add them up.", ["First add.", "Then halve."], ["print(2 + 4)", "x = 3\nx"], "3")
    calls = sum(scan(format, [turn]) is not None for turn in turns)
    return play(format, turns, ["6\n", "3"][2 - calls :])


def test_there_are_formats() -> None:
    assert {"thinc", "tir", "cot"} <= set(kinds(ROOM))


@every_format
def test_a_sheet_says_what_is_published_of_its_system(format: Format) -> None:
    chosen = kind(ROOM, format.name)
    found = sheet(chosen)
    assert found is chosen.module.SHEET
    assert found.preset is None or found.preset in PRESETS
    runs_code = any(segment.kind is SegmentKind.CODE for segment in taught(format))
    assert (found.calls == 0) is not runs_code
    assert runs_code or found.preset is None
    assert not found.unknown.endswith(".")


def test_a_format_from_outside_needs_no_sheet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lab_without_sheets").mkdir()
    (tmp_path / "lab_without_sheets" / "bare.py").write_text(f"from {ROOM}.tir import Settings, build\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert sheet(kind(ROOM, "lab_without_sheets.bare")) == Sheet(system="lab_without_sheets.bare")


@every_format
def test_a_taught_trajectory_parses_back_to_its_segments(format: Format) -> None:
    segments = taught(format)
    assert format.parse("".join(segment.text for segment in segments)) == segments
    assert format.answer(segments) == "3"


@every_format
@given(text=texts)
def test_any_text_parses_and_joins_again(format: Format, text: str) -> None:
    segments = format.parse(text)
    assert "".join(segment.text for segment in segments) == text
    assert all(segment.text for segment in segments)
    format.answer(segments)


@every_format
@given(text=texts, data=st.data())
def test_the_streamed_call_is_the_whole_call(format: Format, text: str, data: st.DataObject) -> None:
    assert scan(format, split(data, text)) == scan(format, [text]) == scan(format, list(text))


@every_format
@given(text=texts)
def test_segments_join_to_what_is_kept(format: Format, text: str) -> None:
    call = scan(format, [text])
    kept = text if call is None else text[: call.end] + call.missing
    for first in (True, False):
        segments = format.segments(text, call=call, first=first, last=call is None)
        assert "".join(segment.text for segment in segments) == kept
        if call is not None:
            assert (segments[-1].kind, segments[-1].content) == (SegmentKind.CODE, call.code)
            assert call.code.strip()
            assert call.end <= len(text)
        assert not {segment.kind for segment in segments} & set(INSERTED)


@every_format
@given(turns=st.lists(texts, min_size=1, max_size=4), printed=st.lists(texts, min_size=4, max_size=4))
def test_hostile_outputs_forge_nothing(format: Format, turns: list[str], printed: list[str]) -> None:
    """Parsing the text of an episode gives the episode's own segments, up to the turn that made no call.

    That last turn is the model's; it may imitate an output, and only the record knows that it is none.
    """
    segments = play(format, turns, printed)
    known = segments
    while known and known[-1].kind not in INSERTED:
        known = known[:-1]
    assert format.parse("".join(segment.text for segment in known)) == known
    spoken = [segment for segment in segments if segment.kind not in INSERTED]
    if not isinstance(format, Concludes):
        assert format.answer(segments) == format.answer(spoken)


@every_format
@given(printed=texts)
def test_an_output_is_no_call_and_stays_what_it_is(format: Format, printed: str) -> None:
    insertion = format.output(printed)
    assert format.output(insertion.body) == insertion
    if scan(format, ["words"]) is None:  # else a bare text is a program, and nothing is said behind its output
        assert scan(format, [insertion.body + "\n"]) is None
        assert scan(format, [insertion.text]) is None
    segment = Segment(SegmentKind.OUTPUT, insertion.text, insertion.body)
    assert format.insertion(segment) == insertion
    assert insertion.body.strip()


TOKENIZER = Tokenizer.train(["print(1)\n```\n"], vocab_size=270, markers=["```python\n", "```output\n", "```\n"])


@every_format
@given(printed=texts)
def test_an_output_holds_no_special_token(format: Format, printed: str) -> None:
    body = format.output(printed).body
    special = {TOKENIZER.pad_id, *TOKENIZER.eos_ids, *TOKENIZER.encode("<|user|><|assistant|>", special=True)}
    assert not special & set(TOKENIZER.encode(body, special=True)), "also where a server reads it as its own text"


@every_format
def test_silence_is_said(format: Format) -> None:
    assert {format.output(printed).body for printed in ("", "\n", " \n\n")} == {"(no output)"}


@every_format
def test_an_empty_instruction_asks_the_bare_question(format: Format) -> None:
    bare = build(kind(ROOM, format.name, instruction=""))
    assert bare.user_message("1 + 1?") == "1 + 1?"
    assert format.user_message("1 + 1?").startswith("1 + 1?\n\n")


TAGGED = ("<python>\n", "</python>", "<python>x</python> <result>\n", "'</python>", "<code>\nx\n</code>", "<search>a")


@every_format
def test_scanning_and_parsing_are_linear(format: Format) -> None:
    """Counted, not timed: the work a scanner does for text in single characters grows with its length only."""
    import sys

    def work(text: str) -> int:
        calls = 0

        def count(*_: object) -> None:
            nonlocal calls
            calls += 1

        scanner = format.scanner()
        sys.setprofile(count)
        try:
            for character in text:
                scanner.feed(character)
            format.parse(text)
        finally:
            sys.setprofile(None)
        return calls

    for hostile in (
        "```python\n",
        "```python\n\n```\n",
        "```python\nx\n```\n```output\n",
        "\\boxed{",
        "`",
        "a",
        "<tool_call>{",
        '<tool_call>{"',
        *TAGGED,
    ):
        small, large = work(hostile * 200), work(hostile * 400)
        assert large < 2.2 * small
