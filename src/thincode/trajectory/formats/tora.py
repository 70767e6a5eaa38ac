r"""ToRA (Gou et al. 2024, arXiv 2309.17452; github.com/microsoft/ToRA): rationale and program in turn, one turn of the assistant.

`r1 a1 u1 r2 …` in the paper: rationale, ```python program, ```output of it. The published runs often begin with the program and
say the answer in one closing sentence with `\boxed{…}`. What the authors show is the last line that a program printed, or the
exception's last line alone, either cut to 50 + 50 characters. The preset `qwen_tir` is Qwen2.5-Math's, with the same wire format:
all that was printed, in 200 + 200 characters.

What differs: the authors don't run a program whose turn holds "boxed", and end there; here it runs. Behind the output of the last
call they write "Reach max function call limit." and ask no more; here the model is told when it asks for another. A program that
prints nothing is told as an IndexError, as theirs (it has no last line), but counts as one that ran. The instruction is ours.
"""

from __future__ import annotations

from ...settings import settings
from . import Sheet
from ._fenced import Fenced

INSTRUCTION = (
    "Solve the problem with natural language and ```python programs in turn, each fence alone on its line. A program "
    "knows no names of earlier ones, and what it prints last follows in an ```output block. Conclude from it and give"
    " the answer as \\boxed{answer}."
)

SHEET = Sheet(
    system="ToRA",
    paper="arXiv 2309.17452",
    repository="github.com/microsoft/ToRA",
    preset="tora",
    calls=4,
    turn_tokens=1_024,
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
