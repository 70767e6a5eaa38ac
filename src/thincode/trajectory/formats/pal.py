r"""PAL (Gao et al. 2023, arXiv 2211.10435; github.com/reasoning-machines/pal): one program, whose `solution()` returns the answer.

Few-shot, for completion models: behind "# solution in Python:" stands `def solution():`, and generation stops at three line
breaks. Greedy, 512 new tokens; the value is compared as a float within 1e-3. Nothing is fed back. The preset runs the program and
prints `solution()`; the authors' examples are not repeated here, so the question stands in a chat's prompt with our instruction.
"""

from __future__ import annotations

from ...settings import settings
from . import Sheet
from ._program import Program

INSTRUCTION = (
    "Solve this with one Python function `solution()` that returns the answer. Write nothing but the function."
)

SHEET = Sheet(
    system="PAL",
    paper="arXiv 2211.10435",
    repository="github.com/reasoning-machines/pal",
    preset="pal",
    calls=1,
    turn_tokens=512,
)


@settings
class Settings:
    """What a recipe may set."""

    instruction: str = INSTRUCTION
    """Follows the question in the prompt; empty for the bare question."""


def build(settings: Settings) -> Program:
    """The format."""
    return Program(
        name="pal",
        instruction=settings.instruction,
        blank_lines=2,
        opening="def solution():",
        result="return ",
    )
