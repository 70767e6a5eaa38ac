r"""PRIME (Cui et al. 2025, arXiv 2502.01456; Eurus-2-7B-PRIME): text alone, the answer in LaTeX inside `\boxed{…}`.

A baseline that reasons without code. The authors ask for the answer in LaTeX; their longer system prompt, which names actions
(assess, advance, verify, …), was for the SFT stage, and its words are not repeated here.
"""

from __future__ import annotations

from ...settings import settings
from . import Sheet
from ._text import Text

INSTRUCTION = "Present the answer in LaTeX format: \\boxed{answer}."

SHEET = Sheet(
    system="PRIME",
    paper="arXiv 2502.01456",
    repository="github.com/PRIME-RL/PRIME",
    calls=0,
    context_tokens=4_096,
)


@settings
class Settings:
    """What a recipe may set."""

    instruction: str = INSTRUCTION
    """Follows the question in the prompt; empty for the bare question."""


def build(settings: Settings) -> Text:
    """The format."""
    return Text(name="prime", instruction=settings.instruction)
