"""Each preset behaves as the interpreter of the system it is named after."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from thincode.errors import RecipeError
from thincode.interpreter import BlockResult, Limits, Status, open_interpreter
from thincode.interpreter._preset_session import PresetInterpreter
from thincode.interpreter.backends import python
from thincode.interpreter.presets import PRESETS, Keeps, Preset, preset
from thincode.runs.recipe import Recipe
from thincode.settings import kind, parse

TRACE = "Traceback (most recent call last):\n"
ZERO = "ZeroDivisionError: division by zero"


@dataclass(frozen=True)
class Row:
    """What is known of one system, by hand."""

    limits: tuple[float, float, int]
    """CPU seconds, wall seconds, MiB."""
    state: str
    """What `print(x, y)` shows after `x = 1`, then `y = 2; print('noise'); 1 / 0`."""
    echo: str
    """What `2 + 3` shows."""
    failed: str
    """What `print('before')` and `1 / 0` show, or its beginning."""
    cut: tuple[int, str] | None
    """Characters kept of each end of a long output, and what stands between; None: all is shown."""
    late: str
    """What an endless loop shows, or its beginning."""


NOTHING = "NameError: name 'x' is not defined"
ROWS = {
    "aster": Row((30, 30, 1024), "1 2\n", "5\n", "before\n" + TRACE, None, "Stopped: "),
    "cir": Row((5, 5, 300), NOTHING, "", ZERO, (200, "..."), "Timeout Error"),
    "cort": Row((30, 30, 300), "NameError: name 'y' is not defined", "", "before\n" + TRACE, (400, "..."), "Timeout Error"),
    "demyagent": Row((30, 30, 2048), NOTHING, "5\n", "before\n" + TRACE, (128, "...(truncated)..."), "no stdout here"),
    "pal": Row((10, 10, 300), NOTHING, "NameError: name 'solution' is not defined", ZERO, None, "Stopped: "),
    "pot": Row((5, 5, 300), NOTHING, "NameError: name 'ans' is not defined", ZERO, None, "Stopped: "),
    "qwen_tir": Row((5, 5, 300), NOTHING, "", ZERO, (200, "..."), "Timeout Error"),
    "retool": Row((5, 5, 300), NOTHING, "", ZERO, (200, "..."), "Timeout Error"),
    "rstar2": Row((4, 4, 300), "1 2\n", "5\n", "before\n" + TRACE, (128, "...(truncated)..."), "Stopped: "),
    "rstar2_standard_io": Row((4, 4, 300), NOTHING, "5\n", "before\n" + TRACE, (128, "...(truncated)..."), "Stopped: "),
    "simpletir": Row((4, 4, 300), NOTHING, "", ZERO, (256, "..."), "Stopped: "),
    "tool_star": Row((5, 5, 300), NOTHING, "", ZERO, None, "Timeout Error"),
    "tora": Row((5, 5, 300), NOTHING, "IndexError: list index out of range", ZERO, (50, "..."), "Timeout Error"),
    "torl": Row((10, 10, 300), NOTHING, "Timeout Error", ZERO, (128, "..."), "Timeout Error"),
    "verl": Row((30, 30, 1024), NOTHING, "5\n", "before\n" + TRACE, (128, "...(truncated)..."), "no stdout here"),
}  # fmt: skip


class Bench:
    """One bare interpreter, under any preset."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        limits = PRESETS["cir"].limits(Limits(memory_mib=300))
        self.inner = python.open(python.Settings(preload=(), pool=2), limits=replace(limits, cpu_s=0.3, wall_s=5))

    def run(self, sheet: Preset, *blocks: str) -> list[BlockResult]:
        async def all_blocks() -> list[BlockResult]:
            async with await PresetInterpreter(self.inner, sheet).session() as session:
                return [await session.run(block) for block in blocks]

        return self.loop.run_until_complete(all_blocks())


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.loop.run_until_complete(made.inner.close())
    made.loop.run_until_complete(made.loop.shutdown_default_executor())
    made.loop.close()


def test_every_preset_has_its_row() -> None:
    assert set(ROWS) == set(PRESETS)


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_what_its_system_is(name: str, bench: Bench) -> None:
    sheet, row = PRESETS[name], ROWS[name]
    limits = sheet.limits(Limits(memory_mib=300))
    assert (limits.cpu_s, limits.wall_s, limits.memory_mib) == row.limits
    (shown,) = bench.run(sheet, "2 + 3")
    assert shown.output.endswith(row.echo)
    assert bool(shown.output) is bool(row.echo)
    # Where a program's value is asked for it has one, so that the rest is about the block itself.
    plain = replace(sheet, rewrite=PRESETS["cir"].rewrite)
    _, _, third = bench.run(plain, "x = 1", "y = 2; print('noise')\n1 / 0", "print(x, y)")
    assert third.output.rstrip().endswith(row.state.rstrip())
    assert "noise" not in third.output
    (failed,) = bench.run(plain, "print('before')\n1 / 0")
    assert (failed.status, failed.detail) == (Status.ERROR, "ZeroDivisionError")
    assert failed.output.startswith(row.failed)
    (long,) = bench.run(plain, "print('a' * 1000 + 'z' * 1000)")
    half, mark = row.cut or (1000, "")
    breaks = not sheet.last_printed
    assert long.output == f"{'a' * half}{mark}{'z' * (half - bool(row.cut and breaks))}" + "\n" * breaks
    assert long.cut_chars == (2000 + breaks - 2 * half if row.cut else 0)
    (late,) = bench.run(plain, "while True: pass")
    assert (late.status, late.detail) == (Status.LIMIT, "time")
    assert late.output.startswith(row.late)


def test_programs_give_their_value(bench: Bench) -> None:
    assert bench.run(PRESETS["pal"], "def solution():\n    return 6 * 7")[0].output == "42\n"
    assert bench.run(PRESETS["pot"], "ans = 6 * 7")[0].output == "42\n"


def test_tora_shows_the_last_line_that_was_printed(bench: Bench) -> None:
    one, two, failed = bench.run(
        PRESETS["tora"], "print(1)", "print('first')\nprint(' 2 ')\nprint()", "print(1)\n1 / 0"
    )
    assert [(one.output, one.cut_chars), (two.output, two.cut_chars), failed.output] == [("1", 0), ("2", 7), ZERO]
    assert bench.run(PRESETS["qwen_tir"], "print(1)\nprint(2)")[0].output == "1\n2\n"


X = "class X:\n    def __init__(self, name): self.name = name\n    def __repr__(self): return self.name\nx, y = X('x'), X('y')\n"


@pytest.mark.parametrize(
    ("ans", "printed"),
    [
        ("{x: 5, y: 6}", "5"),
        ("[x, 3]", "x"),
        ("(1 / 2, 2)", "0.5"),
        ("[[1, 2], 3]", "[1, 2]"),
        ("[]", "[]"),
        ("{}", "{}"),
        ("'ab'", "ab"),
        ("[list, next, iter, print] = [[1]] * 4", "[1]"),
    ],
)
def test_of_a_list_or_dict_pot_takes_the_first(ans: str, printed: str, bench: Bench) -> None:
    assert bench.run(PRESETS["pot"], f"{X}ans = {ans}")[0].output == f"{printed}\n"


def test_what_the_recipes_of_verl_and_simpletir_add(bench: Bench) -> None:
    assert bench.run(PRESETS["verl"], "x = 6\nx * 7\n\n")[0].output == "42\n"
    assert bench.run(PRESETS["verl"], "x = 6")[0].detail == "TypeError"  # print(x = 6): its rule looks at text only
    assert bench.run(PRESETS["simpletir"], "final_answer(42)")[0].output == "\\boxed{42}\n"


def test_repeated_blocks_are_silent_and_lose_what_the_rule_drops(bench: Bench) -> None:
    blocks = ("import random\nx = random.random()\nprint(x)", "print((y := 1))", "x, random.random()", "y")
    every, good = (bench.run(PRESETS[name], *blocks) for name in ("rstar2", "cort"))
    assert every[2].output.startswith(f"({every[0].output.strip()}, ")  # seeded, so the repetition draws the same
    assert every[3].output == "1\n"
    assert good[3].detail == "NameError"  # it was defined on a line that prints
    nested = ("x = 1\npprint = print\nprint(x)", "y = 2\nif y:\n    print(y)", "print(x)", "print(y)")
    assert [result.detail for result in bench.run(PRESETS["cort"], *nested)] == ["", "", "", "NameError"]


def test_branches_share_what_ran(bench: Bench) -> None:
    async def run(name: str) -> list[str]:
        async with await PresetInterpreter(bench.inner, PRESETS[name]).session() as session:
            await session.run("x = [1]")
            branches = await session.fork(2)
            outputs = [(await branch.run("x.append(2)\nprint(x)")).output for branch in branches]
            for branch in branches:
                await branch.close()
            return outputs

    assert bench.loop.run_until_complete(run("aster")) == ["[1, 2]\n"] * 2
    assert bench.loop.run_until_complete(run("rstar2")) == ["[1, 2]\n"] * 2
    assert bench.loop.run_until_complete(run("cir")) == [NOTHING] * 2


@pytest.mark.parametrize(
    ("format", "preset", "found"),
    [
        ("cir", "published", "cir"),
        ("thinc", "published", None),
        ("cir", None, None),
        ("cir", "verl", "verl"),
        ("cot", "verl", "verl"),
    ],
)
def test_a_recipe_takes_the_preset_of_its_formats_system(format: str, preset: str | None, found: str | None) -> None:
    recipe = parse(Recipe, {"format": format, "interpreter": {"preset": preset}})
    assert recipe.interpreter.preset_of(recipe.format) == found
    assert parse(Recipe, {"format": "pal"}).interpreter.preset == "published"


def test_a_setting_of_a_format_chooses_among_its_systems_interpreters() -> None:
    for tool, found in (("jupyter_code", "rstar2"), ("python_code_with_standard_io", "rstar2_standard_io")):
        recipe = parse(Recipe, {"format": {"kind": "rstar2", "tool": tool}})
        assert recipe.interpreter.preset_of(recipe.format) == found


def test_a_recipe_names_a_preset_and_hears_of_a_wrong_name() -> None:
    assert parse(Recipe, {"format": "tir", "interpreter": {"preset": "cir"}}).interpreter.preset == "cir"
    with pytest.raises(RecipeError, match=r"interpreter\.preset: no preset 'rstar'; did you mean 'rstar2'"):
        parse(Recipe, {"format": "tir", "interpreter": {"preset": "rstar"}})
    with pytest.raises(RecipeError, match="no preset 'nil'"):
        preset("nil")


def test_state_and_error_text_can_be_set_without_a_preset_and_in_place_of_its_own() -> None:
    async def shown(**changed: Any) -> list[str]:
        limits = Limits(cpu_s=5.0, wall_s=10.0, output_chars=300)
        backend = kind("thincode.interpreter.backends", "python", preload=[])
        blocks = ("x = 1\nx", "print('before')\n1 / 0", "print(x)")
        async with (
            open_interpreter(backend, limits=limits, **changed) as interpreter,
            await interpreter.session(seed=1) as session,
        ):
            return [(await session.run(code)).output for code in blocks]

    plain, bare, strict, cir = (
        asyncio.run(shown(**changed))
        for changed in (
            {},
            {"keeps": Keeps.ALL},
            {"keeps": Keeps.NOTHING, "last_line": True},
            {"preset": "cir", "keeps": Keeps.ALL},
        )
    )
    assert bare == plain
    assert plain[1].startswith("before\nTraceback")
    assert plain[2] == "1\n"
    assert strict == ["1\n", ZERO, NOTHING]
    assert cir == ["", ZERO, "1\n"]
