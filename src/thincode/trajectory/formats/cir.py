r"""CIR (2025, arXiv 2505.24480; github.com/RUCAIBox/CIR): an overview, then text and ```python blocks where code is useful.

Outputs follow in ```output fences, in the assistant's own turn. The authors set no stop string: the model runs to the end of its
turn or of its tokens, then the text is cut right behind the first complete, non-empty ```python fence and submitted again; so
what stands behind a block was never sampled, as here, where generation stops at the block. Their pattern takes any three
backticks for a closer, also inside a string of the program; ours wants them alone on a line. N blocks run in training
(2, 3, then 4), five in evaluation; after the last the generation is kept whole, while here the model is told. A variant of the
prompt with `<think>` and `<answer>` tags is left out, and so are the exact words of the prompt.
"""

from __future__ import annotations

from ...settings import settings
from . import Sheet
from ._fenced import Fenced

INSTRUCTION = (
    "First outline how to solve the problem, then reason step by step. Where code helps, write a complete ```python block, each "
    "fence alone on its line; it runs by itself, knowing no names of earlier blocks, and what it prints follows in an ```output "
    "block. Give the answer as \\boxed{answer}."
)

SHEET = Sheet(
    system="CIR",
    paper="arXiv 2505.24480",
    repository="github.com/RUCAIBox/CIR",
    preset="cir",
    calls=5,
    turn_tokens=16_384,
)


@settings
class Settings:
    """What a recipe may set."""

    instruction: str = INSTRUCTION
    """Follows the question in the prompt; empty for the bare question."""


def build(settings: Settings) -> Fenced:
    """The format."""
    return Fenced(name="cir", instruction=settings.instruction, thoughts=True)
