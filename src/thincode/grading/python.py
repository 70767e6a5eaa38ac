"""Code of models, read as Python."""

from __future__ import annotations

import ast
import warnings


def tree_of(source: str) -> ast.Module | None:
    """The syntax tree; None where `source` is no Python. What Python would warn of in it is the model's matter, and not shown."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
