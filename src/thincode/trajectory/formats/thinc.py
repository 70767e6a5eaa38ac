r"""ThinC (Hwang, Lee, Kang 2026, arXiv 2605.07237): one short plan, then code blocks linked only by what was printed.

One turn of the assistant: plan, python fence, output fence, python fence, …, last text with `\boxed{…}`. The paper leaves
the wire format open; fences are the form its relatives (ToRA, CIR, CoRT) share. Text between an output and the next block
is allowed, and counted by `adheres`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...settings import settings
from .. import Segment, SegmentKind
from . import Sheet
from ._fenced import Fenced

INSTRUCTION = (
    "Begin with a short plan: name the strategy, without deriving or calculating anything. Then think in code only: write "
    "```python blocks, each fence alone on its line. A block runs as soon as it is closed, and what it prints follows in an "
    "```output block; later blocks still know the names of earlier ones. Write nothing between an output and the next block. "
    "Take the answer from the last output and give it as \\boxed{answer}."
)

SHEET = Sheet(
    system="ThinC",
    paper="arXiv 2605.07237",
    calls=20,
    context_tokens=32_768,
    unknown="the wire format, the worked examples of its prompt, the interpreter's state and limits",
)


@settings
class Settings:
    """What a recipe may set."""

    instruction: str = INSTRUCTION
    """Follows the question in the prompt; empty for the bare question."""


def build(settings: Settings) -> Fenced:
    """The format."""
    return Fenced(name="thinc", instruction=settings.instruction)


def adheres(segments: Sequence[Segment]) -> bool:
    """Whether a trajectory has the paper's shape: a plan, then blocks with no words between them, then an answer.

    A format's own measure; nothing is rejected or penalized for it.
    """
    spoken = [segment for segment in segments if segment.text.strip()]
    kinds = [segment.kind for segment in spoken]
    return (
        kinds[:2] == [SegmentKind.PLAN, SegmentKind.CODE]
        and kinds[-1] is SegmentKind.ANSWER
        and SegmentKind.THOUGHT not in kinds
    )
