r"""ReTool, the authors' form (Feng et al. 2025, arXiv 2504.11536; github.com/ReTool-RL/ReTool): code in tags and a fence.

    <code>
    ```python
    print(6 * 7)
    ```
    </code>
    <interpreter>
    42
    </interpreter>

    <answer>
    \boxed{42}
    </answer>

Everything is one turn of the assistant. The authors stop at the text `</code>` wherever it stands, and put it back, as the engine
strips it. Their inference knows no limit of calls, and a turn has 16,384 new tokens. The recipe that others wrote for verl is
another form: `retool_verl`.
"""

from __future__ import annotations

from ...settings import settings
from . import Sheet
from ._tagged import Tagged

INSTRUCTION = (
    "Solve the problem step by step. To run Python, write <code>, a ```python block and </code>, each alone on its "
    "line; it knows no names of earlier ones, and what it prints follows between <interpreter> and </interpreter>. "
    "Give the answer as <answer>\\boxed{answer}</answer>."
)

SHEET = Sheet(
    system="ReTool",
    paper="arXiv 2504.11536",
    repository="github.com/ReTool-RL/ReTool",
    preset="retool",
    turn_tokens=16_384,
)


@settings
class Settings:
    """What a recipe may set."""

    instruction: str = INSTRUCTION
    """Follows the question in the prompt; empty for the bare question."""


def build(settings: Settings) -> Tagged:
    """The format."""
    return Tagged(
        name="retool",
        instruction=settings.instruction,
        code_tag="code",
        output_tag="interpreter",
        before_output="\n",
        after_output="\n\n",
        fenced=True,
        closing="<answer>\n\\boxed{{{}}}\n</answer>",
    )
