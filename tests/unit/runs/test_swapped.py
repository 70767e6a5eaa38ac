"""What the arm with swapped outputs is measured on."""

from __future__ import annotations

from thincode.runs.evaluate import whole_problems
from unit.evaluation.build import row


def test_a_problem_counts_only_with_all_its_samples() -> None:
    rows = [row("a", sample=0), row("b", sample=0), row("a", sample=1), row("c", sample=1)]
    assert [one.problem.id for one in whole_problems(rows, samples=2)] == ["a", "a"]
    assert whole_problems([], samples=2) == []
