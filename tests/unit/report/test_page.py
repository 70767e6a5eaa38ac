"""What a page shows of a run folder, and what it says of what is not there."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from thincode import atomic
from thincode.errors import DataError, RunFolderError
from thincode.evaluation import Estimate
from thincode.report import build
from thincode.report._compared import by_k
from thincode.report._published import published
from thincode.report._read import read_run
from thincode.report._records import _segment
from thincode.trajectory import Segment, SegmentKind
from unit.report import folders
from unit.report.pages import Page


@pytest.fixture
def pipeline(tmp_path: Path) -> Path:
    return folders.write_pipeline(tmp_path / "run")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The text of a pipeline's page, spaces squeezed."""
    return " ".join(Page(build(folders.write_pipeline(tmp_path_factory.mktemp("whole") / "run"))).text.split())


def test_a_pipeline_run_becomes_one_page_with_every_section(pipeline: Path) -> None:
    page = Page(build(pipeline))
    assert page.sections == [
        "result", "training", "data", "scores", "grounding", "recovery", "efficiency", "trajectories", "published", "run",
    ]  # fmt: skip
    assert "Not in this folder" not in page.text
    assert "avg@2 went from 0% (Base) to 72.5% (Final) on 10 problems, 2 samples each." in page.text
    assert "The teacher gave 50 trajectories; 31 passed every filter." in page.text


@pytest.mark.parametrize(
    "said",
    [
        "small run",
        "6 min 00 s in all: Distill 30 s, SFT 1 min 00 s, RL 4 min 30 s.",
        "dropped: wrong answer",
        "−12 (24.0%)",
        "Lucky: kept, although the program carries a flaw",
        "72.5% [62.5, 82.5]",
        "undefined n = 0",
        "+32.5 points",
        "chance level",
        "avg@2 by family",
        "a jump of the reward at a line comes from that, not from an update",
        "RL: novel",
        "Only the rows and columns named after this run were measured here.",
        "88.3 ± 8.8",
    ],
)
def test_the_page_says(whole: str, said: str) -> None:
    assert said in whole


def test_the_page_goes_where_it_is_told(pipeline: Path, tmp_path: Path) -> None:
    assert build(pipeline) == pipeline / "report.html"
    assert build(pipeline, tmp_path / "talk.html") == tmp_path / "talk.html"
    assert (tmp_path / "talk.html").read_bytes() == (pipeline / "report.html").read_bytes()


def test_a_trajectory_keeps_its_text_authors_statuses_and_answer(pipeline: Path) -> None:
    row = next(row for row in Page(build(pipeline)).data if row["c"] == "2-final")
    original = folders.trajectory("p0", stage="evaluate/final")
    assert "".join(part["x"] for part in row["s"]) == original.text
    assert [part.get("w", "model") for part in row["s"]] == [
        "model", "model", "interpreter", "driver", "model", "interpreter", "model",
    ]  # fmt: skip
    assert [(part["b"]["s"], part["b"]["d"], part["b"]["t"]) for part in row["s"] if "b" in part] == [
        ("error", "NameError", 0.25),
        ("ok", "", 1.5),
    ]
    answer = row["s"][-1]
    assert answer["x"][slice(*answer["m"])] == "\\boxed{42}"
    output = row["s"][5]
    assert output["x"][slice(*output["in"])] == "42"


def test_code_in_escapes_and_a_tools_turn_are_shown_as_the_interpreter_had_them() -> None:
    call = '<tool_call>\n{"name": "code_interpreter", "arguments": {"code": "a = 1\\nprint(a)"}}\n</tool_call>'
    code = _segment(Segment(SegmentKind.CODE, call, "a = 1\nprint(a)"))
    assert code["x"] == "<tool_call>\na = 1\nprint(a)\n</tool_call>"
    assert code["x"][slice(*code["in"])] == "a = 1\nprint(a)"
    heard = _segment(
        Segment(SegmentKind.OUTPUT, "<|im_end|>\n<|im_start|>user\n<tool_response>\nuser\n</tool_response>", "user")
    )
    assert heard["x"][: heard["in"][0]].endswith("<tool_response>\n")


def test_spans_that_ground_an_answer_are_marked_in_the_output(tmp_path: Path) -> None:
    one = folders.trajectory("p0")
    spans = [{"output": n, "start": a, "end": b, "status": "ok"} for n, a, b in ((1, 0, 2), (9, 0, 1), (1, 7, 9))]
    grounded = [{"problem": "p0", "sample": 0, "spans": spans}]
    folders.write_checkpoint(tmp_path / "run", [], [one], grounded=grounded)
    output = Page(build(tmp_path / "run")).data[0]["s"][5]
    assert [output["x"][slice(*span)] for span in output["h"]] == ["42"]


@pytest.mark.parametrize(
    ("kept", "shown", "left_out"),
    [
        ("sft", ["training"], "rl/metrics.jsonl"),
        ("rl", ["training"], "sft/metrics.jsonl"),
        ("distill", ["data"], "evaluate/*/scorecard.json"),
        ("evaluate", ["result", "scores", "trajectories"], "distill/funnel.json"),
        ("evaluate/1-sft", ["result", "scores", "trajectories"], "timing.json"),
    ],
)
def test_a_folder_of_one_step_shows_what_there_is_and_says_what_is_not(
    pipeline: Path, kept: str, shown: list[str], left_out: str
) -> None:
    page = Page(build(pipeline / kept))
    assert set(shown) <= set(page.sections)
    assert "Not in this folder" in page.text
    assert left_out in page.text


def test_a_run_that_has_just_begun_has_a_page(tmp_path: Path) -> None:
    atomic.write_text(tmp_path / "recipe.resolved.yaml", "seed: 3\n")
    page = Page(build(tmp_path))
    assert page.sections == ["published", "run"]
    assert page.data == []


def test_a_missing_or_empty_folder_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match=r"nowhere: no such run folder"):
        build(tmp_path / "nowhere")
    with pytest.raises(RunFolderError, match=r"nothing of a run in it; .*recipe\.resolved\.yaml"):
        build(tmp_path)


def test_a_run_of_a_newer_version_is_refused(pipeline: Path) -> None:
    atomic.write_json(pipeline / "environment.json", {"format": 10**6})
    with pytest.raises(RunFolderError, match="newer thincode"):
        build(pipeline)


@pytest.mark.parametrize("name", ["timing.json", "distill/funnel.json", "evaluate/0-base/scorecard.json"])
@pytest.mark.parametrize("text", ["{", "[1]"])
def test_a_broken_file_is_named(pipeline: Path, name: str, text: str) -> None:
    (pipeline / name).write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=name):
        build(pipeline)


def test_steps_are_numbered_from_zero_and_counted_from_one(tmp_path: Path) -> None:
    rows = [{"stage": "rl-1", "step": step, "reward_mean": 0.5} for step in range(6)]
    folders.write_log(tmp_path / "rl" / "metrics.jsonl", rows)
    assert "The log has 6 steps of RL." in Page(build(tmp_path)).text


def test_stages_whose_logs_start_again_share_one_axis(tmp_path: Path) -> None:
    folders.write_log(
        tmp_path / "a" / "rl" / "metrics.jsonl", folders.rl_rows({"rl-1": 9, "rl-2": 4, "rl-3": 5}, restart=True)
    )
    folders.write_log(tmp_path / "b" / "rl" / "metrics.jsonl", folders.rl_rows({"rl-1": 9, "rl-2": 4, "rl-3": 5}))
    for name in "ab":
        curve = read_run(tmp_path / name).curves[0]
        assert list(curve.boundaries) == [(1, "rl-1"), (10, "rl-2"), (14, "rl-3")]
        assert [x for x, _ in curve.line("reward_mean")] == list(range(1, 19))


def test_too_many_trajectories_are_sampled_alike_at_every_checkpoint_and_the_page_says_so(tmp_path: Path) -> None:
    for order, name in enumerate(("base", "final")):
        said = [folders.trajectory(f"p{n}", stage=f"evaluate/{name}") for n in range(60)]
        folders.write_checkpoint(tmp_path / "evaluate" / f"{order}-{name}", [Estimate("avg@2", 0.5, n=10)], said)
    page = Page(build(tmp_path, limit_bytes=40_000))
    shown = {key: [row["p"] for row in page.data if row["c"] == key] for key in ("0-base", "1-final")}
    assert 5 < len(shown["0-base"]) < 50
    assert len(set(shown["0-base"]) & set(shown["1-final"])) >= len(shown["0-base"]) - 1
    said = " ".join(page.text.split())
    assert f"{len(shown['0-base'])} of 60 of Base" in said
    assert f"thincode view {tmp_path} shows all of them" in said


def test_a_very_long_segment_loses_its_middle_and_says_how_much(tmp_path: Path) -> None:
    one = folders.trajectory("p0", text="x" * 100_000)
    folders.write_checkpoint(tmp_path / "run", [], [one])
    plan = Page(build(tmp_path / "run")).data[0]["s"][0]
    assert len(plan["x"]) < 41_000
    assert f"[… {plan['cut']:,} characters not on this page …]" in plan["x"]
    assert plan["cut"] + 40_000 == len("Print it. \n") + 100_000


def test_training_records_that_would_take_long_to_read_are_named_and_left_out(
    pipeline: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("thincode.report._records.LIMIT_READ", 100)
    folders.write_trajectories(pipeline / "rl", [folders.trajectory("p0", stage="rl-1")])
    page = Page(build(pipeline))
    assert {row["c"] for row in page.data} == {"0-base", "1-sft", "2-final"}
    assert "RL (training): 1." in page.text
    assert "of records, not read for this page." in page.text


def test_published_tables_are_whole() -> None:
    for stated in published():
        assert stated.source.strip(), stated.title
        assert {len(cells) + 1 for _, cells in stated.table.rows} == {len(stated.table.head)}, stated.title
        assert not stated.compared


def test_what_was_measured_stands_beside_what_was_published(tmp_path: Path) -> None:
    measured = [
        Estimate("avg@16/benchmark=aime24", 0.5, 0.4, 0.6, n=30),
        Estimate("full pass rate/correct", 0.61, n=20),
        Estimate("calls", 6.5, n=30, unit="blocks"),
    ]
    folders.write_checkpoint(tmp_path / "run", measured, [])
    found = {stated.title: stated.table for stated in published(read_run(tmp_path / "run")) if stated.compared}
    assert list(found) == [
        "ThinC and what it compares with", "ThinC, how code is used", "CIR, main results", "CIR, code that fails",
        "Other systems, as their authors state them",
    ]  # fmt: skip
    contests = found["ThinC and what it compares with"]
    assert [name for name, _ in contests.rows][:4] == ["Measured here", "Run", "Published", "ThinC-4B"]
    assert [(cell.text, cell.small) for cell in contests.rows[1][1]] == [("50.0", "[40.0, 60.0]")] + [("–", "")] * 5
    fails = found["CIR, code that fails"]
    assert fails.head == ["System", "Share", "Run"]
    assert [cell.text for cell in fails.rows[0][1]] == ["60.6", "61.0"]


def test_two_runs_stand_beside_each_other(tmp_path: Path) -> None:
    for name in ("one", "two"):
        folders.write_pipeline(tmp_path / name)
    page = Page(build([tmp_path / "one", tmp_path / "two"]))
    assert "one and two" in page.text
    assert {row["c"] for row in page.data} >= {"one/2-final", "two/2-final"}
    assert "two Final" in page.text
    with pytest.raises(RunFolderError, match="two run folders are called one"):
        build([tmp_path / "one", tmp_path / "one"])


def test_a_pages_row_says_what_filters_ask_for(pipeline: Path) -> None:
    grounded = [{"problem": "p0", "sample": 0, "spans": [{"output": 1, "start": 0, "end": 2}]}]
    said = [folders.trajectory("p0"), folders.trajectory("p1")]
    folders.write_checkpoint(pipeline / "evaluate" / "3-more", [], said, grounded=grounded)
    rows = [row for row in Page(build(pipeline)).data if row["c"] == "3-more"]
    assert [(row["k"], row["x"], row["gr"], row["tk"]) for row in rows] == [(2, 1, True, None), (2, 1, False, None)]


def test_formulas_become_mathml_and_stay_text_in_code(tmp_path: Path) -> None:
    one = folders.trajectory("p0", text=r"Take $\frac{1}{2}$, not $5 or $7.")
    folders.write_checkpoint(tmp_path / "run", [], [one])
    page = Page(build(tmp_path / "run"))
    [row] = page.data
    [[start, end, number]] = row["z"]
    assert row["q"][start:end] == r"$\frac{1}{2}$"
    assert page.formulas[number][2][0][0] == "mfrac"
    assert [part["k"] for part in row["s"] if "z" in part] == ["plan", "answer"]


def test_pass_at_k_has_a_curve_for_every_arm(tmp_path: Path) -> None:
    for order, name in enumerate(("base", "rl")):
        curves = [
            Estimate(f"{arm}pass@{k}", 0.1 * (order + 1) + 0.01 * k, n=30)
            for arm in ("", "text/", "swapped/")
            for k in (1, 2, 4, 8)
        ]
        folders.write_checkpoint(tmp_path / "evaluate" / f"{order}-{name}", [Estimate("avg@8", 0.5, n=30), *curves], [])
    [plot] = by_k(read_run(tmp_path), "pass", "samples k", log2=True)
    assert [name for name, _ in plot.chart.legend] == ["Base", "Base, text", "RL", "RL, text"]
    assert len({style for _, style in plot.chart.legend}) == 4


def test_gains_by_category_and_pass_rates_inside_correct_and_incorrect_have_charts(pipeline: Path) -> None:
    gains = [Estimate("difference", 0.3, 0.2, 0.4, n=10)]
    gains += [
        Estimate(f"difference/family={name}", value, n=5) for name, value in (("algebra", 0.1), ("counting", 0.4))
    ]
    atomic.write_json(pipeline / "evaluate" / "comparison.json", [dataclasses.asdict(one) for one in gains])
    rates = [
        Estimate(f"{kind} pass rate/{part}", 0.5, 0.4, 0.6, n=9)
        for kind in ("full", "final", "block")
        for part in ("correct", "wrong")
    ]
    shown = [Estimate("lines of code", 349.0, n=9, unit="lines"), Estimate("grounded", 0.992, n=9)]
    folders.write_checkpoint(pipeline / "evaluate" / "3-more", [*rates, *shown], [])
    page = Page(build(pipeline))
    assert {"categories", "code"} <= set(page.sections)
    for said in (
        "Gain by family",
        "gain in percentage points, 95% interval",
        "+40.0",
        "Whether code ran, in correct and incorrect trajectories of More",
        "Code use against grounding",
        "lines of code, mean of a trajectory with code",
    ):
        assert said in page.text


def test_failures_and_arms_are_in_the_browser(pipeline: Path) -> None:
    folder = pipeline / "evaluate" / "3-more"
    found = [{"problem": "p0", "sample": 0, "post_hoc": True, "constants": ["50"], "role_overlap": False}]
    estimates = [Estimate("post-hoc verification", 0.5, n=2), Estimate("post-hoc verification by chance", 0.1, n=2)]
    said = [folders.trajectory("p0"), folders.trajectory("p1")]
    folders.write_checkpoint(folder, estimates, said, failures=found)
    folders.write_trajectories(folder / "swapped", said[:1])
    page = Page(build(pipeline))
    rows = {(row["c"], row["p"]): row["f"] for row in page.data if row["c"].startswith("3-more")}
    assert rows == {
        ("3-more", "p0"): ["post-hoc verification", "unverified constants"],
        ("3-more", "p1"): [],
        ("3-more/swapped", "p0"): [],
    }
    assert "failures" in page.sections
