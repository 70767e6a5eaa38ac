"""Grade answers against gold answers. `Grader` keeps a killable process for the few that need computer algebra."""

from thincode.grading.answers import Grader

PAIRS = (
    ("033", "33"),
    (r"\frac{1}{2}", "0.5"),
    ("0.33", r"\frac{1}{3}"),  # a third needs six digits
    ("(x+1)^2", "x^2+2x+1"),
    ("3, 4", "4"),  # a question with one value takes one value
    (None, "7"),
)

with Grader() as grader:
    for answer, gold in PAIRS:
        grade = grader.grade(answer, gold)
        print(f"{answer!s:<12} gold {gold:<12} {'right' if grade.correct else 'wrong'}: {grade.reason}")
