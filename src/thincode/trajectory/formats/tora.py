r"""ToRA (Gou et al. 2024, arXiv 2309.17452; github.com/microsoft/ToRA): rationale and program in turn, one turn of the assistant.

`r1 a1 u1 r2 …` in the paper: rationale, ```python program, ```output of it. The published runs often begin with the program and
say the answer in one closing sentence with `\boxed{…}`. What the authors show after a failed program is the exception's last
line alone. The instruction here is ours.
"""

from __future__ import annotations

from ...settings import settings
from . import Sheet
from ._fenced import Fenced

INSTRUCTION = (
    "Solve the problem with natural language and ```python programs in turn, each fence alone on its line. What a program "
    "prints follows in an ```output block. Conclude from it and give the answer as \\boxed{answer}."
)

SHEET = Sheet(
    system="ToRA",
    paper="arXiv 2309.17452",
    repository="github.com/microsoft/ToRA",
    preset="tora",
    calls=4,
    unknown="the prompt of the training data",
)


@settings
class Settings:
    """What a recipe may set."""

    instruction: str = INSTRUCTION
    """Follows the question in the prompt; empty for the bare question."""


def build(settings: Settings) -> Fenced:
    """The format."""
    return Fenced(name="tora", instruction=settings.instruction, thoughts=True)
