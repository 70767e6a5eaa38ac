"""A problem and its grade beside a stored trajectory: what a run folder needs to be measured again."""

from collections.abc import Mapping
from typing import Any

from ..errors import DataError
from ..problems import Problem
from ..trajectory import Trajectory
from . import Grade, Graded, GradeReason


def annotations(graded: Graded) -> dict[str, Any]:
    """`{"gold": str, "tags": {…}, "grade": {"correct": bool, "reason": str}}`, plain JSON values."""
    return {
        "gold": graded.problem.answer,
        "tags": dict(graded.problem.tags),
        "grade": {"correct": graded.grade.correct, "reason": graded.grade.reason.value},
    }


def graded_from_record(trajectory: Trajectory, annotations: Mapping[str, Any]) -> Graded:
    """The inverse of `annotations`; keys it does not know are left alone.

    Raises:
        DataError: gold or grade is missing or of another shape.
    """
    try:
        grade, gold = annotations["grade"], annotations["gold"]
        tags = {str(key): str(value) for key, value in annotations.get("tags", {}).items()}
        found = Grade(bool(grade["correct"]), GradeReason(grade["reason"]))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        key = "/".join(map(str, trajectory.address.key))
        raise DataError(
            f"record {key}: no usable gold and grade beside the trajectory ({error!r}); grade the run again"
        ) from None
    return Graded(Problem(trajectory.address.problem, trajectory.question, str(gold), tags), trajectory, found)
