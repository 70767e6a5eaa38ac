"""JSONL files of strangers: one object a line, and a message that names the line that is none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .errors import DataError


def read(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line number and object of each line; blank lines are passed over.

    Raises:
        DataError: a line is no JSON object (file and line named).
    """
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line.decode("utf-8-sig" if number == 1 else "utf-8"))
            except ValueError as error:
                shown = line[:80].decode("utf-8", "replace").strip()
                raise DataError(
                    f"{path}:{number}: not JSON ({error}): {shown!r}; each line must be one JSON object in UTF-8"
                ) from None
            if not isinstance(row, dict):
                raise DataError(f"{path}:{number}: found {str(row)[:80]!r}; each line must be one JSON object")
            yield number, row
