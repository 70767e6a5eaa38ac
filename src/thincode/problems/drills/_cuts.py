"""The same program cut into blocks in other ways, so that formats can be compared on the same solutions."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from enum import StrEnum

from .. import Block

Step = tuple[str, str | Block]
"""A sentence that states what the block will print, and the block: its source, or a function of earlier outputs."""

_NAMED_FROM = 10
"""Numbers from here on get a block of their own in a dense program."""


class Cut(StrEnum):
    """How a worked solution is cut into blocks."""

    STEPS = "steps"
    """As the family wrote it: a block a step, later blocks using the names of earlier ones."""
    DENSE = "dense"
    """Many short blocks: every number of two digits or more and every assignment is a block that shows its value."""
    ALONE = "alone"
    """Each block runs by itself: it repeats what earlier blocks set, for interpreters that keep nothing."""


def recut(steps: Sequence[Step], cut: Cut) -> list[Step]:
    """The steps with their blocks cut so; the last one prints the same answer."""
    if cut is Cut.STEPS:
        return list(steps)
    return _dense(steps) if cut is Cut.DENSE else _alone(steps)


def _dense(steps: Sequence[Step]) -> list[Step]:
    made: list[Step] = []
    shown: list[int] = []  # the block that prints what each step's block printed
    for thought, block in steps:
        if callable(block):
            made.append((thought, _reading(block, tuple(shown))))
        else:
            *before, last = _short_blocks(block, first=len(made))
            made += [("", source) for source in before]
            made.append((thought, last))
        shown.append(len(made) - 1)
    return made


def _reading(block: Block, places: tuple[int, ...]) -> Block:
    """A block that reads outputs of other blocks than it was written for."""
    return lambda outputs: block([outputs[place] for place in places if place < len(outputs)])


def _short_blocks(source: str, *, first: int) -> list[str]:
    """One block of several lines as several blocks, each printing what it set."""
    naming = _Naming(first)
    blocks: list[str] = []
    waiting: list[str] = []  # for the next line: it can't be shown, or is about to be
    body = ast.parse(source).body
    for number, line in enumerate(body):
        name = line.targets[0].id if isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name) else ""
        has_name = isinstance(line, ast.Assign) and isinstance(line.value, ast.Constant)
        waiting.append(ast.unparse(line if has_name else naming.visit(line)))
        blocks += naming.take()
        last = number + 1 == len(body)
        if not last and (not name or _is_list(line) or ast.unparse(body[number + 1]) == f"print({name})"):
            continue
        if name:
            waiting.append(f"print({name})")
        blocks.append("\n".join(waiting))
        waiting = []
    return blocks


def _is_list(line: ast.stmt) -> bool:
    """Whether the value is long to show."""
    value = line.value if isinstance(line, ast.Assign) else None
    is_range = isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "range"
    return is_range or isinstance(value, (ast.ListComp, ast.SetComp))


class _Naming(ast.NodeTransformer):
    """Gives every larger number a name, in a block of its own."""

    def __init__(self, first: int) -> None:
        self._next = first
        self._made: list[str] = []

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        if not isinstance(node.value, int) or node.value < _NAMED_FROM:
            return node
        name = f"v{self._next}"
        self._next += 1
        self._made.append(f"{name} = {node.value}\nprint({name})")
        return ast.Name(name, ast.Load())

    def take(self) -> list[str]:
        """The blocks made since the last time."""
        made, self._made = self._made, []
        return made


def _alone(steps: Sequence[Step]) -> list[Step]:
    kept: list[str] = []
    made: list[Step] = []
    for thought, block in steps:
        if callable(block):
            made.append((thought, block))
            continue
        lines = block.split("\n")
        made.append((thought, "\n".join([*kept, *lines])))
        kept += [line for line in lines if not line.startswith("print(")]
    return made
