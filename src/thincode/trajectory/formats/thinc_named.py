"""ThinC with named values: a block ends by printing `name = value` lines, the next one begins by asserting some of them. Ours.

    ```python
    from math import gcd
    g = gcd(84, 36)
    print(f"{g = }")
    ```
    ```output
    g = 12
    ```
    ```python
    assert g == 12

It answers the objection that outputs are the only link between blocks and yet bare numbers, which the next block may misread and
nothing checks: here a number comes with its name, and a block that took it for another fails at once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ...settings import settings
from .. import BlockStatus, Segment, SegmentKind
from . import Sheet
from ._fenced import Fenced

INSTRUCTION = (
    "Begin with a short plan: name the strategy, without deriving or calculating anything. Then think in code only: write "
    "```python blocks, each fence alone on its line. A block runs as soon as it is closed, and what it prints follows in an "
    "```output block; later blocks still know the names of earlier ones. End each block by printing what the next one needs, by "
    'name: print(f"{name = }"). Begin the next block by asserting a value you were handed: assert name == value. Write nothing '
    "between an output and the next block. Take the answer from the last output and give it as \\boxed{answer}."
)

SHEET = Sheet(
    system="ThinC with named values", unknown="it is ours: all but the names and the asserts is as in `thinc`"
)

_NAMED = re.compile(r"([^\W\d]\w*) = (.+)")
_PRINT = re.compile(r"print\((.*)\)")


@settings
class Settings:
    """What a recipe may set."""

    instruction: str = INSTRUCTION
    """Follows the question in the prompt; empty for the bare question."""


def handed_on(printed: str) -> dict[str, str]:
    """The `name = value` lines that an output ends with, by name."""
    found: list[tuple[str, str]] = []
    for line in reversed(printed.strip().splitlines()):
        named = _NAMED.fullmatch(line)
        if named is None:
            break
        found.append((named[1], named[2]))
    return dict(reversed(found))


@dataclass(frozen=True)
class _Named(Fenced):
    def handed(self, blocks: Sequence[str], printed: Sequence[str]) -> list[str]:
        """A teacher's plain blocks with names and asserts; a printed expression is named `r1`, `r2`, … by its block."""
        written = []
        for number, code in enumerate(blocks):
            *lines, last = code.strip("\n").split("\n")
            if shown := _PRINT.fullmatch(last):
                name = shown[1] if shown[1].isidentifier() else f"r{number + 1}"
                lines += [] if name == shown[1] else [f"{name} = {shown[1]}"]
                last = f'print(f"{{{name} = }}")'
            given = handed_on(printed[number - 1]) if 0 < number <= len(printed) else {}
            written.append("\n".join([*(f"assert {name} == {value}" for name, value in given.items()), *lines, last]))
        return written

    def values(self, printed: str) -> str:
        """What the plain block would have printed."""
        return "\n".join(named[2] if (named := _NAMED.fullmatch(line)) else line for line in printed.splitlines())

    def adheres(self, segments: Sequence[Segment]) -> bool:
        """ThinC's shape, where each block that ran well hands on values by name, and the next begins by asserting one of them.

        What the last block prints need not have a name. A block after one that failed has nothing to assert.
        """
        spoken = [segment for segment in segments if segment.text.strip() and segment.kind is not SegmentKind.NOTICE]
        kinds = [segment.kind for segment in spoken]
        if kinds[:2] != [SegmentKind.PLAN, SegmentKind.CODE] or kinds[-1] is not SegmentKind.ANSWER:
            return False
        return SegmentKind.THOUGHT not in kinds and all(
            _asserts(later.content, handed_on(output.content))
            for block, output, later in zip(spoken, spoken[1:], spoken[2:], strict=False)
            if (block.kind, output.kind, later.kind) == (SegmentKind.CODE, SegmentKind.OUTPUT, SegmentKind.CODE)
            and (block.block is None or block.block.status is BlockStatus.OK)
        )


def _asserts(code: str, given: dict[str, str]) -> bool:
    """Whether a block's first line asserts something about a value it was handed."""
    first = code.strip().partition("\n")[0]
    return first.startswith("assert ") and not given.keys().isdisjoint(re.findall(r"\w+", first))


def build(settings: Settings) -> Fenced:
    """The format."""
    return _Named(name="thinc_named", instruction=settings.instruction)
