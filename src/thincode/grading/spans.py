"""Lengths and shape of a trajectory, read off its segments: what filters, rewards and metrics share."""

from __future__ import annotations

from dataclasses import dataclass

from ..trajectory import Author, SegmentKind, Trajectory, formats

_WRITTEN = (SegmentKind.PLAN, SegmentKind.THOUGHT, SegmentKind.ANSWER)


@dataclass(frozen=True)
class Share:
    """A share with the unit it was counted in."""

    value: float
    unit: str
    """`tokens`, or `characters` where the record has no ids."""


def plan_share(trajectory: Trajectory) -> Share | None:
    """|t1|/|τ|: what stands before the first code segment over everything after the prompt; None if that is empty.

    Without code all model-written text is the plan, so the share is 1.
    """
    segments = trajectory.segments
    first = next((i for i, segment in enumerate(segments) if segment.kind is SegmentKind.CODE), None)
    if has_spans(trajectory):
        unit, sizes = "tokens", [(s.end or 0) - (s.start or 0) for s in segments]
    else:
        unit, sizes = "characters", [len(s.text) for s in segments]
    total = sum(sizes)
    if not total:
        return None
    return Share(1.0 if first is None else sum(sizes[:first]) / total, unit)


def keeps_format(trajectory: Trajectory) -> bool:
    """ThinC's shape: code ran, a plan stands before the first block only, and no text stands between two blocks.

    Whitespace is no text; notices of the driver are not the model's; the answer after the last output is allowed. An
    answer must have been found. A format with a measure of its own (`formats.Adheres`) is measured by that.
    """
    segments = trajectory.segments
    own: object = formats.by_name(trajectory.format)
    if isinstance(own, formats.Adheres):
        return bool(trajectory.blocks) and trajectory.answer is not None and own.adheres(segments)
    code = [i for i, segment in enumerate(segments) if segment.kind is SegmentKind.CODE]
    if not code or not trajectory.blocks or trajectory.answer is None:
        return False
    before = "".join(segment.text for segment in segments[: code[0]])
    between = [s for s in segments[code[0] : code[-1]] if s.kind in _WRITTEN and s.text.strip()]
    return bool(before.strip()) and not between


@dataclass(frozen=True)
class Length:
    """Tokens after the prompt; characters where the record has neither ids nor spans."""

    generated: int
    """What the model wrote."""
    total: int
    """With outputs and notices."""
    unit: str


def length(trajectory: Trajectory) -> Length:
    """How long a trajectory is."""
    tokens = trajectory.tokens
    if tokens is not None:
        generated = int((tokens.author == Author.MODEL).sum())
        return Length(generated, int((tokens.author != Author.PROMPT).sum()), "tokens")
    inserted = (SegmentKind.OUTPUT, SegmentKind.NOTICE)
    unit = "tokens" if has_spans(trajectory) else "characters"
    sizes = [
        (s.kind in inserted, (s.end or 0) - (s.start or 0) if unit == "tokens" else len(s.text))
        for s in trajectory.segments
    ]
    return Length(sum(n for put_in, n in sizes if not put_in), sum(n for _, n in sizes), unit)


def has_spans(trajectory: Trajectory) -> bool:
    """Whether the segments say where their tokens stand; a record keeps that also where its ids were left out.

    The end of the turn belongs to no segment, so spans count one token less than ids.
    """
    segments = trajectory.segments
    return bool(segments) and all(s.start is not None and s.end is not None for s in segments)
