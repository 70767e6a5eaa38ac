r"""Decide whether an answer is right. Never hangs, never raises for anything an answer holds.

Integers first, by exact comparison after one versioned normalizer (`NORMALIZER`): `033`, `+33`, `33.0`, `1,234`,
`\text{33}`, `33^\circ`, `$33$`, `33.`, `33\%` and `33 cm` are read as integers. Then the answer is split into its parts (several
values, tuple, interval, union, matrix) and each part is compared: numbers exactly (`values`), words by letters, and what is
left (polynomials, equations, complex numbers) by math-verify in a process that is killed at its CPU limit.

Rules where graders differ:
- A question with one value takes one value: several are wrong (`several_values`). Every part of a gold answer is needed, once.
- Order counts in tuples, intervals and matrices, not in lists and sets. Brackets of intervals count.
- A decimal equals a value it does not write out exactly only if it has six significant digits or more, and the value
  rounded to its places is the decimal: `0.333333` is a third, `0.33` is not.
- Units, degree signs and currency signs are taken off. `50\%` equals 50 and one half.
- `x=5` equals 5; of a chain `2+3=5` the last part counts. `y=2x+3` is an equation and compared as one.
- `52_8` equals only `52_8`: a base is part of the answer.
"""

from __future__ import annotations

import atexit
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from . import Grade, GradeReason, forms, values
from ._pool import Comparison, Pool

NORMALIZER = forms.NORMALIZER
LIMIT_CHARS = forms.LIMIT_CHARS
_SYMBOLIC_CHARS = 400
_SYMBOLIC_DEPTH = 20
_PARTS = 64
_LEAST_S = 0.005
"""CPU seconds below which no comparison is begun."""

_EQUAL_INTEGER = Grade(True, GradeReason.EQUAL_INTEGER)
_EQUAL_VALUE = Grade(True, GradeReason.EQUAL_VALUE)
_DIFFERENT = Grade(False, GradeReason.DIFFERENT)
_NO_ANSWER = Grade(False, GradeReason.NO_ANSWER)
_SEVERAL = Grade(False, GradeReason.SEVERAL_VALUES)
_UNPARSABLE = Grade(False, GradeReason.UNPARSABLE)
_TIME_LIMIT = Grade(False, GradeReason.TIME_LIMIT)
_PLAIN_INTEGER = re.compile(r"[-+]?[0-9]{1,4000}")
_UNEVALUATED = re.compile(r"\\(?:sum|prod|int|iint|lim)(?![A-Za-z])|\^\s*\{?\s*\d{5,}|!\s*!")
"""Not an answer but a task, some of them endless: never sent to sympy."""
_BASED = re.compile(r"[0-9A-Za-z]+_(?:\{\w+\}|\w)")

Compare = Callable[[str, str], Comparison]


def integer(text: str) -> int | None:
    """The integer an answer says, whatever dresses it; None if it says none. Never raises."""
    if _PLAIN_INTEGER.fullmatch(text):
        return int(text)
    if len(text) > LIMIT_CHARS:
        return None
    plain = forms.part(forms.undress(text))
    if plain.percent and "%" not in text:
        return None
    found = re.fullmatch(r"([-+]?)\s*((?:[0-9]+|[0-9]{1,3}(?:,[0-9]{3})+)(?:\.0*)?)", plain.text)
    return int(found.group(1) + found.group(2).partition(".")[0].replace(",", "")) if found else None


class Grader:
    """Grades answers, with a small pool of killable processes for the few that need math-verify.

        with Grader() as grader:
            grader.grade("x^2+2x+1", "(x+1)^2").correct

    Processes start by exec when first needed. Any thread may call `grade`.
    """

    def __init__(self, *, processes: int = 1, limit_s: float = 0.4, memory_mib: int = 2048) -> None:
        """Nothing starts yet. `limit_s` are CPU seconds of one grade, so a busy machine changes none."""
        self._pool = Pool(processes=processes, memory_mib=memory_mib)
        self._limit_s = limit_s

    def grade(self, answer: str | None, gold: str) -> Grade:
        """Whether `answer` is right.

        Args:
            answer: what the format found in the model's text, or None.
            gold: the problem's answer.

        Raises:
            InfrastructureError: a grading process can't be started; never for what the texts hold.
        """
        return decide(answer, gold, _Allowance(self._pool, self._limit_s))

    def explain(self, answer: str | None, gold: str) -> Explanation:
        """The grade with what was read and what was asked of math-verify.

        Raises:
            InfrastructureError: a grading process can't be started.
        """
        allowance = _Allowance(self._pool, self._limit_s)
        grade = decide(answer, gold, allowance)
        return Explanation(grade, reading(gold), reading(answer or ""), tuple(allowance.asked))

    def close(self) -> None:
        """End the processes."""
        self._pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: object) -> None:
        self.close()


class _Allowance:
    """The comparisons of one grade, which share its CPU seconds: a list of many parts may need many."""

    def __init__(self, pool: Pool, limit_s: float) -> None:
        self._pool, self._left_s = pool, limit_s
        self.asked: list[tuple[str, str, str]] = []

    def __call__(self, gold: str, answer: str) -> Comparison:
        found = Comparison.TIME_LIMIT
        if self._left_s > _LEAST_S:
            found, used_s = self._pool.compare(gold, answer, cpu_s=self._left_s)
            self._left_s -= used_s
        self.asked.append((gold, answer, found.value))
        return found


def decide(answer: str | None, gold: str, compare: Compare) -> Grade:
    """`Grader.grade`, with whatever decides the comparisons that need computer algebra."""
    if answer is None or not answer.strip():
        return _NO_ANSWER
    expected = integer(gold)
    if expected is not None:
        found = integer(answer)
        if found is not None:
            return _EQUAL_INTEGER if found == expected else _DIFFERENT
    if answer.strip() == gold.strip():
        return _EQUAL_VALUE
    if len(answer) > LIMIT_CHARS or len(gold) > LIMIT_CHARS:
        return _UNPARSABLE
    return _grade_forms(forms.undress(answer), forms.undress(gold), compare)


_shared: Grader | None = None
_shared_lock = threading.Lock()


def grade(answer: str | None, gold: str) -> Grade:
    """`Grader.grade` with one grader shared by this process; integers need no other process."""
    global _shared
    if _shared is None:
        with _shared_lock:
            if _shared is None:
                _shared = Grader()
                atexit.register(_shared.close)
    return _shared.grade(answer, gold)


@dataclass(frozen=True)
class Reading:
    """How an answer was read."""

    kind: str
    """`nothing`, `too long`, `integer`, `words`, or the form: `value`, `several`, `union`, brackets, `matrix 2x3`."""
    parts: tuple[str, ...]
    """The value of each part, or its text where it has no value of its own."""


@dataclass(frozen=True)
class Explanation:
    """A grade, and what it rests on."""

    grade: Grade
    gold: Reading
    answer: Reading
    asked: tuple[tuple[str, str, str], ...]
    """What math-verify was asked: gold part, answer part, what it found."""
    normalizer: int = NORMALIZER

    @property
    def words(self) -> str:
        """The reason as a sentence."""
        return REASONS[self.grade.reason]


REASONS = {
    GradeReason.EQUAL_INTEGER: "both are the same integer",
    GradeReason.EQUAL_VALUE: "every part of the gold answer has its equal in the answer, and nothing is left over",
    GradeReason.DIFFERENT: "the values, or the shapes around them, differ",
    GradeReason.NO_ANSWER: "there is no answer",
    GradeReason.UNPARSABLE: "the answer can't be read as mathematics",
    GradeReason.SEVERAL_VALUES: "the question has one value, and the answer gives several",
    GradeReason.TIME_LIMIT: "the comparison did not end in time; it counts as wrong",
}


def reading(text: str) -> Reading:
    """How `text` is read, as an answer or as gold. Never raises."""
    if not text.strip():
        return Reading("nothing", ())
    if len(text) > LIMIT_CHARS:
        return Reading("too long", ())
    whole = integer(text)
    if whole is not None:
        return Reading("integer", (str(whole),))
    plain = forms.undress(text)
    said = forms.words(plain)
    if said is not None:
        return Reading("words", (said,))
    shape = forms.form(plain)
    found = [(part, values.value(forms.part(_right_side(part)).text)) for part in shape.parts[:_PARTS]]
    return Reading(shape.kind, tuple(number.text if number else part for part, number in found))


def same_answer(left: str, right: str) -> bool:
    """Whether two answers are the same without asking another process: for votes and for swapping partners."""
    if left.strip() == right.strip():
        return True
    if len(left) > LIMIT_CHARS or len(right) > LIMIT_CHARS:
        return False
    return canonical(left) == canonical(right)


def canonical(answer: str) -> tuple[str, ...]:
    """A hashable form: answers that are equal as numbers, or as lists of numbers, have the same one."""
    if len(answer) > LIMIT_CHARS:
        return ("text", answer)
    shape = forms.form(forms.undress(answer))
    parts = []
    for text in shape.parts[:_PARTS]:
        plain = forms.part(_right_side(text))
        found = values.value(plain.text)
        parts.append(("percent " if plain.percent else "") + (str(found.text) if found else forms.squeezed(plain.text)))
    return (shape.kind, *(sorted(parts) if shape.kind in ("several", "union") else parts))


# --- parts ----------------------------------------------------------------------------------------------------------


def _grade_forms(answer: str, gold: str, compare: Compare) -> Grade:
    if answer and forms.squeezed(answer) == forms.squeezed(gold):
        return _EQUAL_VALUE
    said = forms.words(gold)
    if said is not None and (len(said) > 1 or gold.startswith("(")):
        return _EQUAL_VALUE if forms.words(answer) == said else _DIFFERENT
    gold_form, form = forms.form(gold), forms.form(answer)
    if gold_form.is_scalar:
        if form.kind == "several":
            return _SEVERAL
        return _grade_part(form.parts[0], gold_form.parts[0], compare) if form.is_scalar else _DIFFERENT
    if not _comparable(gold_form.kind, form.kind, len(gold_form.parts)) or len(gold_form.parts) != len(form.parts):
        return _DIFFERENT
    if len(form.parts) > _PARTS:
        return _UNPARSABLE
    ordered = gold_form.kind not in ("several", "union")
    deeper = _grade_forms if gold_form.kind == "union" or any("," in part for part in gold_form.parts) else _grade_part
    left = list(form.parts)
    for expected in gold_form.parts:
        candidates = left[:1] if ordered else left
        grades = []
        for index, candidate in enumerate(candidates):
            grades.append(deeper(candidate, expected, compare))
            if grades[-1].correct:
                del left[index]
                break
            if grades[-1] is _TIME_LIMIT:
                return _TIME_LIMIT
        if not grades[-1].correct:
            return grades[-1]
    return _EQUAL_VALUE


def _comparable(gold: str, answer: str, count: int) -> bool:
    if gold == answer:
        return True
    brackets = ("()", "[]")
    if gold == "several":  # a list as code prints it; two values in parentheses are a point or an interval
        return answer == "[]" or (answer == "()" and count > 2)
    if gold in brackets and count > 2:  # no interval
        return answer in brackets or answer == "several"
    if gold == "()":
        return answer == "several"
    return gold.startswith("matrix") and (gold.endswith("x1") or " 1x" in gold) and answer in brackets


def _right_side(text: str, *, of_gold: bool = False) -> str:
    """Of `x=5`, `2+3=5`, and in an answer also `m+n=5`, the last part, if that is a number.

    `5x-7y=4` as a gold answer, and `…=0` behind more than a name, are equations and stay whole.
    """
    before, equals, after = text.rpartition("=")
    if not equals or before[-1:] in ("<", ">", "!", "\\") or values.value(forms.part(after).text) is None:
        return text
    named = re.fullmatch(r"\s*\\?[A-Za-z]+(?:_\{?\w+\}?)?\s*", before) is not None or values.value(before) is not None
    return (
        after if named or not (of_gold or values.value(forms.part(after).text) == values.Value(Fraction(0))) else text
    )


def _grade_part(answer: str, gold: str, compare: Compare) -> Grade:
    if not answer:
        return _UNPARSABLE
    if forms.squeezed(answer) == forms.squeezed(gold):
        return _EQUAL_VALUE
    expected = forms.part(_right_side(gold, of_gold=True))
    if "=" not in expected.text:
        answer = _right_side(answer)
    found = forms.part(answer)
    if forms.squeezed(expected.text) == forms.squeezed(found.text) and expected.percent == found.percent:
        return _EQUAL_VALUE
    if _BASED.fullmatch(expected.text) or _BASED.fullmatch(found.text):
        return _DIFFERENT
    try:
        number = _read(expected.text)
        given = _read(found.text)
    except values.TooLargeError:
        return _UNPARSABLE
    if number is not None and given is not None:
        return _EQUAL_VALUE if _same_number(given, found.percent, number, expected.percent) else _DIFFERENT
    if number is not None and "=" in re.sub(r"\{[^{}]*\}", "", found.text):
        return _DIFFERENT  # math-verify would take its right side for the answer
    return _symbolic(found.text, expected.text, compare)


def _read(text: str) -> values.Value | None:
    try:
        return values.read(text)
    except values.TooLargeError:
        raise
    except values.UnreadableError:
        return None


def _same_number(given: values.Value, is_percent: bool, gold: values.Value, gold_percent: bool) -> bool:
    if is_percent == gold_percent:
        return _matches(given, gold)
    percent, other = (given, gold) if is_percent else (gold, given)
    return _matches(given, gold) or percent.rational / 100 == other.rational


def _matches(given: values.Value, gold: values.Value) -> bool:
    if given.key == gold.key:
        return True
    if given.decimal is None or gold.decimal is not None or "." not in given.decimal or "e" in given.decimal.lower():
        return False
    whole, _, behind = given.decimal.lstrip("-").partition(".")
    if len((whole + behind).lstrip("0")) < 6:
        return False
    return bool(round(gold.rational * 10 ** len(behind)) == given.rational * 10 ** len(behind))


def _symbolic(answer: str, gold: str, compare: Compare) -> Grade:
    """By math-verify, gold first: its comparison is not symmetric."""
    for text in (answer, gold):
        depth = deepest = 0
        for sign in text:
            depth += (sign in "([{") - (sign in ")]}")
            deepest = max(deepest, depth)
        if len(text) > _SYMBOLIC_CHARS or deepest > _SYMBOLIC_DEPTH or depth != 0 or not text.isprintable():
            return _UNPARSABLE
        if _UNEVALUATED.search(text) or not re.search(r"[A-Za-z0-9]", text):
            return _UNPARSABLE
    return {
        Comparison.EQUAL: _EQUAL_VALUE,
        Comparison.DIFFERENT: _DIFFERENT,
        Comparison.UNPARSABLE: _UNPARSABLE,
        Comparison.TIME_LIMIT: _TIME_LIMIT,
    }[compare(gold, answer)]


def numbers(answer: str) -> tuple[values.Value, ...] | None:
    """The value of every part of an answer that consists of numbers; None otherwise. Never raises."""
    if len(answer) > LIMIT_CHARS:
        return None
    shape = forms.form(forms.undress(answer))
    found = [values.value(forms.part(_right_side(text)).text) for text in shape.parts[:_PARTS]]
    known = tuple(number for number in found if number is not None)
    return known if known and len(known) == len(shape.parts) else None
