"""From a file or a packaged recipe to every value with where it came from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import pytest

from thincode import settings as module
from thincode.errors import RecipeError
from thincode.settings import In, Kind, PositiveInt, apply_overrides, load, recipe_text, recipes, settings


@settings
class Stage:
    steps: PositiveInt = 10
    lr: float = 1e-6


@settings
class Recipe:
    seed: int = 0
    tags: tuple[str, ...] = ("a",)
    stages: tuple[Stage, ...] = ()
    filters: tuple[Annotated[Kind, In("lab")], ...] = ()
    algorithm: Annotated[Kind, In("lab")] | None = None
    last: Stage | None = None


@pytest.fixture(autouse=True)
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lab").mkdir()
    (tmp_path / "lab/__init__.py").write_text("")
    for name in ("dapo", "grpo"):
        (tmp_path / f"lab/{name}.py").write_text(
            "from thincode.settings import settings\n@settings\nclass Settings:\n    clip: float = 0.2\n    n: int = 1\n"
        )
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.fixture
def packaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("tiny/micro.yaml", "tiny/small.yaml", "cir/cir-7b.yaml", "published.yaml", "tiny/notes.txt"):
        path = tmp_path / "recipes" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("seed: 3\n")
    monkeypatch.setattr(module, "_recipes_root", lambda: tmp_path / "recipes")


ORIGINS = [
    ("seed: 1", [], {"seed": "recipe", "tags": "default", "last": "default"}),
    ("seed: 1", ["seed=2"], {"seed": "command line"}),
    ("{}", ["tags=[b, c]"], {"tags": "command line", "seed": "default"}),
    (
        "algorithm: dapo",
        [],
        {"algorithm.kind": "recipe", "algorithm.clip": "default", "algorithm.n": "default"},
    ),
    (
        "algorithm: {kind: dapo, n: 2}",
        ["algorithm.clip=0.3"],
        {"algorithm.kind": "recipe", "algorithm.clip": "command line", "algorithm.n": "recipe"},
    ),
    (
        "algorithm: {kind: dapo, n: 2}",
        ["algorithm=grpo"],
        {"algorithm.kind": "command line", "algorithm.clip": "default", "algorithm.n": "default"},
    ),
    (
        "filters: [dapo, {kind: grpo, n: 4}]",
        ["filters.0.n=9"],
        {
            "filters.0.kind": "recipe",
            "filters.0.n": "command line",
            "filters.0.clip": "default",
            "filters.1.kind": "recipe",
            "filters.1.n": "recipe",
            "filters.1.clip": "default",
        },
    ),
    ("filters: [dapo, grpo]", [], {"filters.0.kind": "recipe", "filters.1.kind": "recipe", "filters.1.n": "default"}),
    (
        "stages: [{steps: 1}, {lr: 1}]",
        ["stages.1.steps=5"],
        {
            "stages.0.steps": "recipe",
            "stages.0.lr": "default",
            "stages.1.steps": "command line",
            "stages.1.lr": "recipe",
        },
    ),
    ("seed: 1", ["last={steps: 4}"], {"last.steps": "command line", "last.lr": "default"}),
]


@pytest.mark.parametrize(("text", "overrides", "expected"), ORIGINS)
def test_every_value_says_where_it_came_from(
    text: str, overrides: list[str], expected: dict[str, str], tmp_path: Path
) -> None:
    path = tmp_path / "recipe.yaml"
    path.write_text(text)
    found = {place: origin for place, _, origin in load(Recipe, path, overrides).origins}
    assert {place: found[place] for place in expected} == expected


def test_a_file_is_read_and_resolved(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("seed: 4\nalgorithm: dapo\n")
    loaded = load(Recipe, path, ["algorithm.n=7"])
    assert loaded.value.seed == 4
    assert loaded.resolved["algorithm"] == {"kind": "dapo", "clip": 0.2, "n": 7}
    assert loaded.place == str(path)
    assert ("algorithm.n", 7, "command line") in loaded.origins


@pytest.mark.usefixtures("packaged")
def test_packaged_recipes_have_names() -> None:
    assert recipes() == ["cir/cir-7b", "tiny/micro", "tiny/small"]
    assert recipe_text("tiny/micro") == "seed: 3\n"
    assert load(Recipe, "tiny/micro", ["seed=5"]).value.seed == 5


@pytest.mark.usefixtures("packaged")
@pytest.mark.parametrize("name", ["tiny/mikro", "tiny/mikro.yaml", "published"])
def test_a_recipe_that_is_nowhere_gets_the_nearest_name(name: str) -> None:
    with pytest.raises(RecipeError, match=r"no recipe .*; .*known: cir/cir-7b, tiny/micro, tiny/small") as caught:
        load(Recipe, name)
    assert ("did you mean 'tiny/micro'" in str(caught.value)) == ("mikro" in name)


def test_a_folder_is_no_recipe(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="no recipe"):
        load(Recipe, tmp_path)


CONTENTS = [
    (b"", "the file is empty"),
    (b"- 1\n", r"the file holds \[1\]"),
    (b"seed: \xff", "not UTF-8 text"),
    (b"seed: 1\nseed: 2", "mine.yaml:2:1: .*stands twice"),
    (b"seed: x", "^seed: should be a valid integer"),
]


@pytest.mark.parametrize(("content", "message"), CONTENTS)
def test_a_file_that_is_wrong_says_how(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_bytes(content)
    with pytest.raises(RecipeError, match=message):
        load(Recipe, path)


OVERRIDES = [
    ("seed", "write key.path=value"),
    ("=3", "write key.path=value"),
    ("a b=3", "write key.path=value"),
    ("seed=", "no value; write seed=null"),
    ("seed.x=1", "seed is 1 and holds no keys"),
    ("stages.2.lr=1", "'2' is no place in stages, which has 1 items"),
    ("stages.x=1", "'x' is no place in stages"),
    ("seed=[1", "override seed:1:3: can't read this as YAML"),
]


@pytest.mark.parametrize(("override", "message"), OVERRIDES)
def test_a_wrong_override_says_how(override: str, message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        apply_overrides({"seed": 1, "stages": [{"steps": 1}]}, [override])


def test_all_wrong_overrides_are_named_at_once() -> None:
    with pytest.raises(RecipeError) as caught:
        apply_overrides({}, ["a", "b=1", "c="])
    assert len(str(caught.value).splitlines()) == 2
