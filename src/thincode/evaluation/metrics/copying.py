"""Whether the first block starts from the problem as it was posed: the numbers it is written with stand in the question.

- inputs copied: every number of the first executed block that is larger than `small` stands in the question.
- inputs copied by chance: the same with the question of another problem (the next one).

Shares are of trajectories whose first executed block has such a number. A first block that brings in a constant of its own (100
for percent, 60 for minutes) counts as not copied, so on word problems the level says less than a difference between two
models does. Small models fail here first: they write 95 for 59. This reads Python: other languages have no figure. Lost
trajectories are left out. The definition is ours.
"""

from __future__ import annotations

from typing import NamedTuple

from ...grading import Graded
from ...settings import settings
from .. import Estimate
from ..samples import Looks, next_of_another_problem, share
from ._shown import NOT_PYTHON, Marks, all_in, given, in_python, mark_of, packed, read, unpacked
from ._source import Block


@settings
class Settings:
    """Where to draw a line."""

    small: int = 9
    """Whole numbers up to this one say nothing: programs have them anyway."""


class Look(NamedTuple):
    """What the first block is written with."""

    has_code: bool
    is_python: bool
    written: Marks
    """Numbers of the first executed block."""
    asked: Marks
    """Numbers of the question."""

    def is_copied_from(self, asked: Marks) -> bool:
        """Whether all the block's numbers are among these."""
        return all_in(asked, sorted(unpacked(self.written)))


def look(settings: Settings, graded: Graded) -> Look:
    """What the first block of one trajectory is written with."""
    said = graded.trajectory
    ran = zip(said.segments, read(said), strict=True)
    first = next((found for segment, found in ran if isinstance(found, Block) and segment.block is not None), None)
    numbers = () if first is None else first.numbers
    written = {mark_of(key) for key in numbers if not isinstance(key, int) or abs(key) > settings.small}
    asked = {mark_of(key) for key in given(said.question)}
    return Look(first is not None, in_python(said), packed(written), packed(asked))


def sum_up(settings: Settings, looks: Looks[Look]) -> list[Estimate]:
    """The share, and its chance level."""
    coded = [one for one in looks.seen if one.look.has_code]
    rows = [one for one in coded if one.look.is_python and one.look.written]
    note = NOT_PYTHON if coded and not any(one.look.is_python for one in coded) else looks.note
    pairs = next_of_another_problem(rows)
    return [
        share("inputs copied", sum(one.look.is_copied_from(one.look.asked) for one in rows), len(rows), note=note),
        share(
            "inputs copied by chance",
            sum(one.look.is_copied_from(other.look.asked) for one, other in pairs),
            len(pairs),
        ),
    ]
