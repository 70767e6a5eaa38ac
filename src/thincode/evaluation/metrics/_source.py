"""What a block's source says: its numbers and what it does, from one walk over its syntax tree."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property

from ...grading.values import shown
from ...trajectory import Segment

Key = Fraction | str
"""The key of a `grading.values.Value`."""

_SOURCE_CHARS = 50_000
_DIGIT = re.compile(r"[0-9]")


class Block:
    """A code segment, read when first asked for."""

    def __init__(self, segment: Segment) -> None:
        """Nothing is parsed yet."""
        self.segment = segment

    @cached_property
    def nodes(self) -> list[tuple[ast.AST, bool]] | None:
        """Every node, and whether it stands inside an assertion or a test for equality; None where it is no Python.

        Texts that stand alone (docstrings) do nothing and are left out.
        """
        try:
            tree = ast.parse(self.segment.content[:_SOURCE_CHARS])
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
        found: list[tuple[ast.AST, bool]] = []
        waiting: list[tuple[ast.AST, bool]] = [(tree, False)]
        while waiting:
            node, checked = waiting.pop()
            if (
                isinstance(node, ast.Expr)
                and isinstance(node.value, ast.Constant)
                and isinstance(node.value.value, str)
            ):
                continue
            checked = checked or _is_check(node)
            found.append((node, checked))
            waiting += [(child, checked) for child in ast.iter_child_nodes(node)]
        return found

    @cached_property
    def literals(self) -> frozenset[Key]:
        """Values that stand as literals: numbers, negated ones, and numbers inside texts."""
        return frozenset(key for node, _ in self.nodes or () for key in _values(node))

    @cached_property
    def numbers(self) -> frozenset[Key]:
        """Numbers that the block works with: no texts, and not what it only asserts or compares for equality."""
        return frozenset(
            key
            for node, checked in self.nodes or ()
            if not checked and not (isinstance(node, ast.Constant) and isinstance(node.value, str))
            for key in _values(node)
        )


def _is_check(node: ast.AST) -> bool:
    if isinstance(node, ast.Compare):
        return any(isinstance(op, (ast.Eq, ast.NotEq)) for op in node.ops)
    return isinstance(node, ast.Assert)


def _values(node: ast.AST) -> Iterator[Key]:
    if isinstance(node, ast.Constant):
        yield from _constant(node.value)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        yield from (-key for key in _constant(node.operand.value) if isinstance(key, Fraction))


def _constant(value: object) -> Iterator[Key]:
    if isinstance(value, bool):
        return
    if isinstance(value, int):
        yield Fraction(value)
    elif isinstance(value, float):
        yield from (item.value.key for item in shown(repr(value)))
    elif isinstance(value, str) and _DIGIT.search(value):
        yield from (item.value.key for item in shown(value))
