r"""ToRL (Li et al. 2025, arXiv 2503.23383; github.com/GAIR-NLP/ToRL): RL from a base model, text and ```python blocks in turn.

Outputs follow in ```output fences, in the assistant's own turn. The authors stop at the text "```output", which the model writes
itself, and run the last complete program before it; here a block runs at its closer, and the opener is never the model's. In
their training the closing fence of an output is masked and its opener is not; here both are the driver's. C calls run (1 unless
set otherwise, also in evaluation), and beyond that a request for another is ignored and the model goes on in text; here it is
told so, and one block more ends the trajectory. An empty output is told as a time-out: the preset does that too.
"""

from __future__ import annotations

from ...settings import settings
from . import Sheet
from ._fenced import Fenced

INSTRUCTION = (
    "Reason step by step in words and ```python programs, each fence alone on its line. A program knows no names of "
    "earlier ones, and what it prints follows in an ```output block. Conclude with the answer as \\boxed{answer}."
)

SHEET = Sheet(
    system="ToRL",
    paper="arXiv 2503.23383",
    repository="github.com/GAIR-NLP/ToRL",
    preset="torl",
    calls=1,
    context_tokens=3_472,
)


@settings
class Settings:
    """What a recipe may set."""

    instruction: str = INSTRUCTION
    """Follows the question in the prompt; empty for the bare question."""


def build(settings: Settings) -> Fenced:
    """The format."""
    return Fenced(name="torl", instruction=settings.instruction, thoughts=True)
