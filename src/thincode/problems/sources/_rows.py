"""How rows of outside data are read: nested fields, answers as text."""

from __future__ import annotations

import math
import re
from typing import Any


def field_at(row: Any, path: str) -> Any:
    """The value at a path such as `reward_model.ground_truth` or `prompt.0.content`; None where there is none.

    A key that holds the whole path, dots included, comes first.
    """
    if isinstance(row, dict) and path in row:
        return row[path]
    for part in path.split("."):
        if isinstance(row, dict):
            row = row.get(part)
        elif isinstance(row, (list, tuple)) and part.isdigit() and int(part) < len(row):
            row = row[int(part)]
        else:
            return None
    return row


def answer_text(value: Any) -> str | None:
    """A gold answer as text: 27.0 is "27", 0.5 is "0.5"; None for what is no answer (null, NaN, lists, empty text)."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        return str(int(value)) if value.is_integer() else repr(value)
    if isinstance(value, (int, str)):
        return str(value).strip() or None
    return None


def is_positive_integer(answer: str) -> bool:
    """Whether an answer is a positive integer written in digits; thousands may be parted by commas."""
    return re.fullmatch(r"\+?\d{1,3}(,\d{3})+|\+?\d+", answer) is not None and int(answer.replace(",", "")) > 0
