"""Each file in `examples/` runs as its docstring says, in an install without torch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from thincode.grading import Grade, Graded, GradeReason
from thincode.problems import Problem
from thincode.settings import kind
from thincode.trajectory import Address, Block, BlockStatus, EndReason, Segment, SegmentKind, Trajectory

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
PRINTS = {
    "run_a_block": ["ok                 285", "error  IndexError", "limit  time", "ok                 10"],
    "grade_an_answer": ["right: equal_integer", "(x+1)^2      gold x^2+2x+1     right", "wrong: several_values"],
    "read_a_transcript": ["plan     'First count, then square.'", "thought  'So I need its square.'", "answer: 196"],
    "teach_one_problem": ["```output\n28\n```", "\\boxed{13986}", "finished: 13986, 2 blocks"],
}
WITHOUT_TORCH = """
import runpy, sys
sys.modules.update(dict.fromkeys(("torch", "transformers", "trl", "accelerate", "peft", "datasets")))
sys.argv = sys.argv[1:]
(runpy.run_path if sys.argv[0].endswith(".py") else runpy.run_module)(sys.argv[0], run_name="__main__")
"""


def run(*words: str, path: Path | None = None) -> str:
    """Run a file or a module in a process that can't import torch."""
    places = [str(ROOT / "src"), *([str(path)] if path else [])]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, *words],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(places)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def distill(out: Path, *overrides: str, path: Path | None = None) -> None:
    sizes = ["distill.problems.count=11", "seed=3", *overrides]
    run("thincode", "distill", "tiny/micro", "--quiet", "--out", str(out), *sizes, path=path)


@pytest.fixture
def my_lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on Python's path that holds the examples as a package."""
    package = tmp_path / "path" / "example_lab"
    package.mkdir(parents=True)
    for file in EXAMPLES:
        (package / file.name).write_text(file.read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.syspath_prepend(str(package.parent))
    for name in [name for name in sys.modules if name.partition(".")[0] == package.name]:
        monkeypatch.delitem(sys.modules, name)
    return package.parent


@pytest.mark.parametrize("name", PRINTS)
def test_it_prints_what_it_shows(name: str) -> None:
    printed = run(str(ROOT / "examples" / f"{name}.py"))
    assert [line for line in PRINTS[name] if line not in printed] == []


def test_a_run_is_measured_again_from_its_records(tmp_path: Path) -> None:
    distill(tmp_path / "run")
    printed = run(str(ROOT / "examples" / "measure_a_run.py"), str(tmp_path / "run"))
    funnel = json.loads((tmp_path / "run" / "funnel.json").read_text(encoding="utf-8"))
    right = funnel["sampled"] - sum(count for reason, count in funnel["dropped"].items() if reason.startswith("wrong"))
    assert funnel["sampled"] == 11
    assert f"{100 * right / 11:.1f} %" in printed.split("avg@1", 1)[1].splitlines()[0]


def test_a_filter_by_its_dotted_path_is_counted_in_the_funnel(tmp_path: Path, my_lab: Path) -> None:
    own = "distill.filters=[correct, example_lab.no_prints_of_literals]"
    distill(tmp_path / "run", own, "distill.problems.families=[chain]", path=my_lab)
    funnel = json.loads((tmp_path / "run" / "funnel.json").read_text(encoding="utf-8"))
    assert funnel["kept"] + sum(funnel["dropped"].values()) == 11


BLOCKS: list[tuple[tuple[str, ...], bool]] = [
    (("print(6*7)", "print(x)"), True),
    (("print(42)",), False),
    (("x = 6*7", "print( 3, -4.5 )"), False),
    (("print('42')",), True),
    ((), True),
]


@pytest.mark.parametrize(("sources", "kept"), BLOCKS)
def test_the_filter_drops_blocks_that_print_literals_only(my_lab: Path, sources: tuple[str, ...], kept: bool) -> None:
    chosen = kind("thincode.grading.filters", "example_lab.no_prints_of_literals")
    verdict = chosen.module.judge(chosen.settings, graded(sources))
    assert verdict.keep is kept
    assert verdict.reason


def test_the_reward_falls_from_free_to_full_and_spares_the_wrong(my_lab: Path) -> None:
    chosen = kind("thincode.grading.rewards", "example_lab.short_answer", free=10, full=30)
    reward: Callable[[Graded], float] = lambda row: chosen.module.reward(chosen.settings, row)  # noqa: E731
    # A block of n characters counts n where a record has no ids.
    earned = [reward(graded(("x" * n,))) for n in (10, 20, 30, 90)]
    assert earned == [0.0, -0.5, -1.0, -1.0]
    assert reward(graded(("x" * 90,), correct=False)) == 0.0


def test_examples_are_short_and_listed() -> None:
    listed = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    assert [file.name for file in EXAMPLES if f"`{file.name}`" not in listed] == []
    long = [file.name for file in EXAMPLES if len(file.read_text(encoding="utf-8").splitlines()) > 40]
    assert long == []


def graded(sources: tuple[str, ...], *, correct: bool = True) -> Graded:
    blocks = tuple(Segment(SegmentKind.CODE, code, code, block=Block(BlockStatus.OK)) for code in sources)
    address = Address(0, "test", 0, "p", 0)
    trajectory = Trajectory(address, "?", "thinc", "", blocks, EndReason.FINISHED, "1")
    reason = GradeReason.EQUAL_INTEGER if correct else GradeReason.DIFFERENT
    return Graded(Problem("p", "?", "1"), trajectory, Grade(correct, reason))
