r"""rStar2-Agent (arXiv 2508.20722; github.com/microsoft/rStar): reasoning in `<reason>`, calls, the answer in `<answer>`.

    Tool call success
    stdout: 42
    execution time: 0.02s

An output says whether the call went well, and why not (`reason:`, `stderr:`), and how long it took; in the deterministic
schedule that is 0.00s. The authors leave out the line of what printed nothing; ours says "(no output)". A call whose JSON can't
be read is answered with what the parser says. The tool `jupyter_code` replays all earlier cells silently (interpreter preset
`rstar2`); the shipped scripts offer `python_code_with_standard_io`, which keeps nothing (preset `rstar2_standard_io`, taken
where that tool is set) and takes an input, put before the program here, behind its imports from `__future__`. Both are
understood, one is offered. The template of the shipped scripts opens `<reason>` for the model; a model folder's template does
that or does not. An example in the repository runs all calls of a turn; its training runs the first, and so does this.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from ...settings import settings
from .. import Block, BlockStatus, Segment
from ..python import tree_of
from . import Insertion, Sheet
from ._tool_call import Malformed, ToolCalls, code_tool

INSTRUCTION = "Put the answer between <answer> and </answer>, as \\boxed{answer}."

SHEET = Sheet(
    system="rStar2-Agent",
    paper="arXiv 2508.20722",
    repository="github.com/microsoft/rStar",
    preset="rstar2",
    calls=4,
    context_tokens=32_768,
    unknown="which of the two tools the published model was measured with",
)

JUPYTER, STANDARD_IO = "jupyter_code", "python_code_with_standard_io"

_TOOLS = {
    JUPYTER: code_tool(JUPYTER, description="Runs a cell of Python; names last from cell to cell."),
    STANDARD_IO: code_tool(
        STANDARD_IO,
        description="Runs a Python program by itself and returns what it prints.",
        more={"input": "What the program reads from standard input."},
    ),
}
_HEAD = re.compile(r"Tool call (success|failure\nreason: [^\n]*)(?:\n(?:stdout|stderr): |(?=\nexecution time: ))")
_LIMIT = re.compile(r"time|memory|processes|died|limit|.*(?:time[ _]?out|timed out|limit exceeded).*", re.IGNORECASE)
"""Reasons of the authors, and details and statuses of ours, that mean: stopped."""
_TAIL = re.compile(r"\nexecution time: \d+\.\d\ds")


@settings
class Settings:
    """What a recipe may set."""

    instruction: str = INSTRUCTION
    """Follows the question in the prompt; empty for the bare question."""
    malformed: Malformed = Malformed.ANSWERED
    """What becomes of a call whose JSON can't be read."""
    tool: Literal["jupyter_code", "python_code_with_standard_io"] = "jupyter_code"
    """The one that is offered."""


@dataclass(frozen=True)
class _RStar2(ToolCalls):
    def output(self, printed: str) -> Insertion:
        return self.report(printed, Block(BlockStatus.OK))

    def report(self, printed: str, block: Block) -> Insertion:
        time = f"\nexecution time: {block.wall_s:.2f}s"
        if block.status is BlockStatus.OK:
            return self._turn("Tool call success\nstdout: ", printed, time)
        reason = block.detail if block.detail.isidentifier() else str(block.status)
        return self._turn(f"Tool call failure\nreason: {reason}\nstderr: ", printed, time)

    def reported(self, segment: Segment) -> Block | None:
        head = self.head.search(segment.text)
        if head is None:
            return super().reported(segment)
        failed, _, reason = head[1].partition("\nreason: ")
        if failed == "success":
            return Block(BlockStatus.OK)
        return Block(BlockStatus.LIMIT if _LIMIT.fullmatch(reason) else BlockStatus.ERROR, detail=reason)

    def program(self, arguments: Mapping[str, Any]) -> str:
        code, given = str(arguments["code"]), arguments.get("input")
        if not given or not isinstance(given, str):
            return code
        lines = code.split("\n")
        lines.insert(_first_line(code), f"import io, sys; sys.stdin = io.StringIO({given!r})")
        return "\n".join(lines)

    def arguments(self, code: str) -> dict[str, str]:
        return {"code": code} if self.called == JUPYTER else {"code": code, "input": ""}


def _first_line(code: str) -> int:
    """Lines that must come first in a program: to the end of its imports from `__future__`."""
    tree = tree_of(code)
    body = [] if tree is None else tree.body
    ends = [node.end_lineno or 0 for node in body if isinstance(node, ast.ImportFrom) and node.module == "__future__"]
    return max(ends, default=0)


def sheet_of(settings: Settings) -> Sheet:
    """`SHEET`, with the interpreter of the tool that is offered."""
    return SHEET if settings.tool == JUPYTER else replace(SHEET, preset="rstar2_standard_io")


def build(settings: Settings) -> ToolCalls:
    """The format."""
    return _RStar2(
        name="rstar2",
        instruction=settings.instruction,
        tools=(_TOOLS[settings.tool],),
        known=tuple(_TOOLS),
        malformed=settings.malformed,
        failures=(("Error when executing tool", BlockStatus.ERROR),),
        head=_HEAD,
        tail=_TAIL,
        closing="<answer>\n\\boxed{{{}}}\n</answer>",
    )
