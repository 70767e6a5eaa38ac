r"""PoT, Program of Thoughts (Chen et al. 2023, arXiv 2211.12588; github.com/wenhuchen/Program-of-Thoughts): `ans` is the answer.

Few-shot, for completion models: behind "# Python code, return ans" stand bare statements, and generation stops at a blank line.
Greedy, 256 new tokens. Nothing is fed back. The preset runs the program and prints `ans`; of a list or dict, as sympy's
`solve` gives them, the first item. The zero-shot variant, which wraps the program in `def solver():`, and the rounding to the
reference's precision are left out.
"""

from __future__ import annotations

from ...settings import settings
from . import Sheet
from ._program import Program

INSTRUCTION = (
    "Solve this with a Python program that leaves the answer in the variable `ans`. Write nothing but the program, and no blank "
    "line in it."
)

SHEET = Sheet(
    system="PoT",
    paper="arXiv 2211.12588",
    repository="github.com/wenhuchen/Program-of-Thoughts",
    preset="pot",
    calls=1,
    turn_tokens=256,
)


@settings
class Settings:
    """What a recipe may set."""

    instruction: str = INSTRUCTION
    """Follows the question in the prompt; empty for the bare question."""


def build(settings: Settings) -> Program:
    """The format."""
    return Program(name="pot", instruction=settings.instruction, result="ans = ")
