"""Renews the golden files: `python tests/golden/renew.py` (or `make golden`); the commit says why they moved.

Every module beside this one that has `files()` (path under this folder → text) is a golden with its own way to be made.
"""

from __future__ import annotations

import importlib.util
import sys
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


def main() -> None:
    sys.path.insert(0, str(HERE.parents[1] / "src"))
    for source in sorted(HERE.glob("*.py")):
        if source.stem == "renew" or source.stem.startswith("test_"):
            continue
        for name, text in current(source.stem).items():
            path = HERE / name
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
                print(f"renewed {path.relative_to(HERE)}")


if __name__ == "__main__":
    main()
