r"""Code-grounded answer rate (ThinC): the answer's value stands among the values some output shows, as the model saw it.

- grounded (G1): in any output. `033`, `+33`, `33.0`, `1,234`, `\frac{1}{2}`, `1/2`, `2**5` and radicals equal their value; a
  number must stand free (7 is not in 17, 0.7 or x7). An answer of several parts needs all of them in one output, in any order.
  An answer in words must stand there as words, a symbolic one as a whole line, cell or right-hand side, spaces and `*` apart.
- last output (G2): in the last output only. computed (G3): as G1, but an output whose block has the value as a literal in
  its own source (numbers and text, by its syntax tree) does not count: `print(70)` is no computation.
- weak: not grounded, but a decimal within 1e-9 of the answer is shown; not part of G1.
- chance: the rate if each trajectory's answer were exchanged for another problem's different one; exact over all such pairs.

All of them over trajectories with an answer, the first also over correct, over wrong, and over all. The traceback of a failed
block is not an output; what it printed before is. Each trajectory costs at most 10,000 characters an output; nothing is evaluated
but the bounded arithmetic of `grading.values`. `details` lists the spans that ground each answer.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from ...grading import Graded, forms
from ...grading.answers import numbers
from ...grading.values import SCAN_CHARS, Shown, shown
from ...settings import settings
from ...trajectory import BlockStatus, Segment, SegmentKind
from .. import Estimate
from ..intervals import normal
from ..samples import estimate, finished, lost_note, share

Key = Fraction | str
_SOURCE_CHARS = 50_000
_TRACEBACK = re.compile(r'^(?:Traceback \(most recent call last\):|[ \t]*File ")', re.MULTILINE)


@settings
class Settings:
    """What to keep for readers."""

    spans: int = 5
    """Spans stored for one trajectory, at most."""


def measure(settings: Settings, rows: Sequence[Graded]) -> list[Estimate]:
    """The rates above, and the mean number of distinct values a trajectory shows."""
    kept, note = finished(rows), lost_note(rows)
    seen = [_Seen(row) for row in kept]
    answered = [one for one in seen if one.answer is not None]
    n = len(answered)
    any_output = [bool(one.grounding_outputs) for one in answered]
    correct = [hit for one, hit in zip(answered, any_output, strict=True) if one.row.grade.correct]
    wrong = [hit for one, hit in zip(answered, any_output, strict=True) if not one.row.grade.correct]
    chances = _chances(answered)
    return [
        share("grounded", sum(any_output), n, note=note),
        share("grounded/correct", sum(correct), len(correct)),
        share("grounded/wrong", sum(wrong), len(wrong)),
        share("grounded of all", sum(any_output), len(seen), note="without an answer counts as not grounded"),
        share("grounded in last output", sum(one.in_last_output for one in answered), n),
        share("grounded by computing", sum(one.is_computed for one in answered), n),
        share("grounded weakly", sum(one.is_weak for one in answered), n, note="not part of `grounded`"),
        estimate("grounded by chance", normal(chances), n=len(chances), note="answers exchanged between problems"),
        estimate("values shown", normal([len(one.keys) for one in seen]), n=len(seen), unit="distinct values"),
    ]


def details(settings: Settings, rows: Sequence[Graded]) -> Mapping[str, Any]:
    """For each grounded trajectory where its answer stands: output number, span in that output's content, block status."""
    found = []
    for row in finished(rows):
        spans = list(_Seen(row).spans())[: settings.spans]
        if spans:
            address = row.trajectory.address
            found.append({"problem": row.problem.id, "sample": address.sample, "spans": spans})
    return {"grounded": found}


def _chances(answered: Sequence[_Seen]) -> list[float]:
    """For each trajectory the share of other problems' different answers that it would ground."""
    total = Counter(one.identity for one in answered)
    own: dict[str, Counter[tuple[Key, ...]]] = {}
    for one in answered:
        own.setdefault(one.row.problem.id, Counter())[one.identity] += 1
    example = {one.identity: one for one in answered}
    composite = [identity for identity, one in example.items() if len(one.parts) != 1]
    chances = []
    for one in answered:
        mine = own[one.row.problem.id]
        others = total.total() - mine.total() - (total[one.identity] - mine[one.identity])
        if others <= 0:
            continue
        hits = 0
        # A single number is looked up; the few other answers are tried one by one.
        for identity in [*((key,) for key in one.keys), *composite]:
            count = total[identity] - mine[identity]
            if (
                count
                and identity != one.identity
                and (len(example[identity].parts) == 1 or one.grounds(example[identity]))
            ):
                hits += count
        chances.append(hits / others)
    return chances


@dataclass(frozen=True)
class _Output:
    segment: Segment
    code: Segment | None
    text: str
    """Without the traceback of a failed block."""

    @cached_property
    def values(self) -> list[Shown]:
        return list(shown(self.text))

    @cached_property
    def keys(self) -> frozenset[Key]:
        return frozenset(item.value.key for item in self.values)

    @cached_property
    def literals(self) -> frozenset[Key]:
        return frozenset(_literals(self.code.content)) if self.code else frozenset()


class _Seen:
    """One trajectory's answer and outputs."""

    def __init__(self, row: Graded) -> None:
        self.row = row
        self.answer = row.trajectory.answer if (row.trajectory.answer or "").strip() else None
        self.outputs = list(_outputs(row.trajectory.segments))

    @cached_property
    def parts(self) -> tuple[Key, ...]:
        """Values of the answer's parts; empty if it is not made of numbers."""
        return tuple(value.key for value in numbers(self.answer or "") or ())

    @cached_property
    def identity(self) -> tuple[Key, ...]:
        """Equal for answers that ground alike."""
        return self.parts if len(self.parts) == 1 else tuple(sorted(map(str, self.parts))) or ("text", self.plain)

    @cached_property
    def plain(self) -> str:
        return forms.undress((self.answer or "")[: forms.LIMIT_CHARS])

    @cached_property
    def keys(self) -> frozenset[Key]:
        return frozenset[Key]().union(*(output.keys for output in self.outputs))

    @cached_property
    def grounding_outputs(self) -> list[int]:
        return [i for i, output in enumerate(self.outputs) if _shows(output, self)]

    def grounds(self, other: _Seen) -> bool:
        return any(_shows(output, other) for output in self.outputs)

    @property
    def in_last_output(self) -> bool:
        return bool(self.outputs) and len(self.outputs) - 1 in self.grounding_outputs

    @property
    def is_computed(self) -> bool:
        found = [self.outputs[i] for i in self.grounding_outputs]
        return any(not (self.parts and set(self.parts) <= output.literals) for output in found)

    @cached_property
    def is_weak(self) -> bool:
        if self.grounding_outputs or not self.parts:
            return False
        return any(all(_is_near(part, output) for part in self.parts) for output in self.outputs)

    def spans(self) -> Iterator[dict[str, Any]]:
        for index in self.grounding_outputs:
            output = self.outputs[index]
            status = output.code.block.status.value if output.code and output.code.block else ""
            places = [(item.start, item.end) for item in output.values if item.value.key in self.parts]
            for start, end in places or [(0, len(output.text))]:
                yield {"output": index, "start": start, "end": end, "status": status}


def _outputs(segments: Sequence[Segment]) -> Iterator[_Output]:
    code: Segment | None = None
    for segment in segments:
        if segment.kind is SegmentKind.CODE:
            code = segment
        elif segment.kind is SegmentKind.OUTPUT:
            yield _Output(segment, code, _printed(segment, code))
            code = None


def _printed(segment: Segment, code: Segment | None) -> str:
    text = segment.content[:SCAN_CHARS]
    if code is None or code.block is None or code.block.status is not BlockStatus.ERROR:
        return text
    found = _TRACEBACK.search(text)
    if found:
        return text[: found.start()]
    start = text.rfind(f"\n{code.block.detail}") if code.block.detail else -1
    if start < 0 and code.block.detail and text.startswith(code.block.detail):
        return ""
    return text if start < 0 else text[:start]


def _shows(output: _Output, answer: _Seen) -> bool:
    if answer.parts:
        return set(answer.parts) <= output.keys
    if not answer.plain:
        return False
    said = forms.words(answer.plain)
    if said is not None:
        return re.search(rf"(?<!\w){re.escape(said)}(?!\w)", " ".join(output.text.casefold().split())) is not None
    wanted = _letters(answer.plain)
    return bool(wanted) and any(_letters(item) == wanted for item in re.split(r"[\n=:;]", output.text))


def _letters(text: str) -> str:
    return re.sub(r"[*{}\\]", "", forms.squeezed(text))


def _is_near(part: Key, output: _Output) -> bool:
    wanted = Fraction(part)
    decimals = [item.value for item in output.values if item.value.decimal is not None or isinstance(part, Fraction)]
    return any(abs(value.rational - wanted) * 10**9 <= abs(wanted) for value in decimals)


def _literals(source: str) -> Iterator[Key]:
    """Values that stand as literals in a block: its numbers, negated ones, and numbers inside its strings."""
    try:
        tree = ast.parse(source[:_SOURCE_CHARS])
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.UnaryOp)
                and isinstance(node.op, ast.USub)
                and isinstance(node.operand, ast.Constant)
            ):
                yield from (-key for key in _constant(node.operand.value) if isinstance(key, Fraction))
            elif isinstance(node, ast.Constant):
                yield from _constant(node.value)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return


def _constant(value: object) -> Iterator[Key]:
    if isinstance(value, bool):
        return
    if isinstance(value, int):
        yield Fraction(value)
    elif isinstance(value, float):
        yield from (item.value.key for item in shown(repr(value)))
    elif isinstance(value, str):
        yield from (item.value.key for item in shown(value))
