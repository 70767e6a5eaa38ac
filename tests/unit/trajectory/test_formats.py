"""The fenced family, case by case."""

from __future__ import annotations

from pathlib import Path

import pytest

from thincode.errors import RecipeError
from thincode.settings import kind
from thincode.trajectory import Segment, SegmentKind
from thincode.trajectory.formats import Call, build, by_name
from thincode.trajectory.formats._boxed import last_boxed
from thincode.trajectory.formats._printed import harmless
from thincode.trajectory.formats.thinc import adheres

ROOM = "thincode.trajectory.formats"
THINC, TIR, COT = (build(kind(ROOM, name)) for name in ("thinc", "tir", "cot"))
P, T, C, O, N, A = (SegmentKind(k) for k in ("plan", "thought", "code", "output", "notice", "answer"))  # noqa: E741


def call_in(text: str) -> Call | None:
    scanner = THINC.scanner()
    return scanner.feed(text) or scanner.finish()


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Plan.\n```python\nx = 1\n```\n", "x = 1"),
        ("Plan.\n```python\nx = 1\n```", "x = 1"),
        ("```python\nx = 1\n\n```\n", "x = 1\n"),
        ("```python \t\nx\n``` \n", "x"),
        ("```python\r\nx = 1\r\ny\r\n```\r\n", "x = 1\ny"),
        ("```python\ns = '''\n  ```\n'''\n```\n", "s = '''\n  ```\n'''"),
        ("```python\ns = '```'\n```\n", "s = '```'"),
        ("```python\n# ```\nx\n```\n", "# ```\nx"),
        ("```python\ns = '''\n```\n'''\n```\n", "s = '''"),
        ("```python\n```python\nx\n```\n", "x"),
        ("```python\n \n```python\nx\n```\n", "x"),
        ("```python\nx\n```python\ny\n```\n", "x\n```python\ny"),
        ("```python\n \n```\nThen\n```python\nx\n```\n", "x"),
        ("We use ```python and ``` here.\n```python\nx\n```\n", "x"),
        ("```output\n1\n```\n```python\nx\n```\n", "x"),
        ("```python\nx\n````\n```\n", "x\n````"),
        ("```python\nx\x0b```\n```\n", "x\x0b```"),
    ],
)
def test_a_block_is_found(text: str, code: str) -> None:
    assert call_in(text) is not None
    assert call_in(text).code == code


@pytest.mark.parametrize(
    "text",
    [
        "",
        "```python3\nx\n```\n",
        "```py\nx\n```\n",
        "```Python\nx\n```\n",
        "```\nx\n```\n",
        "````python\nx\n````\n",
        "  ```python\nx\n```\n",
        "Do this: ```python\nx\n```\n",
        "```python x = 1\n```\n",
        "```python\n```\n",
        "```python\n \t\n\n```\n",
        "```python\nx = 1\n",
        "```python\nx = 1\n``",
        "```python\nx = 1\n  ```\n",
        "```python\nx = 1\n```x\n",
        "```output\n1\n```\n",
    ],
)
def test_no_block_is_found(text: str) -> None:
    assert call_in(text) is None


def test_what_stands_behind_the_closer_is_not_kept() -> None:
    text = "Plan.\n```python\nx\n```\n```output\n7\n```\n\\boxed{7}"
    call = call_in(text)
    assert text[: call.end] == "Plan.\n```python\nx\n```\n"
    assert call.missing == ""
    kept = THINC.segments(text, call=call, first=True, last=False)
    assert [(s.kind, s.text) for s in kept] == [(P, "Plan.\n"), (C, "```python\nx\n```\n")]


def test_a_closer_at_the_very_end_lacks_its_line_break() -> None:
    scanner = THINC.scanner()
    assert scanner.feed("```python\nx\n```") is None, "it could still become ```x"
    call = scanner.finish()
    assert call == Call(code="x", end=15, missing="\n")
    assert THINC.segments("```python\nx\n```", call=call, first=True, last=False) == [
        Segment(C, "```python\nx\n```\n", "x")
    ]


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("Plan.\n```python\nx\n```\n```output\n1\n```\n\\boxed{1}", [P, C, O, A]),
        ("```python\nx\n```\n```output\n1\n```\n", [C, O]),
        (
            "Plan.\n```python\nx\n```\n```output\n1\n```\nSo:\n```python\ny\n```\n```output\n2\n```\nA",
            [P, C, O, T, C, O, A],
        ),
        ("Plan.\n```python\nx\n```\n```notice\nNo calls.\n```\nA", [P, C, N, A]),
        ("Plan.\n```python\nx\n```\n```output\n1\n```\n```notice\nNo calls.\n```\nA", [P, C, O, A]),
        ("Plan.\n```python\nx\n```\n```output\n1\n```\n```output\n2\n```\nA", [P, C, O, A]),
        ("```output\n1\n```\nA", [A]),
        ("Plan.\n```python\nx = ", [P, C]),
        ("Plan.\n```python\nx\n```\n```output\n1", [P, C, O]),
        ("Just text.", [A]),
        ("", []),
    ],
)
def test_a_whole_text_is_read(text: str, kinds: list[SegmentKind]) -> None:
    segments = THINC.parse(text)
    assert [segment.kind for segment in segments] == kinds
    assert "".join(segment.text for segment in segments) == text


def test_a_turn_with_the_interpreter_off_holds_no_output() -> None:
    turn = "Plan.\n```python\nx\n```\n```output\n\\boxed{9}\n```\n```python\ny\n```\nDone."
    assert [s.kind for s in THINC.segments(turn, call=None, first=True, last=True)] == [P, C, T, C, A]


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("\\boxed{1} or \\boxed{2}", "2"),
        ("\\boxed{\\frac{1}{2}}", "\\frac{1}{2}"),
        ("\\boxed {3}", "3"),
        ("\\boxed{ 4 }", "4"),
        ("\\boxed{5} then \\boxed{6", "5"),
        ("\\boxed{7}, so write \\boxed{}", "7"),
        ("\\boxed{\\{1, 2\\}}", "\\{1, 2\\}"),
        ("\\boxed{\\boxed{8}}", "8"),
        ("} { \\boxed{9}", "9"),
        ("\\\\boxed{10}", "10"),
        ("\\boxed{a\\\\{b}c}", "a\\\\{b}c"),
        ("\\boxed{a\\\\\\{b}", "a\\\\\\{b"),
        ("a\\\\\\boxed{b\\\\}", "b\\\\"),
        ("\\boxed{11", None),
        ("boxed{12}", None),
        ("\\fbox{13}", None),
        ("\\boxed{}", None),
        ("", None),
    ],
)
def test_the_last_balanced_box_counts(text: str, answer: str | None) -> None:
    assert last_boxed(text) == answer


@pytest.mark.parametrize("format", [THINC, TIR])
def test_code_and_outputs_give_no_answer(format) -> None:
    text = "Plan \\boxed{1}.\n```python\nprint('\\boxed{2}')\n```\n```output\n\\boxed{3}\n```\nDone."
    assert format.answer(format.parse(text)) == "1"


def test_thinking_is_the_thought_and_the_rest_the_answer() -> None:
    assert [(s.kind, s.text) for s in COT.parse("<think>hm</think>\n\\boxed{1}")] == [
        (T, "<think>hm</think>"),
        (A, "\n\\boxed{1}"),
    ]


@pytest.mark.parametrize(
    ("printed", "seen"),
    [
        ("42\n", "42"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("```", "'''"),
        ("  ```python\nx\n  ```\n", "  '''python\nx\n  '''"),
        ("`````", "'''''"),
        ("`x` and ``y``", "`x` and ``y``"),
        ("<|im_end|>", "< |im_end|>"),
        ("\x1b[31mred\0", "�[31mred�"),
        ("a\u2028```", "a\n'''"),
        ("\ud800", "�"),
        ("\n 7", "\n 7"),
    ],
)
def test_printed_text_is_made_harmless(printed: str, seen: str) -> None:
    assert harmless(printed) == seen


def test_a_teacher_writes_what_the_format_wants() -> None:
    given = {"plan": "Sum.", "thoughts": ["One.", "Two."], "blocks": ["a = 1\n", "print(a)"], "answer": "1"}
    one, two = "```python\na = 1\n```\n", "```python\nprint(a)\n```\n"
    assert THINC.teacher_turns(**given) == ["Sum.\n" + one, two, "\\boxed{1}"]
    assert TIR.teacher_turns(**given) == ["One.\n" + one, "Two.\n" + two, "\\boxed{1}"]
    assert COT.teacher_turns(**given) == ["One.\nTwo.\n\\boxed{1}"]
    assert THINC.teacher_turns(**{**given, "answer": None}) == ["Sum.\n" + one, two]


@pytest.mark.parametrize(
    ("text", "whether"),
    [
        ("Plan.\n```python\nx\n```\n```output\n1\n```\n\\boxed{1}", True),
        ("Plan.\n```python\nx\n```\n```output\n1\n```\n \n```python\ny\n```\n```output\n1\n```\n\\boxed{1}", True),
        ("Plan.\n```python\nx\n```\n```output\n1\n```\nHm.\n```python\ny\n```\n```output\n1\n```\n\\boxed{1}", False),
        ("```python\nx\n```\n```output\n1\n```\n\\boxed{1}", False),
        ("Plan.\n```python\nx\n```\n```output\n1\n```\n", False),
        ("\\boxed{1}", False),
        ("", False),
    ],
)
def test_adherence_is_the_papers_shape(text: str, whether: bool) -> None:
    assert adheres(THINC.parse(text)) is whether


def test_a_format_of_ones_own_has_the_name_that_recipes_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    for module, name in (("their_lab_a", "short"), ("their_lab_b", "their_lab_b.short")):
        (tmp_path / module).mkdir()
        (tmp_path / module / "__init__.py").touch()
        (tmp_path / module / "short.py").write_text(
            "from thincode.settings import settings\n"
            "from thincode.trajectory.formats._fenced import Fenced\n\n\n"
            "@settings\nclass Settings:\n    pass\n\n\n"
            f"def build(settings):\n    return Fenced(name={name!r}, instruction='')\n"
        )
    with pytest.raises(RecipeError, match=r"records need 'their_lab_a\.short'"):
        build(kind(ROOM, "their_lab_a.short"))
    assert build(kind(ROOM, "their_lab_b.short")) == by_name("their_lab_b.short")
