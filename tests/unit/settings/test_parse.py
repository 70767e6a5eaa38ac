"""A recipe with mistakes names each of them: place, value, rule, nearest right name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thincode.errors import RecipeError
from thincode.settings import (
    In,
    Kind,
    PositiveFloat,
    PositiveInt,
    Share,
    apply_overrides,
    dump,
    kind,
    kinds,
    parse,
    read_yaml,
    settings,
    write_yaml,
)


class Schedule(StrEnum):
    OVERLAPPED = "overlapped"
    DETERMINISTIC = "deterministic"


@settings
class Budget:
    context_tokens: PositiveInt = 1024
    prompt_tokens: PositiveInt = 256

    def check(self) -> Iterator[tuple[str, str]]:
        if self.context_tokens <= self.prompt_tokens:
            yield "context_tokens", f"{self.context_tokens} leaves no room after a prompt of {self.prompt_tokens}"


@settings
class Stage:
    until_step: PositiveInt
    budget: Budget = Budget()


@settings
class Recipe:
    seed: int = 0
    lr: PositiveFloat = 1e-5
    share: Share = 0.5
    name: str = "run"
    out: Path | None = None
    greedy: bool = False
    schedule: Schedule = Schedule.OVERLAPPED
    measure: Literal["last_epoch"] | int = "last_epoch"
    stages: tuple[Stage, ...] = ()
    named: dict[str, Stage] = field(default_factory=dict)
    validation: Stage | None = None
    budget: Budget = Budget()
    filters: Annotated[tuple[Annotated[Kind, In("room")], ...], "in this order"] = ()
    algorithm: Annotated[Kind, In("room")] | None = None


@pytest.fixture(autouse=True)
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plug room of three kinds on Python's path, and a kind of somebody else."""
    head = "from __future__ import annotations\nfrom thincode.settings import *\n"
    files = {
        "room/__init__.py": "",
        "room/_private.py": head + "@settings\nclass Settings: pass\n",
        "room/correct.py": head + "@settings\nclass Settings: pass\n",
        "room/dapo.py": head
        + "from typing import Annotated\n@settings\nclass Settings:\n"
        + "    clip_low: PositiveFloat = 0.2\n    clip_high: PositiveFloat = 0.28\n"
        + "    inner: Annotated[Kind, In('room')] | None = None\n"
        + "    def check(self):\n        if self.clip_high < self.clip_low:\n"
        + "            yield 'clip_high', 'below clip_low'\n",
        "room/broken.py": "import a_module_that_is_missing\n",
        "room/no_kind.py": "x = 1\n",
        "my_lab/__init__.py": "",
        "my_lab/own.py": head + "@settings\nclass Settings:\n    n: int = 3\n",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    import sys

    for loaded in [name for name in sys.modules if name.split(".")[0] in ("room", "my_lab")]:
        monkeypatch.delitem(sys.modules, loaded)


KNOWN = "known: broken, correct, dapo, no_kind"

WRONG: list[tuple[str, str]] = [
    ("sede: 1", "sede: unknown key; did you mean 'seed'? known: algorithm, budget, "),
    (
        "budget: {contxt_tokens: 5}",
        "budget.contxt_tokens: unknown key; did you mean 'context_tokens'? known: context_tok",
    ),
    ("stages: [{until_step: 1, x: 2}]", "stages.0.x: unknown key; known: budget, until_step"),
    ("stages: [{until_step: 1}, {}]", "stages.1.until_step: missing; this key is required"),
    ("stages: [{until_step: 1, budget: {calls: 2}}]", "stages.0.budget.calls: unknown key"),
    ("named: {a: {until: 1, until_step: 3}}", "named.a.until: unknown key; did you mean 'until_step'?"),
    ("validation: {until_step: 1, bugdet: {}}", "validation.bugdet: unknown key; did you mean 'budget'?"),
    ("seed: five", "seed: should be a valid integer; found 'five'"),
    ("seed: '5'", "seed: should be a valid integer; found '5'"),
    ("seed: 1.5", "seed: should be a valid integer"),
    ("seed: true", "seed: should be a valid integer; found True"),
    ("seed:", "seed: should be a valid integer; found None"),
    ("name: 5", "name: should be a valid string; found 5"),
    ("greedy: off", "greedy: should be a valid boolean; found 'off'"),
    ("greedy: 1", "greedy: should be a valid boolean; found 1"),
    ("lr: 0", "lr: should be greater than 0; found 0"),
    ("share: 1.01", "share: should be less than or equal to 1; found 1.01"),
    ("schedule: determinstic", "'deterministic'; found 'determinstic'; did you mean 'deterministic'?"),
    ("stages: 3", "stages: should be a list; found 3"),
    ("seed: " + "x" * 200, f"seed: should be a valid integer; found '{'x' * 79} … (202 characters)"),
    ("budget: 3", "budget: should be keys and values; found 3"),
    ("budget: {context_tokens: 256}", "budget.context_tokens: 256 leaves no room after a prompt of 256"),
    (
        "stages: [{until_step: 1, budget: {context_tokens: 2}}]",
        "stages.0.budget.context_tokens: 2 leaves no room after a prompt of 256",
    ),
    ("algorithm: dapoo", f"algorithm: unknown kind 'dapoo'; did you mean 'dapo'? {KNOWN}"),
    ("algorithm: _private", f"algorithm: unknown kind '_private'; {KNOWN}"),
    ("algorithm: ../dapo", "algorithm: unknown kind '../dapo'; did you mean 'dapo'?"),
    ("algorithm: 3", f"algorithm: 3 names no kind; write a name of room or {{kind: NAME, …}}; {KNOWN}"),
    ("algorithm: {clip_high: 1}", "algorithm: {'clip_high': 1} names no kind"),
    ("algorithm: no_kind", "algorithm: room.no_kind is no kind of room: it has no Settings"),
    ("algorithm: my_labb.own", "algorithm: unknown kind 'my_labb.own'; no module 'my_labb.own' on Python's path; "),
    ("algorithm: {kind: dapo, clip_hgih: 1}", "algorithm.clip_hgih: unknown key; did you mean 'clip_high'?"),
    ("algorithm: {kind: dapo, clip_high: -1}", "algorithm.clip_high: should be greater than 0; found -1"),
    ("algorithm: {kind: dapo, clip_high: 0.1}", "algorithm.clip_high: below clip_low"),
    ("algorithm: {kind: dapo, inner: {kind: dapo, clip: 1}}", "algorithm.inner.clip: unknown key; did you mean"),
    ("algorithm: {kind: dapo, inner: dapi}", "algorithm.inner: unknown kind 'dapi'; did you mean 'dapo'?"),
    ("filters: [correct, corect]", "filters.1: unknown kind 'corect'; did you mean 'correct'?"),
    ("filters: [{kind: correct, n: 1}]", "filters.0.n: unknown key; known: none"),
]


@pytest.mark.parametrize(("recipe", "message"), WRONG, ids=[recipe[:60] for recipe, _ in WRONG])
def test_a_mistake_is_named_with_its_place(recipe: str, message: str) -> None:
    with pytest.raises(RecipeError) as caught:
        parse(Recipe, read_yaml(recipe, place="recipe"), place="rl")
    (line,) = str(caught.value).splitlines()
    assert line.startswith("rl.")
    assert message in line


def test_all_mistakes_are_named_at_once() -> None:
    text = "sede: 1\nlr: no\nstages: [{}]\nalgorithm: {kind: dapo, clip_low: x, clip_hgih: 1}\nfilters: [nix, {kind: dapo, a: 1}]"
    with pytest.raises(RecipeError) as caught:
        parse(Recipe, read_yaml(text, place="recipe"))
    places = sorted(line.split(":")[0] for line in str(caught.value).splitlines())
    assert places == [
        "algorithm.clip_hgih",
        "algorithm.clip_low",
        "filters.0",
        "filters.1.a",
        "lr",
        "sede",
        "stages.0.until_step",
    ]


def test_a_union_says_what_each_member_wants() -> None:
    with pytest.raises(RecipeError) as caught:
        parse(Recipe, {"measure": "last_epok"})
    assert str(caught.value).splitlines() == [
        "measure: should be 'last_epoch'; found 'last_epok'; did you mean 'last_epoch'?",
        "measure: should be a valid integer; found 'last_epok'",
    ]


def test_a_kind_that_misses_a_module_of_its_own_says_which() -> None:
    with pytest.raises(ModuleNotFoundError, match="a_module_that_is_missing"):
        parse(Recipe, {"algorithm": "broken"})


def test_values_arrive_as_their_types() -> None:
    raw = {
        "lr": 1,
        "out": "runs/a",
        "schedule": "deterministic",
        "measure": 4,
        "stages": [{"until_step": 3}],
        "algorithm": "dapo",
        "filters": ["correct", {"kind": "my_lab.own", "n": 5}],
        "budget": Budget(context_tokens=512),
    }
    recipe = parse(Recipe, raw)
    assert recipe.lr == 1.0
    assert isinstance(recipe.lr, float)
    assert recipe.out == Path("runs/a")
    assert recipe.schedule is Schedule.DETERMINISTIC
    assert recipe.measure == 4
    assert recipe.stages == (Stage(until_step=3),)
    assert recipe.budget.context_tokens == 512
    assert recipe.algorithm == kind("room", "dapo")
    assert recipe.algorithm is not None
    assert recipe.algorithm.module.__name__ == "room.dapo"
    assert [(chosen.name, chosen.module.__name__) for chosen in recipe.filters] == [
        ("correct", "room.correct"),
        ("my_lab.own", "my_lab.own"),
    ]
    assert recipe.filters[1].settings.n == 5


def test_a_kind_named_in_code_is_checked_too() -> None:
    assert kind("room", "dapo", clip_high=0.3, inner=kind("room", "correct")).settings.inner.name == "correct"
    with pytest.raises(RecipeError, match=r"dapo\.clip_hgih: unknown key; did you mean 'clip_high'"):
        kind("room", "dapo", clip_hgih=0.3)


def test_a_rooms_kinds_are_its_public_modules() -> None:
    assert kinds("room") == ["broken", "correct", "dapo", "no_kind"]


STAGES = st.builds(Stage, until_step=st.integers(1, 10**6))
KINDS = st.builds(lambda low: ("dapo", {"clip_low": low}), st.floats(1e-9, 0.28))
RECIPES = st.fixed_dictionaries(
    {},
    optional={
        "seed": st.integers(-(2**63), 2**63 - 1),
        "lr": st.floats(min_value=0, exclude_min=True, allow_nan=False),
        "share": st.floats(0, 1),
        "name": st.text()
        | st.sampled_from(["off", "1e-5", "null", "~", "0x1F", "012", "1:30", "2026-01-01", "<<", "=", "a "]),
        "out": st.none() | st.sampled_from([Path("a/b"), Path("/off"), Path("1")]),
        "greedy": st.booleans(),
        "schedule": st.sampled_from(Schedule),
        "measure": st.just("last_epoch") | st.integers(0, 9),
        "stages": st.lists(STAGES, max_size=2),
        "named": st.dictionaries(st.text(max_size=5), STAGES, max_size=2),
        "validation": st.none() | STAGES,
    },
)


@given(values=RECIPES, chosen=st.none() | KINDS)
def test_dump_write_read_parse_gives_an_equal_value(
    values: dict[str, Any], chosen: tuple[str, dict[str, float]] | None
) -> None:
    algorithm = None if chosen is None else kind("room", chosen[0], **chosen[1])
    recipe = parse(Recipe, {**values, "algorithm": algorithm})
    text = write_yaml(dump(recipe))
    assert parse(Recipe, read_yaml(text, place="resolved")) == recipe


def test_an_override_can_reach_everywhere() -> None:
    raw = {"algorithm": "dapo", "filters": ["correct", "my_lab.own"], "stages": [{"until_step": 1}]}
    overrides = [
        "algorithm.clip_high=0.4",
        "filters.1.n=9",
        "stages.0.budget.context_tokens=512",
        "lr=1e-5",
        "name='off'",
    ]
    recipe = parse(Recipe, apply_overrides(raw, overrides))
    assert recipe.algorithm is not None
    assert recipe.algorithm.settings.clip_high == 0.4
    assert recipe.filters[1].settings.n == 9
    assert recipe.stages[0].budget.context_tokens == 512
    assert (recipe.lr, recipe.name) == (1e-5, "off")
    assert raw == {"algorithm": "dapo", "filters": ["correct", "my_lab.own"], "stages": [{"until_step": 1}]}


@settings
class Section:
    algorithm: Annotated[Kind, In("room")] = field(default_factory=lambda: kind("room", "dapo"))


@settings
class Sections:
    section: Section | None = None


def test_a_default_s_kind_holds_until_another_is_named() -> None:
    recipe = parse(Sections, apply_overrides({}, ["section.algorithm.clip_high=0.4"]))
    assert recipe.section is not None
    assert recipe.section.algorithm == kind("room", "dapo", clip_high=0.4)
    recipe = parse(Sections, apply_overrides({"section": {"algorithm": "my_lab.own"}}, ["section.algorithm.n=4"]))
    assert recipe.section is not None
    assert recipe.section.algorithm == kind("room", "my_lab.own", n=4)
    with pytest.raises(RecipeError, match=r"section\.algorithm\.clip_hig: unknown key; did you mean 'clip_high'"):
        parse(Sections, apply_overrides({}, ["section.algorithm.clip_hig=0.4"]))
