r"""ReTool as a recipe of verl (arXiv 2504.11536; github.com/verl-project/verl-recipe, `retool`): turns of a tool for code.

The authors' own form, with `<code>` and `<interpreter>` tags in one turn, is another format. Here code is an argument of the
tool `code_interpreter`; a fence around it is taken off, and its last line is printed by the look of the text (interpreter
preset `verl`). Each call runs by itself. Of a turn with several calls the first is run; one whose JSON can't be read is as if
it were not there, so a turn that makes no other call is the last. Of its 16 turns the last makes no call that runs. The recipe's
reward pays wrong answers for calls; a format has no part in that.
"""

from __future__ import annotations

from ...settings import settings
from .. import BlockStatus
from . import Sheet
from ._tool_call import Malformed, ToolCalls, code_tool

INSTRUCTION = (
    "Solve the problem step by step and let the code interpreter calculate; it keeps no names from call to call, and "
    "shows only what is printed. Give the final answer as \\boxed{answer}."
)

SHEET = Sheet(
    system="ReTool (verl)",
    paper="arXiv 2504.11536",
    repository="github.com/verl-project/verl-recipe",
    preset="verl",
    calls=15,
    context_tokens=18_432,
    unknown="whether the published model was made with it",
)


@settings
class Settings:
    """What a recipe may set."""

    instruction: str = INSTRUCTION
    """Follows the question in the prompt; empty for the bare question."""
    malformed: Malformed = Malformed.SKIPPED
    """What becomes of a call whose JSON can't be read."""


def build(settings: Settings) -> ToolCalls:
    """The format."""
    return ToolCalls(
        name="retool_verl",
        instruction=settings.instruction,
        tools=(code_tool("code_interpreter", description="Runs Python code; only what it prints is seen."),),
        malformed=settings.malformed,
        strips_fence=True,
        failures=(("no stdout here", BlockStatus.LIMIT), ("Error when executing tool", BlockStatus.ERROR)),
    )
