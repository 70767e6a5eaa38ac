"""A small reward for code that is more than a calculator: what critics of outcome rewards ask for. Off everywhere.

The share of a trajectory's blocks that have all of: they parse; they name a result (an assignment, function or class); they
show something computed (a print, or a last expression, that is no bare literal); they repeat no earlier block. Python only: a
block in another language rarely parses, and earns nothing.
"""

from __future__ import annotations

import ast
from typing import TypeGuard

from ...settings import settings
from ...trajectory.python import tree_of
from .. import Graded


@settings
class Settings:
    """Nothing to set: give it a small weight."""


def reward(settings: Settings, graded: Graded) -> float:
    """A number in [0, 1]; 0 without blocks."""
    seen: set[str] = set()
    good = 0
    blocks = graded.trajectory.blocks
    for segment in blocks:
        shape = _shape(segment.content)
        good += shape is not None and shape not in seen
        seen |= {shape} if shape is not None else set()
    return good / len(blocks) if blocks else 0.0


def _shape(code: str) -> str | None:
    """The block without comments and spacing, if it is well built."""
    tree = tree_of(code)
    if tree is None:
        return None
    named = (
        ast.Assign,
        ast.AnnAssign,
        ast.AugAssign,
        ast.FunctionDef,
        ast.ClassDef,
        ast.For,
        ast.Import,
        ast.ImportFrom,
    )
    return ast.dump(tree) if any(isinstance(node, named) for node in ast.walk(tree)) and _shows(tree) else None


def _shows(tree: ast.Module) -> bool:
    """Whether something computed is printed, or is the block's last expression."""
    shown = [value for node in ast.walk(tree) if _is_print(node) for value in node.args]
    last = tree.body[-1] if tree.body else None
    if isinstance(last, ast.Expr) and not _is_print(last.value):
        shown.append(last.value)
    return any(not isinstance(value, ast.Constant) for value in shown)


def _is_print(node: ast.AST) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
