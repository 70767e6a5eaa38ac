"""How golden files are made and renewed (`make golden`): a module beside this one has `files()`, path here → text."""

from __future__ import annotations

import importlib.util
from pathlib import Path

HERE = Path(__file__).parent


def current(name: str) -> dict[str, str]:
    """What the module `name` beside this file would write now."""
    spec = importlib.util.spec_from_file_location(f"golden_{name}", HERE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    files: dict[str, str] = module.files() if hasattr(module, "files") else {}
    return files


def renew(name: str) -> None:
    """Write what moved."""
    for path, text in current(name).items():
        target = HERE / path
        if not target.exists() or target.read_text(encoding="utf-8") != text:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
