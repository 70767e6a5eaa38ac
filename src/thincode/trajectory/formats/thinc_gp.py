"""ThinC in PARI/GP: one short plan, then ```gp blocks for gp's prompt. Ours; no published system writes it.

It asks whether thinking in code is about Python: the shape is that of `thinc`, the reasoner is another. Blocks run in
`interpreter.backend: gp`. Each line's value is shown unless `;` ends it, so a block needs no `print`.
"""

from __future__ import annotations

from ...settings import settings
from . import Sheet
from ._fenced import Fenced

INSTRUCTION = (
    "Begin with a short plan: name the strategy, without deriving or calculating anything. Then think in PARI/GP code only: "
    "write ```gp blocks, each fence alone on its line. A block runs as soon as it is closed, line by line as at gp's prompt (put "
    "braces around what takes several lines); the value of each line that does not end in ; follows in an ```output block, and "
    "later blocks still know the names of earlier ones. Write nothing between an output and the next block. Take the answer "
    "from the last output and give it as \\boxed{answer}."
)

SHEET = Sheet(system="ThinC in PARI/GP", unknown="it is ours: all but the language is as in `thinc`")


@settings
class Settings:
    """What a recipe may set."""

    instruction: str = INSTRUCTION
    """Follows the question in the prompt; empty for the bare question."""


def build(settings: Settings) -> Fenced:
    """The format."""
    return Fenced(name="thinc_gp", instruction=settings.instruction, tags=("gp",), language="gp")
