"""A block is one only where it is complete and exactly written: the traps that lazy patterns fall into, for fences and tags."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from thincode.settings import kind, kinds
from thincode.trajectory import SegmentKind
from thincode.trajectory.formats import Call, Format, build
from thincode.trajectory.formats._fenced import Fenced
from thincode.trajectory.formats._program import Program
from thincode.trajectory.formats._tagged import Tagged

ROOM = "thincode.trajectory.formats"
EVERY = [build(kind(ROOM, name)) for name in kinds(ROOM)]
FENCES = [format for format in EVERY if isinstance(format, Fenced) and format.tags and not isinstance(format, Program)]
TAGS = [format for format in EVERY if isinstance(format, Tagged)]
PROGRAMS = [format for format in EVERY if isinstance(format, Program)]
CODE = "x = 1\nprint(x)"


@dataclass(frozen=True)
class Marks:
    """How a format writes code."""

    opener: str
    closer: str

    @staticmethod
    def of(format: Format) -> Marks:
        opener, _, closer = format.piece(SegmentKind.CODE, CODE).partition(CODE)
        return Marks(opener, closer)

    def block(self, code: str = CODE) -> str:
        return f"{self.opener}{code}{self.closer}"


def scan(format: Format, text: str, *, ended: bool = True) -> Call | None:
    scanner = format.scanner()
    call = scanner.feed(text)
    return scanner.finish() if ended else call


def ids(format: Format) -> str:
    return format.name


every_block = pytest.mark.parametrize("format", FENCES + TAGS, ids=ids)
every_fence = pytest.mark.parametrize("format", FENCES, ids=ids)
every_tag = pytest.mark.parametrize("format", TAGS, ids=ids)


def test_the_families_are_there() -> None:
    assert {format.name for format in FENCES} >= {"thinc", "tir", "tora", "cir", "torl", "cort", "simpletir"}
    assert {format.name for format in TAGS} == {"retool", "tool_star"}
    assert {format.name for format in PROGRAMS} == {"pal", "pot"}


@every_block
@pytest.mark.parametrize("inside", ["s = 'CLOSER'", 's = "CLOSER"', "s = 'a' + 'CLOSER'", "print('OPENER', 'CLOSER')"])
def test_a_marker_inside_a_string_of_the_program_stays_program(format: Format, inside: str) -> None:
    marks = Marks.of(format)
    code = inside.replace("CLOSER", marks.closer.strip().splitlines()[-1])
    code = code.replace("OPENER", marks.opener.strip().splitlines()[0]) + "\nprint(1)"
    call = scan(format, "Plan.\n" + marks.block(code))
    assert call is not None
    assert call.code == code


@every_block
def test_markers_named_in_prose_are_prose(format: Format) -> None:
    marks = Marks.of(format)
    opener, closer = marks.opener.splitlines()[0], marks.closer.strip().splitlines()[-1]
    told = f"I write {opener} before the code and {closer} behind it; {opener}print(1){closer} would be a block.\n"
    assert scan(format, told) is None
    call = scan(format, told + marks.block())
    assert call is not None
    assert call.code == CODE
    plan, code = format.segments(told + marks.block(), call=call, first=True, last=False)
    assert (plan.text, code.content) == (told, CODE)


@every_fence
@pytest.mark.parametrize("tag", ["python3", "pythonx", "Python", "python title=a", "pycon", "text", "output"])
def test_another_word_behind_the_fence_opens_nothing(format: Format, tag: str) -> None:
    assert scan(format, f"```{tag}\n{CODE}\n```\nSo it is.\n") is None
    call = scan(format, f"```{tag}\n{CODE}\n```\nSo it is.\n" + Marks.of(format).block("y"))
    assert call is not None
    assert call.code == "y"


@every_tag
@pytest.mark.parametrize("change", [("<", "<my_"), (">", "3>"), ("<", "< "), ("<", "</")])
def test_another_tag_opens_nothing(format: Format, change: tuple[str, str]) -> None:
    marks = Marks.of(format)
    assert scan(format, marks.opener.replace(*change) + CODE + marks.closer) is None


@every_block
def test_doubled_openers_start_the_block_anew(format: Format) -> None:
    marks = Marks.of(format)
    call = scan(format, marks.opener + marks.block())
    assert call is not None
    assert call.code == CODE


@every_block
@pytest.mark.parametrize("inside", ["", " ", "\n \t\n"])
def test_an_empty_block_is_prose_and_the_next_one_counts(format: Format, inside: str) -> None:
    marks = Marks.of(format)
    assert scan(format, marks.block(inside)) is None
    call = scan(format, marks.block(inside) + "Then:\n" + marks.block())
    assert call is not None
    assert call.code == CODE


@every_block
def test_of_several_calls_in_a_turn_the_first_runs_and_the_rest_was_never_said(format: Format) -> None:
    marks = Marks.of(format)
    turn = "Plan.\n" + marks.block() + "\nAnd more.\n" + marks.block("print(2)")
    call = scan(format, turn)
    assert call is not None
    assert (call.code, turn[: call.end]) == (CODE, "Plan.\n" + marks.block())
    kept = format.segments(turn, call=call, first=True, last=False)
    assert "".join(segment.text for segment in kept) == turn[: call.end]


@every_block
def test_a_cut_inside_a_block_never_runs_it(format: Format) -> None:
    whole = "Plan.\n" + Marks.of(format).block(f"{CODE}\nprint('a longer line')")
    complete = scan(format, whole)
    assert complete is not None
    for length in range(len(whole) - 1):
        cut = whole[:length]
        call = scan(format, cut, ended=False)
        assert call is None, cut
        assert "".join(s.text for s in format.segments(cut, call=None, first=True, last=False)) == cut
        if length > whole.index(CODE):
            half = format.segments(cut, call=None, first=True, last=True)[-1]
            assert (half.kind, half.block) == (SegmentKind.CODE, None)


@every_fence
def test_an_indented_fence_is_program_and_a_bare_one_closes(format: Format) -> None:
    code = 's = """\n  ```\n\t```\n"""'
    call = scan(format, Marks.of(format).block(code))
    assert call is not None
    assert call.code == code


def test_where_bare_fences_open_blocks_those_of_text_stay_text() -> None:
    format = build(kind(ROOM, "simpletir"))
    for opener in ("```", "```py", "```python"):
        call = scan(format, f"```text\nno program\n```\nNow:\n{opener}\n{CODE}\n```\nand more")
        assert call is not None
        assert call.code == CODE
    assert scan(format, "```text\nno program\n```\nThat was all.") is None
    unclosed = scan(format, f"```diff was never closed\n```python\n{CODE}\n```\n")
    assert unclosed is not None
    assert unclosed.code == CODE


@every_tag
def test_tags_may_stand_on_one_line_and_behind_each_other(format: Format) -> None:
    opener, closer = f"<{format.code_tag}>", f"</{format.code_tag}>"  # type: ignore[attr-defined]
    for before in ("", "Plan.\n", "<think>Plan.</think> "):
        call = scan(format, f"{before}{opener} print(1) {closer} and more")
        assert call is not None
        assert call.code.strip() == "print(1)"
    late = scan(format, f"{opener}\nx = 1\nprint(x){closer}")
    assert late is not None
    assert late.code == "x = 1\nprint(x)"


@every_tag
@pytest.mark.parametrize(
    "code",
    [
        'print("it\'s", 3)',
        "print('say \"', 3)",
        "x = 5  # it's five",
        "print('it\\'s')",
        'print("a\\\\")',
        "s = '''it's'''",
        '"""It\'s a sum,\nisn\'t it"""',
        "x = '' + \"'\"",
        "s = '#'; t = \"it's\"",
        "s = 'never closed\nprint(1)",
    ],
)
def test_a_closer_behind_code_is_found_whatever_quotes_stand_before(format: Format, code: str) -> None:
    opener, closer = f"<{format.code_tag}>", f"</{format.code_tag}>"  # type: ignore[attr-defined]
    call = scan(format, f"{opener}{code}{closer}", ended=False)
    assert call is not None
    assert call.code == code
    scanner = format.scanner()
    assert [scanner.feed(sign) for sign in f"{opener}{code}{closer}"][-1] == call


@every_tag
@pytest.mark.parametrize(
    "inside", ["'\\'CLOSER'", '"it\'s CLOSER"', "'''it's\n it CLOSER'''", "'#CLOSER'", "'\"CLOSER'", '"""a"CLOSER"""']
)
def test_a_closer_in_a_string_is_program_whatever_quotes_are_in_it(format: Format, inside: str) -> None:
    opener, closer = f"<{format.code_tag}>", f"</{format.code_tag}>"  # type: ignore[attr-defined]
    code = f"s = {inside.replace('CLOSER', closer)}"
    call = scan(format, f"{opener}{code}{closer}")
    assert call is not None
    assert call.code == code


def test_what_is_searched_for_has_no_strings() -> None:
    call = scan(build(kind(ROOM, "tool_star")), "<search>who proved Fermat's theorem</search>")
    assert call is not None
    assert call.code == "who proved Fermat's theorem"


@every_tag
def test_a_closer_at_the_start_of_a_line_closes_whatever_stands_before(format: Format) -> None:
    marks = Marks.of(format)
    call = scan(format, marks.block("print('never closed"))
    assert call is not None
    assert call.code == "print('never closed"


def test_a_fence_inside_the_tags_is_no_part_of_the_program() -> None:
    format = build(kind(ROOM, "retool"))
    for inside in (f"```python\n{CODE}\n```", f"\n```py\n{CODE}\n```\n", CODE, f"```\n{CODE}\n```"):
        call = scan(format, f"<code>\n{inside}\n</code>")
        assert call is not None
        assert call.code == CODE


def test_a_search_is_recorded_and_refused() -> None:
    format = build(kind(ROOM, "tool_star"))
    call = scan(format, "<think>Look it up.</think> <search> primes below 10 </search> <result>")
    assert call is not None
    assert call.code == "primes below 10"
    assert "not available" in call.refused
    text = "<search>primes</search> <result>\n2 3 5 7\n</result><python>\nprint(2)\n</python> <result>\n2\n</result>"
    found = format.parse(text + "<answer>2</answer>")
    assert [segment.kind.value for segment in found] == ["code", "notice", "code", "output", "answer"]
    assert (found[1].content, format.answer(found)) == ("2 3 5 7", "2")


BARE = [
    ("pal", "def solution():\n    x = 1\n\n    return x\n\n\nQ: another", "def solution():\n    x = 1\n\n    return x"),
    ("pal", "def solution():\n    return 1", "def solution():\n    return 1"),
    ("pal", "def solution():\n    return 1\n```output\n7\n```\n", "def solution():\n    return 1"),
    (
        "pal",
        "Here it is:\n```python\ndef solution():\n    return 1\n\n\n\n```\nDone.",
        "def solution():\n    return 1\n\n\n",
    ),
    ("pot", "\n\nx = 1\nans = x\n\nprint('never')", "x = 1\nans = x"),
    ("pot", "ans = '```'\n", "ans = '```'"),
    ("pot", "Here is the program:\n\n```python\nans = 6*7\n```", "ans = 6*7"),
    ("pot", "Let's multiply.\n\nans = 6*7\n\nIt is 42.", "ans = 6*7"),
    ("pot", "# Python code, return ans\n\nans = 6*7", "ans = 6*7"),
    ("pot", "Say it:\n```text\nas words\n```\n\nans = 1", "ans = 1"),
    ("pot", "ans = '\\d'", "ans = '\\d'"),
    ("pal", "Here is the program:\n\ndef solution():\n    return 1", "def solution():\n    return 1"),
    ("pal", "Here is the program:\n\n\n```python\ndef solution():\n    return 1\n```", "def solution():\n    return 1"),
    ("pal", "def solution():\n    if x:\n\n        return 1\n", "def solution():\n    if x:\n\n        return 1"),
]


@pytest.mark.parametrize(("name", "text", "code"), BARE)
def test_a_bare_program_ends_at_blank_lines_at_a_fence_or_with_the_turn(name: str, text: str, code: str) -> None:
    call = scan(build(kind(ROOM, name)), text)
    assert call is not None
    assert call.code == code


@pytest.mark.parametrize("format", PROGRAMS, ids=ids)
@pytest.mark.parametrize(
    "text", ["The answer is 42.", "Let's see:\n\nit's 42.\n\n\n", "# nothing\n", "ans = (", "\0", "\ud800"]
)
def test_what_is_no_python_never_runs(format: Format, text: str) -> None:
    assert scan(format, text) is None
    (said,) = format.segments(text, call=None, first=True, last=True)
    assert (said.kind, said.text) == (SegmentKind.ANSWER, text)


@pytest.mark.parametrize("format", PROGRAMS, ids=ids)
def test_prose_before_a_program_is_its_plan(format: Format) -> None:
    text = "Multiply them.\n\n\nans = 6 * 7"
    call = scan(format, text)
    kept = format.segments(text, call=call, first=True, last=False)
    assert [(s.kind, s.content) for s in kept] == [
        (SegmentKind.PLAN, "Multiply them."),
        (SegmentKind.CODE, "ans = 6 * 7"),
    ]
    printed = format.output("42").text
    assert [s.kind.value for s in format.parse("".join(s.text for s in kept) + printed)] == ["plan", "code", "output"]


@pytest.mark.parametrize("format", PROGRAMS, ids=ids)
def test_half_a_program_never_runs(format: Format) -> None:
    for cut in ("def solution():\n    return", "Plan.\n```python\ndef solution():\n    return 1\n"):
        assert scan(format, cut, ended=False) is None
    assert scan(format, "Plan.\n```python\ndef solution():\n    return 1\n") is None, "a fence that opened must close"


VALUES = [
    ("pal", "noise\n7\n", "7"),
    ("pal", "[3, 4]", "[3, 4]"),
    ("pot", "noise\nsqrt(2)\n", "sqrt(2)"),
    ("pot", "[3, 4]", "[3, 4]"),
    ("pot", "", None),
]


@pytest.mark.parametrize(("name", "printed", "answer"), VALUES)
def test_the_value_of_a_program_is_the_answer(name: str, printed: str, answer: str | None) -> None:
    format = build(kind(ROOM, name))
    text = "ans = 1\n" + format.output(printed).text
    assert format.answer(format.parse(text)) == answer
