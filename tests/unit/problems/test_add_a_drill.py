"""The page that tells how to add a drill family tells the truth."""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from thincode.errors import RecipeError
from thincode.problems.drills import family
from thincode.problems.sources import drills
from thincode.problems.sources.drills import Settings

PAGE = Path(__file__).parents[3] / "docs" / "add-a-drill.md"


@pytest.fixture
def my_lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The page's family as a file of somebody's package; gives the code that the page shows to look at it."""
    page = PAGE.read_text(encoding="utf-8")
    make, look = (re.search(rf"```{word}\n(.*?)```", page, flags=re.DOTALL)[1] for word in ("bash", "python"))  # type: ignore[index]
    subprocess.run(["bash", "-euc", make], cwd=tmp_path, check=True, timeout=30)
    (tmp_path / "my_lab" / "nothing.py").touch()
    (tmp_path / "my_lab" / "broken.py").write_text("import no_such_package\n", encoding="utf-8")
    (tmp_path / "my_lab" / "odd.py").write_text("FAMILY = 3\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    yield str(look)
    family.cache_clear()
    for name in [name for name in sys.modules if name.split(".")[0] == "my_lab"]:
        del sys.modules[name]


def test_the_example_prints_what_the_page_says(my_lab: str) -> None:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(my_lab, {})
    promised = re.findall(r"print\(.*\)  # (.*)", my_lab)
    assert len(promised) == 2
    assert printed.getvalue().splitlines()[:2] == promised


def test_the_example_can_be_named_in_a_recipe_and_its_program_is_right(my_lab: str) -> None:
    settings = Settings(families=("my_lab.squares", "lcm"), count=60, flaw_shows=0.5)
    problems = [p for p in drills.load(settings) if p.tags["family"] == "my_lab.squares"]
    assert len(problems) == 30
    for problem in problems:
        namespace: dict[str, object] = {}
        outputs: list[str] = []
        for block in drills.worked_solution(settings, problem, seed=0).blocks:
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(block(outputs), namespace)
            outputs.append(printed.getvalue().strip())
        assert outputs[-1] == problem.answer


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("my_lab.cubes", "'my_lab.cubes' is no drill family"),
        ("my_lab.nothing", "'my_lab.nothing' is no drill family"),
        ("my_lab.odd", "FAMILY is 3; it must be"),
        ("prime", "did you mean 'primes'"),
    ],
)
def test_a_module_that_is_no_family_is_refused(my_lab: str, name: str, message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        family(name)


def test_a_family_that_lacks_an_import_of_its_own_says_which(my_lab: str) -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such_package"):
        family("my_lab.broken")
