"""ThinC with notes, with named values, in PARI/GP: what each allows, what it counts, and what a teacher writes in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from thincode.grading.spans import keeps_format
from thincode.settings import kind
from thincode.trajectory import Address, Block, BlockStatus, EndReason, Segment, SegmentKind, Trajectory
from thincode.trajectory.formats import Adheres, Hands, build, by_name, language_of
from thincode.trajectory.formats.thinc_named import handed_on
from thincode.trajectory.formats.thinc_notes import NOTE_CHARS, NOTES

ROOM = "thincode.trajectory.formats"
GP, NOTED, NAMED = (build(kind(ROOM, name)) for name in ("thinc_gp", "thinc_notes", "thinc_named"))
BLOCK, OUT = "```python\nx\n```\n", "```output\nx = 1\n```\n"
END = "\\boxed{1}"


def note(text: str) -> str:
    return f"```note\n{text}\n```\n"


def adheres(format: object, text: str) -> bool:
    assert isinstance(format, Adheres)
    return format.adheres(format.parse(text))  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("between", "whether"),
    [
        ([""], True),
        ([note("Odd: a negative length.")], True),
        ([" \n" + note("One\nand two.") + "\n"], True),
        ([note("x" * NOTE_CHARS)], True),
        ([note("x" * (NOTE_CHARS + 1))], False),
        ([note("one") + note("two")], False),
        (["Hm.\n"], False),
        ([note("one") + "Hm.\n"], False),
        ([note("n")] * NOTES, True),
        ([note("n")] * (NOTES + 1), False),
        ([note("never run:\n```python\nx")], False),
    ],
)
def test_only_notes_within_bounds_may_stand_between_blocks(between: Sequence[str], whether: bool) -> None:
    text = "Plan.\n" + BLOCK + "".join(OUT + words + BLOCK for words in between) + OUT + END
    assert adheres(NOTED, text) is whether


@pytest.mark.parametrize("text", ["", END, f"{BLOCK}{OUT}{END}", f"Plan.\n{BLOCK}{OUT}", note("x") + END])
def test_notes_replace_no_part_of_the_shape(text: str) -> None:
    assert not adheres(NOTED, text)
    assert not adheres(NAMED, text)


def test_what_stands_in_a_note_is_never_run() -> None:
    scanner = NOTED.scanner()
    assert scanner.feed("```note\n```python\nprint(1)\n") is None
    assert scanner.feed("```\n") is None, "the note's closer"
    call = scanner.feed("```python\nprint(2)\n```\n")
    assert call is not None
    assert call.code == "print(2)"
    assert NOTED.scanner().feed("```note\nopen\n```python\nprint(1)\n") is None
    segments = NOTED.parse(note("```python\nprint(1)") + "```python\n'''\n```note\n'''\n```\n")
    assert [segment.content for segment in segments if segment.kind is SegmentKind.CODE] == ["'''\n```note\n'''"]


def test_a_teacher_notes_what_it_saw_before_its_last_step() -> None:
    turns = NOTED.teacher_turns("Sum.", ["It is 7.", "It is 8.", "It is 9."], ["a", "b", "c"], "9")
    assert turns[1] == "```python\nb\n```\n"
    assert turns[2] == "```note\nIt is 8.\n```\n```python\nc\n```\n"
    assert NOTED.teacher_turns("Sum.", ["It is 7.", "It is 8.", "It is 9."], ["a", "b"], None) == turns[:2]
    assert NOTED.teacher_turns("Sum.", (), ["a", "b"], None)[1] == turns[1]


NAMED_TEXT = 'Plan.\n```python\nx = 1\nprint(f"{x = }")\n```\n' + OUT


@pytest.mark.parametrize(
    ("rest", "whether"),
    [
        ("```python\nassert x == 1\nprint(x)\n```\n```output\n1\n```\n" + END, True),
        ("```python\nassert 0 < x < 5, 'small'\nprint(x)\n```\n```output\n1\n```\n" + END, True),
        ("```python\nprint(x)\n```\n```output\n1\n```\n" + END, False),
        ("```python\nassert y\nprint(x)\n```\n```output\n1\n```\n" + END, False),
        ("```python\nprint(x)\nassert x == 1\n```\n```output\n1\n```\n" + END, False),
        ("Hm.\n```python\nassert x == 1\n```\n```output\n1\n```\n" + END, False),
        (END, True),
        (
            "```python\nassert x == 1\n7\n```\n```output\n7\n```\n```python\nassert x == 1\n```\n```output\n7\n```\n"
            + END,
            False,
        ),
    ],
)
def test_each_block_asserts_what_it_was_handed(rest: str, whether: bool) -> None:
    assert adheres(NAMED, NAMED_TEXT + rest) is whether


def test_a_block_after_a_failure_has_nothing_to_assert() -> None:
    segments = NAMED.parse("Plan.\n" + BLOCK + "```output\nboom\n```\n" + BLOCK + OUT + END)
    failed = replace(segments[1], block=Block(BlockStatus.ERROR))
    assert isinstance(NAMED, Adheres)
    assert not NAMED.adheres(segments)
    assert NAMED.adheres([segments[0], failed, *segments[2:]])


@pytest.mark.parametrize(
    ("printed", "found"),
    [
        ("x = 1\n", {"x": "1"}),
        ("trace\na = [1, 2]\nb = 'c = d'\n", {"a": "[1, 2]", "b": "'c = d'"}),
        ("x = 1\nlast words\n", {}),
        ("2 = 2", {}),
        ("", {}),
    ],
)
def test_what_an_output_hands_on(printed: str, found: dict[str, str]) -> None:
    assert handed_on(printed) == found


def test_a_teachers_plain_blocks_become_named_ones() -> None:
    assert isinstance(NAMED, Hands)
    plain = ["p = [2, 3]\nprint(len(p))", "q = 5\nprint(q)", "print(2 * 5)"]
    named = NAMED.handed(plain, ["r1 = 2", "q = 5"])
    assert named == [
        'p = [2, 3]\nr1 = len(p)\nprint(f"{r1 = }")',
        'assert r1 == 2\nq = 5\nprint(f"{q = }")',
        'assert q == 5\nr3 = 2 * 5\nprint(f"{r3 = }")',
    ]
    assert NAMED.handed(["x = 1"], []) == ["x = 1"]
    assert [NAMED.values(text) for text in ("r1 = 2", "note\nq = 5", "")] == ["2", "note\n5", ""]


def recorded(name: str, segments: Sequence[Segment]) -> Trajectory:
    return Trajectory(
        address=Address(run=0, stage="t", step=0, problem="p", sample=0), question="?", format=name, prompt="",
        segments=tuple(segments), end=EndReason.FINISHED, answer="1",
    )  # fmt: skip


def test_a_record_is_measured_by_the_shape_its_format_asks_for() -> None:
    text = "Plan.\n" + BLOCK + OUT + note("Odd.") + BLOCK + OUT + END
    segments = [
        replace(segment, block=Block(BlockStatus.OK)) if segment.kind is SegmentKind.CODE else segment
        for segment in NOTED.parse(text)
    ]
    assert keeps_format(recorded("thinc_notes", segments))
    assert not keeps_format(recorded("thinc", segments))
    assert not keeps_format(recorded("thinc_named", segments))


def test_a_records_format_says_what_its_blocks_are_written_in() -> None:
    assert [language_of(name) for name in ("thinc_gp", "thinc", "cot", "no_such_lab.format")] == ["gp", *["python"] * 3]
    assert by_name("no_such_lab.format") is None
    call = GP.scanner().feed("```python\n1\n```\n```gp\nfactor(6)\n```\n")
    assert call is not None
    assert call.code == "factor(6)"
