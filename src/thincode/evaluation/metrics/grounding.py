r"""Code-grounded answer rate (ThinC): the answer's value stands among the values some output shows, as the model saw it.

- grounded (G1): in any output. `033`, `+33`, `33.0`, `1,234`, `\frac{1}{2}`, `1/2`, `2**5` and radicals equal their value; a
  number must stand free (7 is not in 17, 0.7 or x7), and a whole line is also read as an answer would be (`90^\circ`,
  `1 \pm \sqrt{19}`). An answer of several parts needs all of them in one output, in any order. A word must stand there as a
  word; longer and symbolic answers as a whole line, cell or right-hand side, spaces and `*` apart.
- last output (G2): in the last output only. computed (G3): as G1, but an output whose block has the value as a literal in
  its own source (numbers and text, by its syntax tree) does not count: `print(70)` is no computation. Of Python only.
- weak: not grounded, but a decimal within 1e-9 of the answer is shown; not part of G1.
- chance: the rate if each trajectory's answer were exchanged for another problem's different one; exact over all such pairs.

All of them over trajectories with an answer, the first also over correct, over wrong, and over all. The traceback of a failed
block is not an output; what it printed before is. Each trajectory costs at most 10,000 characters an output; nothing is evaluated
but the bounded arithmetic of `grading.values`. `details` lists the spans that ground each answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ...grading import Graded
from ...settings import settings
from .. import Estimate
from ..intervals import normal, normal_of_shares
from ..samples import Looks, estimate, share
from ._shown import NOT_PYTHON, Marks, Output, Wanted, chances, in_python, outputs, wanted


@settings
class Settings:
    """What to keep for readers."""

    spans: int = 5
    """Spans stored for one trajectory, at most."""


class Look(NamedTuple):
    """What one trajectory's outputs show, and whether its answer is there."""

    answer: tuple[int, ...]
    """Marks that must be shown together; empty without an answer."""
    shown: tuple[Marks, ...]
    """One for each output."""
    values: int
    """Distinct values in all outputs."""
    grounded: bool
    in_last: bool
    computed: bool
    weak: bool
    is_python: bool
    """Whether the blocks are, so that their literals can be told from what they compute."""
    spans: tuple[Mapping[str, Any], ...]


def look(settings: Settings, graded: Graded) -> Look:
    """What one trajectory shows."""
    said = graded.trajectory.answer
    answer = wanted(said) if said is not None and said.strip() else None
    found = outputs(graded.trajectory)
    hits = [index for index, output in enumerate(found) if answer is not None and output.shows(answer)]
    return Look(
        answer=answer.marks if answer is not None else (),
        shown=tuple(output.marks for output in found),
        values=len(frozenset[Any]().union(*(output.keys for output in found))),
        grounded=bool(hits),
        in_last=bool(hits) and hits[-1] == len(found) - 1,
        computed=answer is not None and any(not found[index].holds_as_literal(answer) for index in hits),
        weak=answer is not None and not hits and any(output.is_near(answer) for output in found),
        is_python=in_python(graded.trajectory),
        spans=tuple(_spans(found, hits, answer)[: settings.spans]) if answer is not None else (),
    )


def _spans(found: Sequence[Output], hits: Sequence[int], answer: Wanted) -> list[Mapping[str, Any]]:
    spans: list[Mapping[str, Any]] = []
    for index in hits:
        block = found[index].block
        ran = block.segment.block if block is not None else None
        status = ran.status.value if ran is not None else ""
        for start, end in found[index].spans(answer):
            spans.append({"output": index, "start": start, "end": end, "status": status})
    return spans


def sum_up(settings: Settings, looks: Looks[Look]) -> list[Estimate]:
    """The rates above, and the mean number of distinct values a trajectory shows."""
    answered = [one for one in looks.seen if one.look.answer]
    n, every = len(answered), looks.looks
    any_output = [(one.row.correct, one.look.grounded) for one in answered]
    correct = [hit for right, hit in any_output if right]
    wrong = [hit for right, hit in any_output if not right]
    readable = [one.look for one in answered if one.look.is_python]
    unread = NOT_PYTHON if answered and not readable else ""
    by_chance = chances([(one.row.problem, one.look.answer, one.look.shown) for one in answered])
    return [
        share("grounded", sum(hit for _, hit in any_output), n, note=looks.note),
        share("grounded/correct", sum(correct), len(correct)),
        share("grounded/wrong", sum(wrong), len(wrong)),
        share(
            "grounded of all",
            sum(one.grounded for one in every),
            len(every),
            note="without an answer counts as not grounded",
        ),
        share("grounded in last output", sum(one.look.in_last for one in answered), n),
        share("grounded by computing", sum(one.computed for one in readable), len(readable), note=unread),
        share("grounded weakly", sum(one.look.weak for one in answered), n, note="not part of `grounded`"),
        estimate(
            "grounded by chance",
            normal_of_shares(by_chance),
            n=len(by_chance),
            note="answers exchanged between problems",
        ),
        estimate("values shown", normal([one.values for one in every]), n=len(every), unit="distinct values"),
    ]


def details(settings: Settings, looks: Looks[Look]) -> Mapping[str, Any]:
    """For each grounded trajectory where its answer stands: output number, span in that output's content, block status."""
    return {
        "grounded": [
            {"problem": row.problem, "sample": row.sample, "spans": list(seen.spans)}
            for row, seen in looks.seen
            if seen.spans
        ]
    }
