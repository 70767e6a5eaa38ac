r"""Interleaved tool-integrated reasoning: a thought before every code block. ThinC's rival, in the same fences.

q, t1, c1, o1, t2, c2, o2, …, tN, cN, oN, a in one turn of the assistant. The first thought stands where ThinC has its
plan, and is a `plan` segment too.
"""

from __future__ import annotations

from ...settings import settings
from . import Sheet
from ._fenced import Fenced

INSTRUCTION = (
    "Reason step by step, and use code where it helps: before each ```python block say what the step is and what you expect; "
    "each fence stands alone on its line. A block runs as soon as it is closed, and what it prints follows in an ```output "
    "block; later blocks still know the names of earlier ones. Give the answer as \\boxed{answer}."
)

SHEET = Sheet(system="Interleaved TIR", unknown="it is no one system: fences, prompt and limits are those of `thinc`")


@settings
class Settings:
    """What a recipe may set."""

    instruction: str = INSTRUCTION
    """Follows the question in the prompt; empty for the bare question."""


def build(settings: Settings) -> Fenced:
    """The format."""
    return Fenced(name="tir", instruction=settings.instruction, thoughts=True)
