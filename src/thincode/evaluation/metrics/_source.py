"""What a block's source says: its numbers and what it does, from one walk over its syntax tree."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

from ...grading.values import shown
from ...trajectory import Segment
from ...trajectory.python import tree_of
from . import _retelling

Key = int | Fraction | str
"""The key of a `grading.values.Value`."""

_SOURCE_CHARS = 50_000
_DIGIT = re.compile(r"[0-9]")
_LEAVES = frozenset(
    {
        *("ctx", "op", "ops", "kind", "type_comment", "id", "attr", "arg", "name", "module", "asname"),
        *("level", "conversion", "is_async", "simple"),
    }
)
"""Fields of nodes that no number and no step stands under."""
_LOOKED_AT = frozenset({ast.Constant, ast.Expr, ast.Assert, ast.Compare, ast.UnaryOp})
_FIELDS: dict[type[ast.AST], tuple[str, ...]] = {}
"""The other fields, for each class of nodes met so far."""


@dataclass(slots=True)
class _Tree:
    """What stands in a syntax tree, each thing once."""

    steps: set[str] = field(default_factory=set)
    numbers: set[Key] = field(default_factory=set)
    """That the program works with: no texts, and not what it only asserts or compares for equality."""
    checked: set[Key] = field(default_factory=set)
    texts: set[str] = field(default_factory=set)


class Block:
    """A code segment, read when first asked for."""

    def __init__(self, segment: Segment, *, is_python: bool = True) -> None:
        """Nothing is parsed yet, and nothing ever where it is in another language."""
        self.segment = segment
        self._is_python = is_python

    @cached_property
    def _tree(self) -> _Tree | None:
        tree = tree_of(self.segment.content[:_SOURCE_CHARS]) if self._is_python else None
        return None if tree is None else _walk(tree)

    @cached_property
    def steps(self) -> frozenset[str] | None:
        """What the block does, in the words of `_retelling`; None where it is no Python."""
        return None if self._tree is None else frozenset(self._tree.steps)

    @cached_property
    def literals(self) -> frozenset[Key]:
        """Values that stand as literals: numbers, negated ones, and numbers inside texts."""
        tree = self._tree or _Tree()
        return frozenset(tree.numbers | tree.checked).union(*map(_in_text, tree.texts))

    @property
    def numbers(self) -> Iterable[Key]:
        """Numbers that the block works with: no texts, and not what it only asserts or compares for equality."""
        return self._tree.numbers if self._tree is not None else ()


def _walk(tree: ast.AST) -> _Tree:
    """Every node once; texts that stand alone (docstrings) do nothing and are left out."""
    found = _Tree()
    checks: list[ast.AST] = []
    _gather([tree], found, found.numbers, checks)
    _gather(checks, found, found.checked, None)
    return found


def _gather(waiting: list[ast.AST], found: _Tree, numbers: set[Key], checks: list[ast.AST] | None) -> None:
    """What stands under the nodes, with `numbers` in a set of their own; checks are put aside where a list is given."""
    while waiting:
        node = waiting.pop()
        kind = type(node)
        if kind in _LOOKED_AT:
            if isinstance(node, ast.Constant):
                if isinstance(node.value, str):
                    found.texts.add(node.value)
                else:
                    numbers.update(_number(node.value))
                continue
            if isinstance(node, ast.Expr) and _is_text(node.value):
                continue
            if checks is not None and isinstance(node, (ast.Assert, ast.Compare)) and _is_check(node):
                checks.append(node)
                continue
            if (
                isinstance(node, ast.UnaryOp)
                and isinstance(node.op, ast.USub)
                and isinstance(node.operand, ast.Constant)
            ):
                numbers.update(-key for key in _number(node.operand.value))
        elif kind in _retelling.TELLING:
            found.steps.update(_retelling.steps_of(node))
        fields = _FIELDS.get(kind)
        if fields is None:
            fields = _FIELDS[kind] = tuple(name for name in node._fields if name not in _LEAVES)
        for name in fields:
            child = getattr(node, name, None)
            if isinstance(child, list):
                waiting += [one for one in child if isinstance(one, ast.AST)]
            elif isinstance(child, ast.AST):
                waiting.append(child)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _is_check(node: ast.Assert | ast.Compare) -> bool:
    return isinstance(node, ast.Assert) or any(isinstance(op, (ast.Eq, ast.NotEq)) for op in node.ops)


def _number(value: object) -> tuple[int | Fraction, ...]:
    """The one a constant is, or none."""
    if isinstance(value, bool):
        return ()
    if isinstance(value, int):
        return (value,)
    if isinstance(value, float) and math.isfinite(value):
        written = Fraction(repr(value))  # as it was written, not what its bits are
        return (written.numerator if written.denominator == 1 else written,)
    return ()


def _in_text(text: str) -> Iterator[Key]:
    return (item.value.key for item in shown(text)) if _DIGIT.search(text) else iter(())
