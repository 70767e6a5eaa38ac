"""Caps rather than averages: a file ≤ 400 lines, a function ≤ 60, a `run` ≤ 100."""

from __future__ import annotations

import ast
from pathlib import Path

SOURCE = Path(__file__).parents[3] / "src" / "thincode"


def test_files_and_functions_stay_small() -> None:
    too_long = []
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if text.count("\n") > 400:
            too_long.append(f"{path.relative_to(SOURCE)}: {text.count(chr(10))} lines")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > (100 if node.name == "run" else 60):
                    too_long.append(f"{path.relative_to(SOURCE)}:{node.lineno} {node.name}: {lines} lines")
    assert not too_long, "split by idea:\n" + "\n".join(too_long)
