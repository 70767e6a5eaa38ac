"""Why an answer is right or wrong."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from .._verb import Verb

if TYPE_CHECKING:
    from ...grading.answers import Explanation, Reading


def add(parser: argparse.ArgumentParser) -> None:
    """The two texts."""
    parser.add_argument("gold", metavar="GOLD", help="the right answer; before one that begins with a dash write --")
    parser.add_argument("answer", metavar="ANSWER", help="what is to be judged")
    parser.add_argument("--json", action="store_true", help="as JSON")


def run(words: argparse.Namespace) -> int:
    """Print the grade, how both were read, and what was compared."""
    import dataclasses

    from ...grading.answers import Grader

    with Grader() as grader:
        found = grader.explain(words.answer, words.gold)
    if words.json:
        print(json.dumps({**dataclasses.asdict(found), "words": found.words}, ensure_ascii=False))
    else:
        print("\n".join(_lines(found)))
    return 0


def _lines(found: Explanation) -> list[str]:
    return [
        f"{'right' if found.grade.correct else 'wrong'}: {found.grade.reason.value}, {found.words}",
        f"gold    {_read_as(found.gold)}",
        f"answer  {_read_as(found.answer)}",
        *(f"asked math-verify whether {gold} = {answer}: {result}" for gold, answer, result in found.asked),
        f"rules   version {found.normalizer} of thincode.grading.answers",
    ]


def _read_as(reading: Reading) -> str:
    return f"{reading.kind}: {'  |  '.join(reading.parts)}" if reading.parts else reading.kind


VERB = Verb(
    line="say why an answer is right or wrong",
    usage='"GOLD" "ANSWER" [--json]',
    description="Grades one answer as every run does, and says what was read and compared.",
    add=add,
    run=run,
)
