"""ThinC's variants end to end: the drills' teacher writes them, records keep to them, metrics say what they can't read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from thincode.cli import main
from thincode.errors import RecipeError
from thincode.evaluation.scorecard import measure
from thincode.grading.records import graded_from_record
from thincode.grading.spans import keeps_format
from thincode.interpreter.backends import gp
from thincode.runs.recipe import Recipe
from thincode.settings import kind, kinds, load
from thincode.trajectory import SegmentKind
from thincode.trajectory.store import read

METRICS = "thincode.evaluation.metrics"
NEEDS_PARI = pytest.mark.skipif(not gp.find(), reason="needs PARI's library: pip install 'thincode[gp]'")
NAMES = ["notes", "named", pytest.param("gp", marks=NEEDS_PARI)]


@pytest.fixture(scope="module")
def distilled(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The run folder of a small distillation of a variant, made once."""
    root = tmp_path_factory.mktemp("variants")

    def made(name: str) -> Path:
        out = root / name
        if not out.exists():
            assert main(["distill", f"tiny/{name}", "--out", str(out), "--quiet", "distill.problems.count=44"]) == 0
        return out

    return made


@pytest.mark.parametrize("name", NAMES)
def test_the_teacher_writes_it_and_every_record_keeps_to_it(name: str, distilled: Callable[[str], Path]) -> None:
    rows = [graded_from_record(record.trajectory, record.annotations) for record in read(distilled(name))]
    assert len(rows) == 44
    for row in rows:
        assert row.grade.correct, row.trajectory.text
        assert keeps_format(row.trajectory), row.trajectory.text
    thoughts = [s for row in rows for s in row.trajectory.segments if s.kind is SegmentKind.THOUGHT]
    assert len(thoughts) == (44 if name == "notes" else 0)


@NEEDS_PARI
def test_what_needs_syntax_trees_says_so_and_counts_nothing(distilled: Callable[[str], Path]) -> None:
    rows = [graded_from_record(record.trajectory, record.annotations) for record in read(distilled("gp"))]
    found = {
        one.name: one for one in measure(rows, [kind(METRICS, name) for name in kinds(METRICS)], name="").estimates
    }
    unread = {name for name, one in found.items() if one.note.startswith("not applicable")}
    assert unread == {"grounded by computing", "inputs copied", "unverified constants", "role overlap"}
    assert {(found[name].value, found[name].n) for name in unread} == {(None, 0)}
    assert (found["grounded"].value, found["block pass rate"].value, found["post-hoc verification"].value) == (1, 1, 0)
    assert 3 < (found["lines of code, non-blank non-comment"].value or 0) <= (found["lines of code"].value or 0)


@NEEDS_PARI
def test_problems_are_evaluated_in_gp(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["eval", "tiny/gp", "--out", str(tmp_path / "e"), "--quiet", "--json", "evaluate.engine=scripted"]
    assert main([*words, "evaluate.problems.count=8", "evaluate.samples=1"]) == 0
    records = list(read(tmp_path / "e"))
    assert len(records) == 8
    for record in records:
        row = graded_from_record(record.trajectory, record.annotations)
        assert row.grade.correct
        assert row.trajectory.blocks[0].text.startswith('```gp\nprint("')


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (["interpreter.backend=python"], "thinc_gp has blocks of gp, and interpreter.backend=python runs python"),
        (["format.kind=thinc"], "thinc has blocks of python, and interpreter.backend=gp runs gp"),
        (["distill.problems.language=python"], "the teacher writes python, and format=thinc_gp has blocks of gp"),
        (["distill.problems.cut=dense"], "dense cuts Python; with language: gp write cut: steps"),
    ],
)
def test_a_recipe_speaks_one_language(changes: list[str], said: str) -> None:
    with pytest.raises(RecipeError, match=said):
        load(Recipe, "tiny/gp", changes)
    load(Recipe, "tiny/gp", ["format.kind=cot", "interpreter.backend=gp"])  # it has no blocks


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_micro_recipe_runs_to_its_report(name: str, tmp_path: Path) -> None:
    assert main(["run", f"tiny/{name}", "--out", str(tmp_path / "run"), "--quiet"]) == 0
    assert (tmp_path / "run" / "report.html").exists()
