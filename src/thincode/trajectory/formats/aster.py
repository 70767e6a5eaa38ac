r"""ASTER (arXiv 2602.01204; a reproduction: github.com/Rainyrou/ASTER): many short calls, a thought before each.

    <think>
    Count them.
    </think>
    <tool_call>
    {"name": "code_interpreter", "arguments": {"code": "6 * 7"}}
    </tool_call>

Names last through a trajectory and a last expression is shown. Of a turn with several calls the first is run; one whose JSON
can't be read is as if it were not there, so a turn that makes no other call is the last. A program that fails, or runs too long,
is told in a sentence before what it printed; those sentences are the reproduction's, and read, but not written here. Qwen3
with thinking: a thought may stand in each turn, and stays there, as within a loop of tools Qwen3's template leaves it.
"""

from __future__ import annotations

from ...settings import settings
from .. import BlockStatus
from . import Sheet
from ._tool_call import Malformed, ToolCalls, code_tool

INSTRUCTION = "Reason step by step, run code for each step, and put the final answer within \\boxed{}."

SHEET = Sheet(
    system="ASTER",
    paper="arXiv 2602.01204",
    repository="github.com/Rainyrou/ASTER",
    preset="aster",
    calls=256,
    context_tokens=92_160,
    unknown="the authors' own code and prompts; all here is read off the reproduction",
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
        name="aster",
        instruction=settings.instruction,
        tools=(code_tool("code_interpreter", description="Runs Python code; names last from call to call."),),
        malformed=settings.malformed,
        failures=(
            ("Execution timeout", BlockStatus.LIMIT),
            ("Runtime error occurred", BlockStatus.ERROR),
            ("Unknown execution error", BlockStatus.ERROR),
            ("Sandbox API error", BlockStatus.LOST),
            ("Error when executing tool", BlockStatus.ERROR),
        ),
    )
