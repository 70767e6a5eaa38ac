"""What no file says, and what every packaged recipe and changelog must."""

from __future__ import annotations

import importlib.util
import re
import subprocess
from pathlib import Path

import pytest

import thincode
from thincode.settings import load, recipes

ROOT = Path(__file__).parents[3]

SYSTEM = {
    Path(name) for name in ("/", "/tmp", "/var/tmp", "/home", "/usr/src", "/usr/local", "/opt", "/srv", "/app", "/src")
}
MINE = {ROOT, ROOT.parent, Path.home()} - SYSTEM
PLACES = re.compile(
    "|".join([r"/(?:home|Users)/[a-z]\w*/", *(rf"(?<![\w.-]){re.escape(str(path))}(?![\w-])" for path in MINE)])
)


def tracked() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_no_file_names_a_place_that_others_do_not_have() -> None:
    found = []
    for path in tracked():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        found += [f"{path.relative_to(ROOT)}: {match[0]}" for match in PLACES.finditer(text)]
    assert not found, "\n".join(found)


def test_no_file_is_large() -> None:
    large = [path.name for path in tracked() if path.stat().st_size > 500_000]
    assert large == []


@pytest.mark.parametrize("name", recipes())
def test_every_packaged_recipe_parses(name: str) -> None:
    if importlib.util.find_spec("thincode.runs.recipe") is None:
        pytest.skip("there is no recipe class yet")
    from thincode.runs.recipe import Recipe

    loaded = load(Recipe, name)
    assert {origin for _, _, origin in loaded.origins} <= {"recipe", "default"}
    assert load(Recipe, name, ["seed=12345"]).value.seed == 12345


def test_the_changelog_knows_this_version() -> None:
    assert f"## {thincode.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_pinned_packages_are_those_that_are_declared() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = [
        *project["dependencies"],
        *(name for extra in project["optional-dependencies"].values() for name in extra),
    ]
    names = {re.split(r"[<>=\[ ]", line)[0].lower() for line in declared}
    pinned = re.findall(r"^([\w.-]+)==", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)
    assert names - {name.lower() for name in pinned} == set()
