"""`thincode measure`, `compare` and `scores`: foreign transcripts and run folders, measured, compared and written down."""

from __future__ import annotations

import importlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from thincode.cli import main
from thincode.evaluation.scorecard import read
from thincode.grading import records
from thincode.runlog import Progress
from thincode.runs import measure
from thincode.runs.recipe import default_metrics
from thincode.settings import kind
from thincode.trajectory import published
from thincode.trajectory.formats import build
from thincode.trajectory.store import Store
from unit.evaluation.build import row

TORA = (
    "I add them.\n```python\nprint(1/0)\n```\n```output\nZeroDivisionError: division by zero\n```\n"
    "```python\nprint(40 + 2)\n```\n```output\n42\n```\nIt is $\\boxed{42}$."
)


def transcripts(path: Path, count: int = 3) -> Path:
    rows = [
        {
            "id": f"p{n:04}",
            "problem": "40 + 2?",
            "trajectory": TORA,
            "answer": "42" if n % 3 else "41",
            "correct": True,
            "level": n % 2,
        }
        for n in range(count)
    ]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


def run_folder(path: Path, marks: dict[str, str]) -> Path:
    with Store(path, keep_ids=False) as store:
        for problem, right in marks.items():
            for sample, mark in enumerate(right):
                said = row(
                    problem, "p | f() -> 1 | 1", answer="1", correct=mark == "1", sample=sample, tags={"family": "gcd"}
                )
                store.append(said.trajectory, records.annotations(said))
    return path


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(words) == 0
    return capsys.readouterr().out


def test_foreign_transcripts_are_graded_and_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = transcripts(tmp_path / "theirs.jsonl"), tmp_path / "card.json"
    assert main(["measure", str(file), "--format", "tora", "--quiet", "--out", str(out)]) == 0
    said = capsys.readouterr()
    assert "agrees in 2 of 3: p0000" in said.err
    values = {one.name: one.value for one in read(out).estimates}
    assert (values["avg@1"], values["grounded"], values["recovery@1"]) == (
        pytest.approx(2 / 3),
        1.0,
        pytest.approx(2 / 3),
    )
    assert values["block pass rate"] == 0.5
    assert [line.split()[0] for line in said.out.splitlines()[1:3]] == ["avg@1", "avg@1"]


def test_a_format_that_finds_no_block_is_doubted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = transcripts(tmp_path / "theirs.jsonl")
    assert main(["measure", str(file), "--format", "retool", "--quiet"]) == 0
    told = capsys.readouterr().err
    assert "retool finds no block that ran; in the first 3 rows " in told
    assert "tora" in told
    for fits in ("tora", "cot"):  # with blocks, or without any to find
        assert main(["measure", str(file), "--format", fits, "--quiet"]) == 0
        assert "no block" not in capsys.readouterr().err


@pytest.mark.parametrize("style", ["csv", "markdown", "latex"])
def test_a_scorecard_is_printed_in_every_style(style: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "measure", str(run_folder(tmp_path / "run", {"a": "1"})), "--quiet", "--as", style)
    assert "avg@1" in text
    assert {"csv": "scorecard,name", "markdown": "| ---", "latex": "\\\\\n"}[style] in text


def test_many_processes_find_what_one_finds(tmp_path: Path) -> None:
    file = transcripts(tmp_path / "theirs.jsonl", 450)

    def measured(processes: int) -> measure.Measured:
        return measure.run(
            file,
            format=kind("thincode.trajectory.formats", "tora"),
            metrics=default_metrics(),
            progress=lambda *a, **k: Progress(*a, **k, quiet=True),
            processes=processes,
        )

    assert measured(2) == measured(1)


def test_runs_are_compared_and_their_scorecards_set_side_by_side(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a = run_folder(tmp_path / "a", {"p": "10", "q": "00", "r": "01"})
    b = run_folder(tmp_path / "b", {"p": "11", "q": "10", "r": "01"})
    found = json.loads(printed(capsys, "compare", str(a), str(b), "--groups", "family", "--json"))
    values = {one["name"]: one["value"] for one in found[0]["estimates"]}
    assert values["difference"] == values["difference/family=gcd"] == pytest.approx(1 / 3)
    assert values["accuracy ratio"] == 2.0
    assert "McNemar p" in printed(capsys, "compare", str(a), str(b))
    for folder in (a, b):
        printed(capsys, "measure", str(folder), "--quiet", "--out", str(folder / "scorecard.json"))
    header = printed(capsys, "scores", str(a), str(b), "--as", "csv").splitlines()
    assert {line.split(",")[0] for line in header[1:]} == {"a", "b"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["measure", "nowhere.jsonl", "--format", "tora"], "nowhere.jsonl: no such file"),
        (["measure", "{file}"], "--format NAME"),
        (["measure", "{file}", "--format", "torra"], "torra"),
        (["measure", "{empty}"], "no trajectories.jsonl"),
        (["measure", "{broken}", "--format", "tora"], "broken.jsonl:1: not JSON"),
        (["measure", "{goldless}", "--format", "tora"], "goldless.jsonl:1: no gold answer"),
        (["compare", "{empty}", "{empty}"], "no evaluation there"),
        (["compare", "{run}"], "name two runs or more"),
        (["scores", "{run}"], "no scorecard.json there"),
    ],
)
def test_mistakes_are_named(
    words: Sequence[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken.jsonl").write_text("{", encoding="utf-8")
    (tmp_path / "goldless.jsonl").write_text(json.dumps({"text": "x"}), encoding="utf-8")
    places = {
        "file": transcripts(tmp_path / "file.jsonl"),
        "run": run_folder(tmp_path / "run", {"a": "1"}),
        **{
            name: tmp_path / f"{name}{end}"
            for name, end in (("empty", ""), ("broken", ".jsonl"), ("goldless", ".jsonl"))
        },
    }
    assert main([word.format(**places) for word in words]) == 2
    assert message in capsys.readouterr().err


# --- published transcripts --------------------------------------------------------------------------------------------

DISAGREE = {
    "traj_mathcoder": {
        "mathcoder-cl-13b-mathematics-0588": "the gold answer is the list [103] of one number, and 103 was said",
        "mathcoder-cl-13b-mathematics-0826": "the gold answer is the list [37], and 37 was said",
    },
    "traj_tora_gsm8k": {
        "tora-tora-70b-0118": "no box: the right number stands in prose",
        "tora-tora-70b-0718": "no box",
        "tora-tora-code-34b-0718": "no box",
        "tora-tora-70b-1206": "the gold answer is written 40,000, and 40000 was said",
        "tora-tora-code-34b-1206": "the same",
    },
}
"""Where we grade otherwise than the file says, each with its reason."""

OK, ER = "ok", "error"
BY_HAND = {
    **{"mathcoder-cl-13b-mathematics-0102": [OK, OK], "mathcoder-cl-13b-mathematics-0244": [OK, OK]},
    **{
        "mathcoder-cl-13b-mathematics-0344": [OK] * 5,
        "mathcoder-cl-13b-mathematics-0404": [OK, OK, OK, OK, ER, OK, OK],
    },
    **{"mathcoder-cl-13b-mathematics-0648": [ER, OK], "mathcoder-cl-13b-mathematics-0764": [OK]},
    **{"mathcoder-cl-13b-mathematics-0930": [ER, OK, OK], "mathcoder-cl-13b-simuleq-0086": [OK]},
    **{"mathcoder-cl-13b-simuleq-0270": [OK], "mathcoder-cl-34b-SVAMP-0002": [OK, OK]},
    **{"mathcoder-cl-34b-SVAMP-0260": [OK] * 4, "mathcoder-cl-34b-SVAMP-0518": [OK]},
    **{"mathcoder-cl-34b-SVAMP-0668": [OK] * 3, "mathcoder-cl-34b-SVAMP-0848": [OK, OK]},
    **{f"tora-tora-70b-{n}": [OK] for n in ("0028", "0480", "1078")},
    **{f"tora-tora-code-34b-{n}": [OK] for n in ("0198", "0580", "1000")},
}
"""Twenty transcripts, read and counted by hand."""


@pytest.mark.parametrize("name", DISAGREE)
def test_correctness_is_what_the_file_says_but_for_what_is_explained(
    name: str, data_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    format = name.split("_")[1]
    found = json.loads(
        printed(capsys, "measure", str(data_dir / f"{name}.jsonl"), "--format", format, "--quiet", "--json")
    )
    assert found["claimed"] == 150
    assert set(found["disagree"]) == set(DISAGREE[name])
    ours = transcripts(tmp_path / "ours.jsonl")
    small = json.loads(printed(capsys, "measure", str(ours), "--format", "tora", "--quiet", "--json"))
    assert {one["name"] for one in found["estimates"]} >= {one["name"] for one in small["estimates"]}


def test_blocks_and_statuses_are_those_of_a_hand_count(data_dir: Path) -> None:
    counted = {}
    for name in DISAGREE:
        format = build(kind("thincode.trajectory.formats", name.split("_")[1]))
        for one in published.read(data_dir / f"{name}.jsonl", format=format):
            if one.row["id"] in BY_HAND:
                counted[one.row["id"]] = [s.block.status.value for s in one.trajectory.blocks if s.block]
    assert len(BY_HAND) == 20
    assert counted == BY_HAND


def test_the_speed_script_measures_what_it_writes(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[3] / "perf")
    script: Any = importlib.import_module("measure")
    rows = script.originals(data_dir)
    lines = list(script.copies(rows, 41))
    assert len({line["address"]["problem"] for line in lines}) == 41
    long = [s["content"].count("\n") >= 300 for line in lines[::20] for s in line["segments"] if s["kind"] == "code"]
    assert sum(long) >= 3
