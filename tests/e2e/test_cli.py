"""The command line, in this process: what each verb prints, leaves and answers."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from thincode.cli import NAMES, main
from thincode.settings import recipes

SMALL = [
    "distill.problems.count=60",
    "sft.train.max_tokens=4000",
    "rl.problems.count=16",
    "rl.samples=2",
    'rl.stages=[{"steps": 1, "context_tokens": 200, "calls": 4}]',
    "rl.validation.every=1",
    "rl.validation.problems.count=4",
    "evaluate.problems.count=6",
    "evaluate.samples=1",
    "evaluate.budget.context_tokens=220",
    "evaluate.base_problems=2",
    "sft.train.context_tokens=280",
]
"""tiny/micro, smaller still: every step really runs, nothing is learned."""

Said = Callable[..., tuple[int, str, str]]


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Said:
    """Runs the command with these words: exit code, stdout, stderr."""

    def run(*words: object) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main([str(word) for word in words])
        out, err = capsys.readouterr()
        return code, out, err

    return run


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run folder of a whole run."""
    out = tmp_path_factory.mktemp("cli") / "run"
    assert main(["run", "tiny/micro", "--out", str(out), "--quiet", *SMALL]) == 0
    return out


# --- without torch ---------------------------------------------------------------------------------------------------


def test_without_a_verb_the_help_names_every_verb(say: Said) -> None:
    code, out, _ = say()
    assert code == 0
    assert all(any(name in line.split()[:2] for line in out.splitlines()) for name in NAMES)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["distill", "tiny/micro", "--sample", "3"], "can't understand --sample 3; try thincode distill --help"),
        (["doctor", "seed=1"], "can't understand seed=1; try thincode doctor --help"),
        (["fly"], "invalid choice: 'fly'"),
        (["solve", "1 + 1"], "one of the arguments --run --model is required"),
    ],
)
def test_words_it_does_not_know_are_named(words: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit:
        main(words)
    assert exit.value.code == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["run", "tiny/mikro"], "tiny/micro"),
        (["run", "tiny/micro", "sft.train.epoch=3"], "epochs"),
        (["sft", "tiny/micro"], "sft.data: name the run folder of a distillation with --data DIR"),
        (["rl", "tiny/micro"], "rl.model: name the model folder to start from with --model DIR"),
        (["eval", "tiny/micro", "--out", "TMP/e"], "name a model folder with --model DIR or --run DIR"),
        (["eval", "tiny/micro", "--run", "TMP"], "no model there"),
        (["eval", "tiny/micro", "--model", "TMP/no", "--out", "TMP/e"], "/no' is no folder; give a folder"),
        (["distill", "tiny/micro", "distill=null", "--out", "TMP/d"], "the recipe has no section distill"),
        (["run", "tiny/micro", "sft=null", "distill=null", "--out", "TMP/r"], "rl.model: no model to start from"),
        (["run", "tiny/micro", "--out", "FULL"], "exists already; go on with --resume"),
        (["report", "TMP/nowhere"], "nowhere"),
        (["report", "TMP", "--limit-mb=-1"], "--limit-mb -1: write a number"),
        (["recipes", "show"], "name a recipe: cir/7b, cir/8b"),
        (["recipes", "copy", "tiny/micro", "FULL/file"], "exists already; name another file"),
    ],
)
def test_a_mistake_of_the_user_is_one_message_and_exit_code_2(
    words: list[str], told: str, say: Said, tmp_path: Path
) -> None:
    full = tmp_path / "full"
    full.mkdir()
    (full / "file").touch()
    code, _, err = say(*(word.replace("TMP", str(tmp_path)).replace("FULL", str(full)) for word in words))
    assert code == 2
    assert err.startswith(f"thincode {words[0]}: ")
    assert told in err
    assert "Traceback" not in err


@pytest.mark.parametrize("name", recipes())
def test_every_packaged_recipe_plans(name: str, say: Said, tmp_path: Path) -> None:
    code, out, _ = say("run", name, "--plan", "--out", tmp_path / "none", "seed=77")
    assert code == 0
    assert [line.split() for line in out.splitlines() if line.startswith("seed ")] == [
        ["seed", "77", "command", "line"]
    ]
    assert not (tmp_path / "none").exists()
    plan = json.loads(say("run", name, "--plan", "--json")[1])
    assert plan["name"] == {"value": name, "from": "recipe"}


def test_a_plan_says_what_holds_for_a_block_in_the_end(say: Said) -> None:
    found = json.loads(say("eval", "cir/evaluate", "--plan", "--json")[1])["in_effect.interpreter"]
    out = found["value"]
    assert (out["preset"], out["cpu_s"], out["output_chars"], out["keeps"], out["last_line"]) == (
        ("cir", 5, 400, "nothing", True)
    )
    out = json.loads(say("eval", "cir/evaluate", "interpreter.keeps=all", "--plan", "--json")[1])
    assert out["in_effect.interpreter"]["value"]["keeps"] == "all"
    last = say("run", "tiny/micro", "--plan")[1].splitlines()[-1].split()
    assert (last[0], last[1:5], last[-1]) == (
        "in_effect.interpreter",
        ['{"preset":', "null,", '"cpu_s":', "1.0,"],
        "limits",
    )


@pytest.mark.parametrize("verb", ["demo", "distill", "sft", "rl", "eval"])
def test_each_long_verb_plans(verb: str, say: Said) -> None:
    words = [verb] if verb == "demo" else [verb, "tiny/micro"]
    code, out, _ = say(*words, "--plan")
    assert code == 0
    assert "sft.train.max_tokens" in out


def test_recipes_are_listed_shown_and_copied(say: Said, tmp_path: Path) -> None:
    assert [line.split()[0] for line in say("recipes")[1].splitlines()] == recipes()
    text = say("recipes", "show", "tiny/micro")[1]
    assert "name: tiny/micro" in text
    assert say("recipes", "copy", "tiny/micro", tmp_path)[1].strip() == str(tmp_path / "micro.yaml")
    assert (tmp_path / "micro.yaml").read_text() == text
    assert say("run", tmp_path / "micro.yaml", "--plan")[0] == 0


def test_the_doctor_speaks_to_people_and_programs(say: Said) -> None:
    assert say("doctor")[1].startswith("thincode     ")
    found = json.loads(say("doctor", "--json")[1])
    assert set(found["layers"]) >= {"landlock", "seccomp"}
    assert set(found["attempts"].values())
    for tier in ("T1", "T2", "T3"):
        assert say("doctor", "--tier", tier)[0] == int(found["tier"] < tier)


def test_a_distillation_says_what_was_dropped_and_why(say: Said, tmp_path: Path) -> None:
    code, out, _ = say("distill", "tiny/micro", "--out", tmp_path / "d", "--quiet", *SMALL)
    assert code == 0
    counts = {line.split("  ")[-1]: int(line.split()[0]) for line in out.split("\n\n")[0].splitlines()}
    sampled, kept = counts.pop("trajectories sampled"), counts.pop("kept")
    assert sampled == counts.pop("problems") == 60
    assert kept - sampled == sum(counts.values()) < 0
    code, out, _ = say("distill", "tiny/micro", "--out", tmp_path / "d", "--quiet", "--json", "--resume", *SMALL)
    assert json.loads(out)["kept"] == kept


@pytest.mark.parametrize(
    ("words", "step"),
    [
        (["run", "tiny/micro"], "training"),
        (["demo"], "training"),
        (["sft", "tiny/micro", "--data", "TMP"], "SFT"),
        (["rl", "tiny/micro", "--model", "TMP"], "RL"),
    ],
)
def test_without_torch_the_extra_is_named_before_any_work(
    words: list[str], step: str, say: Said, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    code, _, err = say(*(word.replace("TMP", str(tmp_path)) for word in words), "--out", tmp_path / "out")
    assert code == 2
    assert f"{step} needs torch, which is not installed: pip install 'thincode[train]'" in err
    assert not (tmp_path / "out").exists()


# --- with torch ------------------------------------------------------------------------------------------------------


@pytest.mark.train
def test_a_whole_run_leaves_models_scorecards_and_a_page(done: Path, say: Said) -> None:
    assert {"base", "model"} <= {path.name for path in (done / "sft").iterdir()}
    assert sorted(path.name for path in (done / "evaluate").iterdir()) == ["0-base", "1-sft", "2-rl-1"]
    assert all((folder / "scorecard.json").exists() for folder in (done / "evaluate").iterdir())
    assert (done / "report.html").stat().st_size > 10_000
    assert "greedy/difference" in {gain["name"] for gain in json.loads((done / "comparison.json").read_text())}
    before = (done / "sft/model/model.safetensors").stat().st_mtime_ns
    code, out, _ = say("run", "tiny/micro", "--out", done, "--quiet", "--resume", *SMALL)
    assert code == 0
    assert "avg@1" in out
    assert "time: " in out
    assert (done / "sft/model/model.safetensors").stat().st_mtime_ns == before, "what is done is not done again"
    code, out, _ = say("run", "tiny/micro", "--out", done, "--quiet", "--resume", "--json", *SMALL)
    assert json.loads(out.splitlines()[0]) == {"out": str(done), "scorecards": ["base", "sft", "rl-1"]}


@pytest.mark.train
def test_the_steps_one_by_one(done: Path, say: Said, tmp_path: Path) -> None:
    code, out, _ = say("sft", "tiny/micro", "--data", done / "distill", "--out", tmp_path / "sft", "--quiet", *SMALL)
    assert (code, out) == (0, f"model: {tmp_path / 'sft' / 'model'}\n")
    words = (
        "rl",
        "tiny/micro",
        "--model",
        tmp_path / "sft/model",
        "--out",
        tmp_path / "rl",
        "--quiet",
        "--json",
        *SMALL,
    )
    code, out, _ = say(*words)
    assert (code, json.loads(out.splitlines()[-1])) == (0, {"model": str(tmp_path / "rl/model")})
    code, out, _ = say("eval", "tiny/micro", "--run", tmp_path / "rl", "--out", tmp_path / "eval", "--quiet", *SMALL)
    assert code == 0
    assert out.split()[0]
    page = tmp_path / "eval" / "report.html"
    assert say("report", tmp_path / "eval")[1].strip() == str(page)
    small = tmp_path / "small.html"
    assert say("report", tmp_path / "eval", "--out", small, "--limit-mb", "0")[0] == 0
    assert small.stat().st_size < page.stat().st_size


@pytest.mark.train
def test_one_question_is_streamed_and_its_answer_named(done: Path, say: Said) -> None:
    code, out, _ = say("solve", "How many multiples of 3 are below 10?", "--run", done)
    assert code == 0
    assert out.splitlines()[-1].startswith("answer: ")
