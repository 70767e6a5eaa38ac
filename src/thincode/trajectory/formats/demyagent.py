r"""DemyAgent (arXiv 2510.11701; github.com/Gen-Verse/Open-AgentRL): few calls, after a strategy.

The wire format of `retool_verl`, as both are built on verl's tool loop: a fence around the code is taken off and its last line
printed by the look of the text (interpreter preset `demyagent`: `verl` with 2048 MB). What differs: the prompt asks for the
strategy first, then for calls, and for an answer in a turn without one. Of its 16 turns too the last makes no call that runs.
"""

from __future__ import annotations

from ...settings import settings
from .. import BlockStatus
from . import Sheet
from ._tool_call import Malformed, ToolCalls, code_tool

INSTRUCTION = (
    "Solve the problem step by step: outline your strategy first, then use the tool, which keeps no names from call "
    "to call, to calculate and to check. When you are sure of the answer, call no tool and give it as \\boxed{answer}."
)

SHEET = Sheet(
    system="DemyAgent",
    paper="arXiv 2510.11701",
    repository="github.com/Gen-Verse/Open-AgentRL",
    preset="demyagent",
    calls=15,
    context_tokens=23_040,
    unknown="the cut of outputs in evaluation; verl's default is taken",
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
        name="demyagent",
        instruction=settings.instruction,
        tools=(code_tool("code_interpreter", description="Runs Python code; only what it prints is seen."),),
        malformed=settings.malformed,
        strips_fence=True,
        failures=(("no stdout here", BlockStatus.LIMIT), ("Error when executing tool", BlockStatus.ERROR)),
    )
