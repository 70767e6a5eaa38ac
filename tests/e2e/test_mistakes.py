"""A user's mistake: exit code 2, one message that says what to do, no traceback, nothing left behind."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from e2e import folders
from e2e.killing import run
from e2e.small import SMALL
from openai_server import OpenAIServer
from thincode.cli import main

Speak = Callable[..., str]


@pytest.fixture
def mistake(capsys: pytest.CaptureFixture[str]) -> Speak:
    """Runs a command line that must fail as a user's mistake does; gives its message."""

    def speak(*words: object) -> str:
        try:
            code = main([str(word) for word in words])
        except SystemExit as ended:  # argparse's own
            code = int(str(ended.code))
        told = capsys.readouterr().err
        assert code == 2, told
        assert "Traceback" not in told
        return told

    return speak


MICRO = ("run", "tiny/micro")
SERVED = ("distill", "tiny/micro")
GOLD = ("eval", "tiny/micro", "evaluate.engine=scripted")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((*MICRO, "rl.polcy.lr=1"), "rl.polcy: unknown key; did you mean 'policy'?"),
        ((*MICRO, "sft.train.epoch=1"), "sft.train.epoch: unknown key; did you mean 'epochs'?"),
        ((*MICRO, "format=thincc"), "format: unknown kind 'thincc'; did you mean 'thinc'?"),
        ((*MICRO, "rl.algorithm=grop"), "rl.algorithm: unknown kind 'grop'; did you mean 'grpo'?"),
        ((*MICRO, "rl.samples=many"), "rl.samples: should be a valid integer; found 'many'"),
        ((*MICRO, "rl.samples=0"), "rl.samples: should be greater than or equal to 1; found 0"),
        ((*MICRO, "rl.stages=[]"), "rl.stages: Tuple should have at least 1 item"),
        ((*MICRO, "schedule=determined"), "schedule: "),
        ((*MICRO, "seed="), "override 'seed=': no value; write seed=null for none"),
        ((*MICRO, "rl.samples"), "can't understand rl.samples; try thincode run --help"),
        ((*MICRO, "--frob"), "can't understand --frob; try thincode run --help"),
        ((*MICRO, "distill=null", "sft=null", "rl=null"), "nothing to run; a model that is there is measured with"),
        ((*MICRO, "distill=null"), "no distillation there (no trajectories.jsonl)"),
        ((*MICRO, "sft=null"), "rl.model: no model to start from; name a model folder, or add a section sft"),
        (
            ("run", "tiny/mikro"),
            "no recipe 'tiny/mikro', neither a file nor one that ships with thincode; did you mean",
        ),
        (("run", "absent.yaml"), "no recipe 'absent', neither a file nor"),
        (("run",), "the following arguments are required: RECIPE"),
        (("frobnicate",), "invalid choice: 'frobnicate' (choose from "),
        (("doctor", "seed=1"), "can't understand seed=1; try thincode doctor --help"),
        (("eval", "tiny/micro"), "evaluate.model: name a model folder with --model DIR or --run DIR"),
        (
            ("eval", "tiny/micro", "--model", "absent"),
            "'absent' is no folder; give a folder with config.json and weights",
        ),
        (("eval", "tiny/micro", "--run", "empty"), "empty: no model there (looked for rl/model, sft/model and model)"),
        (("eval", "tiny/micro", "evaluate=null"), "the recipe has no section evaluate; add one"),
        ((*GOLD, "evaluate.problems={kind: jsonl, path: absent.jsonl}"), "absent.jsonl: no such file"),
        ((*GOLD, "evaluate.problems={kind: jsonl, path: gap.jsonl}"), "gap.jsonl:2: no answer in 'answer', found None"),
        ((*GOLD, "evaluate.problems={kind: jsonl, path: torn.jsonl}"), "torn.jsonl:2: not JSON"),
        (("sft", "tiny/micro"), "sft.data: name the run folder of a distillation with --data DIR"),
        (("sft", "tiny/micro", "--data", "empty"), "empty: no distillation there"),
        (("rl", "tiny/micro"), "rl.model: name the model folder to start from with --model DIR"),
        (
            ("distill", "tiny/micro", "distill.teacher=local"),
            "distill.teacher.model: name a model folder",
        ),
        (
            (*SERVED, "distill.teacher={kind: openai, base_url: 'http://127.0.0.1:9/v1'}"),
            "start a server there, or name",
        ),
        ((*SERVED, "distill.teacher={kind: openai, base_url: '127.0.0.1:9'}"), "base_url: '127.0.0.1:9' is no address"),
        (
            (*SERVED, "distill.teacher={kind: openai, key_file: gap.key}"),
            "engine openai.key_file: gap.key: can't be read",
        ),
        ((*SERVED, "distill.teacher={kind: openai, key_variable: NO_KEY}"), "NO_KEY is not set; export it, or name"),
        ((*SERVED, "distill.teacher={kind: openai, way: completions}"), "engine openai.template: missing; the way"),
        ((*SERVED, "distill.teacher={kind: openai, template: empty}"), "tokenizer.json: missing"),
        ((*SERVED, "distill.teacher=vllm"), "engine vllm.tokenizer: missing; name the folder of the served model's"),
        ((*SERVED, "distill.prompt=thinc_4shot"), "prompt 'thinc_4shot': no such file; name a YAML file, or one that"),
        ((*SERVED, "distill.teacher=opnai"), "distill.teacher: unknown kind 'opnai'; did you mean 'openai'?"),
        (("solve", "What is 2 + 2?", "--model", "empty"), "empty has no config.json; give the folder of a saved model"),
        (("solve", "What is 2 + 2?", "--run", "empty"), "empty: no model there"),
        (("solve", "What is 2 + 2?"), "one of the arguments --run --model is required"),
        (("report", "empty"), "empty: nothing of a run in it"),
        (("report", "absent"), "absent: no such run folder; give the folder that --out named"),
        (("recipes", "show", "tiny/mikro"), "did you mean 'tiny/micro'?"),
        (("recipes", "copy", "tiny/micro", "gap.jsonl"), "gap.jsonl: exists already; name another file"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_mistake_is_named_and_leaves_nothing(
    words: tuple[str, ...], said: str, mistake: Speak, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "gap.jsonl").write_text('{"problem": "1 + 1?", "answer": "2"}\n{"problem": "1 + 2?"}\n')
    (tmp_path / "torn.jsonl").write_text('{"problem": "1 + 1?", "answer": "2"}\n{"problem": "1 +\n')
    out = ["--out", "out"] if words[0] in ("run", "eval", "sft", "rl", "distill") else []
    assert said in mistake(*words, *out)
    found = sorted(path.name for path in tmp_path.rglob("*") if path.is_file())
    assert found == ["gap.jsonl", "torn.jsonl"]
    assert not any((tmp_path / "empty").iterdir())


@pytest.mark.parametrize(
    ("teacher", "said"),
    [
        (
            "{kind: openai, base_url: URL}",
            "answers 401: no key; the key is wrong or missing: set key_file or key_variable",
        ),
        ("{kind: openai, base_url: URL, key_file: key}", "Incorrect API key provided: Bearer ***; the key is wrong"),
        ("{kind: openai, base_url: URL, key_file: right, model: teacher-2}", "'teacher-2' is not served at"),
    ],
)
def test_a_server_that_is_asked_wrongly_is_quoted(
    teacher: str, said: str, mistake: Speak, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "key").write_text("sk-wrong-key")
    (tmp_path / "right").write_text("sk-right-key")
    with OpenAIServer(key="sk-right-key") as server:
        told = mistake(*SERVED, f"distill.teacher={teacher.replace('URL', server.url)}", "--out", "out")
    assert said in told
    assert "sk-" not in told
    assert not [path for path in tmp_path.glob("out/**/*") if path.is_file()]


def test_the_command_itself_shows_no_traceback(tmp_path: Path) -> None:
    ran = run("run", "tiny/micro", "rl.polcy=1", cwd=tmp_path)
    assert ran.returncode == 2
    assert ran.stderr.splitlines()[0].startswith("thincode run: rl.polcy: unknown key")
    assert len(ran.stderr.splitlines()) == 1
    assert not ran.stdout


# --- folders that hold something -------------------------------------------------------------------------------------


def test_a_folder_that_holds_something_is_never_written_into(mistake: Speak, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    assert "exists already; go on with --resume, or name another folder with --out" in mistake(
        *MICRO, "--out", tmp_path
    )
    assert "holds 'thesis.tex' and no thincode run" in mistake(*MICRO, "--out", tmp_path, "--resume")
    assert "a file of that name stands there; name another folder with --out" in mistake(
        *MICRO, "--out", tmp_path / "thesis.tex"
    )
    assert [path.name for path in tmp_path.iterdir() if path.name != ".lock"] == ["thesis.tex"]


@pytest.fixture
def half_done(small_run: Path, tmp_path: Path) -> Path:
    """A copy of a finished run whose RL was stopped after its last checkpoint but one and before its models."""
    out = tmp_path / "half"
    shutil.copytree(small_run, out)
    for path in (out / "done.json", out / "rl/done.json"):
        path.unlink()
    for path in out.glob("rl/model*"):
        shutil.rmtree(path)
    return out


@pytest.mark.train
def test_resuming_with_another_recipe_names_the_keys(half_done: Path, mistake: Speak) -> None:
    told = mistake("run", *SMALL, "seed=7", "rl.samples=5", "--out", half_done, "--resume")
    assert "resume with the same one, or name another folder with --out" in told
    assert "seed: 1 there, 7 now" in told
    assert "rl.samples: 4 there, 5 now" in told


@pytest.mark.train
def test_without_a_checkpoint_that_can_be_read_the_way_out_is_named(half_done: Path, mistake: Speak) -> None:
    for path in half_done.glob("rl/checkpoint/*/model.safetensors"):
        path.write_bytes(b"damaged")
    told = mistake("run", *SMALL, "--quiet", "--out", half_done, "--resume")
    assert "no checkpoint can be read, so the run can't go on" in told
    assert "restore" in told
    assert "start again with another --out" in told
    assert (half_done / "rl/checkpoint/step-000003").is_dir()


@pytest.mark.train
def test_a_damaged_newest_checkpoint_costs_a_step_and_nothing_else(
    half_done: Path, small_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    newest = half_done / "rl/checkpoint/step-000003/optimizer.pt"
    newest.write_bytes(newest.read_bytes()[:-1] + b"?")
    ran = run("run", *SMALL, "--out", str(half_done), "--resume")
    assert ran.returncode == 0, ran.stderr
    assert "step-000003: optimizer.pt is damaged" in ran.stderr
    assert "going back to the checkpoint before it" in ran.stderr
    left_out = "rl/model-rl-1"  # made by a step before, and kept by runs that are not damaged on purpose
    found = folders.contents(small_run)
    expected = {name: value for name, value in found.items() if not name.startswith(left_out)}
    assert folders.differences(expected, folders.contents(half_done)) == []


# --- models ----------------------------------------------------------------------------------------------------------


@pytest.mark.train
@pytest.mark.parametrize(
    ("missing", "overrides", "said"),
    [
        (
            "model.safetensors",
            [],
            "has no weights (*.safetensors); the copy or download is incomplete",
        ),
        ("config.json", [], "has no config.json; give the folder of a saved model"),
        ("tokenizer.json", [], "tokenizer.json: missing"),
        (None, ["evaluate.budget.context_tokens=10"], "context_tokens: 10 leaves no room behind the prompt of problem"),
    ],
)
@pytest.mark.parametrize("verb", ["eval", "solve"])
def test_a_model_that_cannot_be_used_is_refused(
    verb: str, missing: str | None, overrides: list[str], said: str, small_run: Path, tmp_path: Path, mistake: Speak
) -> None:
    model = tmp_path / "model"
    shutil.copytree(small_run / "sft/model", model)
    if missing:
        (model / missing).unlink()
    words = ["eval", "tiny/micro", "--out", tmp_path / "out"] if verb == "eval" else ["solve", "What is 2 + 2?"]
    assert said in mistake(*words, "--model", model, *overrides)
    assert not [path for path in tmp_path.glob("out/**/*") if path.is_file()]


def test_a_scorecard_says_what_a_good_command_line_makes(tmp_path: Path) -> None:
    """The counterpart of all the refusals above."""
    problems = tmp_path / "problems.jsonl"
    problems.write_text('{"problem": "1 + 1?", "answer": "2"}\n')
    source = f"evaluate.problems={{kind: jsonl, path: {json.dumps(str(problems))}}}"
    assert main([*GOLD, source, "evaluate.samples=1", "--quiet", "--out", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out/scorecard.json").exists()
