"""A grade is stored beside its trajectory and comes back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from thincode.errors import DataError
from thincode.grading.records import annotations, graded_from_record
from unit.evaluation.build import row


def test_graded_comes_back_from_its_record() -> None:
    graded = row("p7", "plan | 1 -> 1 | 1", correct=True, gold="033", answer="33", tags={"family": "gcd"})
    stored = json.loads(json.dumps(annotations(graded)))
    assert stored == {"gold": "033", "tags": {"family": "gcd"}, "grade": {"correct": True, "reason": "equal_value"}}
    assert graded_from_record(graded.trajectory, {**stored, "verdict": "kept"}) == graded


@pytest.mark.parametrize(
    "stored",
    [
        *({}, {"gold": "1"}, {"gold": "1", "grade": None}, {"gold": "1", "grade": {"correct": True, "reason": "magic"}}),
        {"grade": {"correct": True, "reason": "different"}},
        {"gold": "1", "tags": 3, "grade": {"correct": True, "reason": "different"}},
    ],
)  # fmt: skip
def test_a_record_without_a_grade_says_which_one_it_is(stored: dict[str, Any]) -> None:
    with pytest.raises(DataError, match="evaluate/0/p7/0"):
        graded_from_record(row("p7").trajectory, stored)
