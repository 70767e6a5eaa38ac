"""Code of models, read as Python. What Python would warn of in it is the model's matter, and not shown."""

from __future__ import annotations

import ast
import codeop
import warnings

_NO_PYTHON = (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError)


def tree_of(source: str) -> ast.Module | None:
    """The syntax tree; None where `source` is no Python."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(source)
        except _NO_PYTHON:
            return None


def may_become_python(source: str) -> bool:
    """Whether `source` is Python, or would be with more lines behind it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            codeop.compile_command(source, symbol="exec")
        except _NO_PYTHON:
            return False
        return True
