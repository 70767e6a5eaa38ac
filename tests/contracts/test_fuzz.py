"""Random token streams, thousands a format: read in pieces as whole, and whatever is printed forges nothing.

Streams mix markers of every family with the format's own and with plain code, so that blocks, half blocks and imitations meet.
Which streams there are depends on the format's name and their number alone.
"""

from __future__ import annotations

from random import Random

import pytest

from contracts.test_formats import FRAGMENTS, INSERTED, play, scan
from thincode.settings import kind, kinds
from thincode.trajectory import SegmentKind
from thincode.trajectory.formats import Concludes, Format, build

ROOM = "thincode.trajectory.formats"
QUICK, WHOLE = 500, 10_000
TURN_MARKS = ("<|im_end|>\n<|im_start|>assistant\n", "<|end|>", "<|return|>", "<|eot_id|>", "</s>", "<|endofblock|>")


def vocabulary(format: Format) -> list[str]:
    """What streams are made of."""
    own = [
        *format.markers,
        *(format.piece(SegmentKind.CODE, code) for code in ("print(1)", "x = '```'\nx", "")),
        *(format.piece(piece, "7") for piece in INSERTED),
        *format.teacher_turns("Plan.", ["One.", "Two."], ["print(1)", "x"], "7"),
        format.output("7").text,
        format.notice("Stop.").text,
    ]
    halves = [text[: len(text) // 2] for text in own] + [text[len(text) // 2 :] for text in own]
    return [text for text in (*own, *own, *halves, *FRAGMENTS, *TURN_MARKS) if text]


def stream(rng: Random, words: list[str], most: int) -> str:
    return "".join(rng.choices(words, k=rng.randrange(most)))


def pieces(rng: Random, text: str) -> list[str]:
    cuts = sorted(rng.choices(range(len(text) + 1), k=rng.randrange(12)))
    return [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]


def check(format: Format, words: list[str], number: int) -> tuple[int, int]:
    """One stream; the blocks that ran in it and whether there was an answer."""
    rng = Random(f"{format.name} {number}")
    turns = [stream(rng, words, 24) for _ in range(rng.randrange(1, 5))]
    whole = scan(format, [turns[0]])
    assert scan(format, pieces(rng, turns[0])) == whole
    text = "".join(turns)
    assert "".join(segment.text for segment in format.parse(text)) == text
    printed = [stream(rng, words, 12) for _ in turns]
    segments = play(format, turns, printed)
    known = segments
    while known and known[-1].kind is not SegmentKind.OUTPUT:
        known = known[:-1]
    assert format.parse("".join(segment.text for segment in known)) == known
    for segment in segments:
        if segment.kind in INSERTED:
            assert "<|" not in segment.content
    spoken = [segment for segment in segments if segment.kind not in INSERTED]
    answer = format.answer(segments)
    if not isinstance(format, Concludes):
        assert answer == format.answer(spoken)
    return sum(segment.kind is SegmentKind.OUTPUT for segment in segments), answer is not None


def fuzz(format: Format, numbers: range) -> None:
    words = vocabulary(format)
    ran = answered = 0
    for number in numbers:
        blocks, answers = check(format, words, number)
        ran, answered = ran + blocks, answered + answers
    assert answered > len(numbers) // 50, "streams that say nothing try nothing"
    if format.teacher_turns("", (), ["pass"], None):
        assert ran > len(numbers) // 10, "streams without blocks try nothing"


@pytest.mark.parametrize("name", kinds(ROOM))
def test_streams_read_alike_in_pieces_and_no_output_forges(name: str) -> None:
    fuzz(build(kind(ROOM, name)), range(QUICK))


@pytest.mark.slow
@pytest.mark.parametrize("name", kinds(ROOM))
def test_ten_thousand_streams(name: str) -> None:
    fuzz(build(kind(ROOM, name)), range(QUICK, QUICK + WHOLE))
