"""Every benchmark that ships: whole or refused, ids unique, gold answers right, license and source written down."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from thincode.errors import DataError
from thincode.evaluation.suites import Part
from thincode.grading.answers import Grader
from thincode.problems import Problem
from thincode.settings import kind, kinds

ROOM, SUITES = "thincode.evaluation.benchmarks", "thincode.evaluation.suites"

BENCHMARKS = [
    ("aime", {"year": 2024}, "aime24", 30, "aime2024.jsonl"),
    ("aime", {"year": 2025}, "aime25", 30, "aime2025.jsonl"),
    ("aime", {"year": 2026}, "aime26", 30, None),
    ("hmmt", {}, "hmmt25", 30, "hmmt_feb_2025.jsonl"),
    ("beyond_aime", {}, "beyond_aime", 100, None),
    ("math500", {}, "math500", 500, "math500.jsonl"),
    ("amc", {}, "amc23", 40, "amc23.jsonl"),
    ("olymmath", {"level": "easy"}, "olymmath_easy", 100, "olymmath_en_easy.jsonl"),
    ("olymmath", {"level": "hard"}, "olymmath_hard", 100, None),
    ("gsm8k", {}, "gsm8k", 1319, "gsm8k_test.jsonl"),
]
"""Kind, which, tag, problems, and the name of a real file."""
TITLES = [title for _, _, title, _, _ in BENCHMARKS]


def load(name: str, path: Path, **values: Any) -> list[Problem]:
    chosen = kind(ROOM, name, path=path, **values)
    return list(chosen.module.load(chosen.settings))


def contest(path: Path, count: int) -> Path:
    rows = [{"problem": f"What is {n}+{n}?", "answer": 2 * n, "subject": "sums", "level": 3} for n in range(count)]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def grader() -> Iterator[Grader]:
    with Grader() as shared:
        yield shared


def test_the_table_has_every_benchmark_that_ships() -> None:
    assert {name for name, *_ in BENCHMARKS} == set(kinds(ROOM))


@pytest.mark.parametrize("name", kinds(ROOM))
def test_license_source_and_hub_stand_in_the_docstring(name: str) -> None:
    words = kind(ROOM, name).module.__doc__ or ""
    assert all(f"\n{field}: " in words for field in ("License", "Source", "Hub"))


@pytest.mark.parametrize(("name", "which", "title", "count", "file"), BENCHMARKS, ids=TITLES)
def test_a_contest_is_whole_or_refused(
    name: str, which: dict[str, Any], title: str, count: int, file: str | None, tmp_path: Path
) -> None:
    whole = contest(tmp_path / "whole.jsonl", count)
    found = load(name, whole, **which)
    assert len({problem.id for problem in found}) == count
    assert {problem.tags["benchmark"] for problem in found} == {title}
    part = load(name, whole, first=2, limit=3, **which)
    assert part == found[2:5]
    with pytest.raises(DataError, match=f"none from number {count} on"):
        load(name, whole, first=count, **which)
    with pytest.raises(DataError, match=f"{count - 1} problems, but {title} has {count}"):
        load(name, contest(tmp_path / "short.jsonl", count - 1), **which)


@pytest.mark.parametrize(
    ("name", "which", "title", "count", "file"),
    [row for row in BENCHMARKS if row[4]],
    ids=[r[2] for r in BENCHMARKS if r[4]],
)
def test_real_gold_answers_are_right(
    name: str, which: dict[str, Any], title: str, count: int, file: str, data_dir: Path, grader: Grader
) -> None:
    found = load(name, data_dir / file, **which)
    assert len({problem.id for problem in found}) == len(found) == count
    assert [p.answer for p in found if not grader.grade(p.answer, p.answer).correct] == []
    if title == "math500":
        assert {"subject", "level"} <= set(found[0].tags)
    if title == "olymmath_easy":
        assert sum(problem.tags["subject"] == "Geometry" for problem in found) == 33


def parts(name: str, **values: Any) -> list[Part]:
    chosen = kind(SUITES, name, **values)
    return list(chosen.module.parts(chosen.settings))


def test_the_suites_sample_as_their_papers_do() -> None:
    protocols = {
        name: [(p.name, p.samples, p.temperature, p.top_p, p.turn_tokens) for p in parts(name)]
        for name in kinds(SUITES)
    }
    assert protocols == {
        "thinc": [(name, 16, 0.6, 1.0, None) for name in ("aime24", "aime25", "aime26", "hmmt25", "beyond_aime")],
        "cir": [
            ("math500", 1, 0.0, 0.95, 16_384),
            *((name, 16, 1.0, 0.95, 16_384) for name in ("amc23", "aime24", "aime25", "olymmath_easy")),
        ],
    }
    assert {part.context_tokens for part in parts("thinc")} == {32 * 1024}
    assert parts("cir", olymmath="hard")[-1].benchmark.settings.level == "hard"


@pytest.mark.parametrize("name", kinds(SUITES))
def test_a_suite_takes_the_files_that_are_there(name: str, tmp_path: Path) -> None:
    contest(tmp_path / "aime2025.jsonl", 30)
    paths = {part.name: part.benchmark.settings.path for part in parts(name, data=tmp_path, samples=2, limit=4)}
    assert paths.pop("aime25") == tmp_path / "aime2025.jsonl"
    assert set(paths.values()) == {None}
    assert {part.samples for part in parts(name, samples=2)} <= {1, 2}
    for part in parts(name):
        assert part.benchmark.module.load  # the benchmark exists
