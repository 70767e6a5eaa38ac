"""The command line as one meets it: plans that run nothing, JSON that is JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from thincode.cli import NAMES, main
from thincode.settings import read_yaml, recipe_text, recipes

Output = pytest.CaptureFixture[str]


def shown(capsys: Output, *words: str) -> str:
    if "--help" in words:
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert ended.value.code == 0
    else:
        assert main(words) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("verb", NAMES)
def test_every_verb_has_help_in_its_own_name(verb: str, capsys: Output) -> None:
    assert shown(capsys, verb, "--help").startswith(f"usage: thincode {verb} ")


@pytest.mark.parametrize("words", [["run", name] for name in recipes()] + [["demo"]], ids=" ".join)
def test_a_plan_shows_every_section_and_makes_nothing(
    words: list[str], capsys: Output, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plan = {line.split()[0] for line in shown(capsys, *words, "--plan").splitlines()}
    values = json.loads(shown(capsys, *words, "--plan", "--json", "seed=7"))
    assert set(values) == plan
    assert values["seed"]["value"] == 7
    name = "tiny/demo" if words == ["demo"] else words[-1]
    assert set(read_yaml(recipe_text(name), place=name)) <= {key.partition(".")[0] for key in values}
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("section", ["distill", "sft", "rl", "eval"])
def test_the_verbs_of_one_step_plan_too(section: str, capsys: Output) -> None:
    assert json.loads(shown(capsys, section, "tiny/micro", "--plan", "--json"))


def test_a_plan_loads_nothing_heavy() -> None:
    script = (
        "import sys; from thincode.cli import main; main(['run', 'tiny/micro', '--plan'])\n"
        "heavy = {'torch', 'transformers', 'trl', 'sympy', 'scipy', 'datasets'} & set(sys.modules)\n"
        "sys.exit(f'loaded {heavy}' if heavy else 0)"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def test_json_output_is_json_line_by_line(tmp_path: Path, capsys: Output) -> None:
    problems = tmp_path / "problems.jsonl"
    problems.write_text('{"problem": "1 + 1?", "answer": "2"}\n{"problem": "1 + 2?", "answer": "3"}\n')
    source = f"{{kind: jsonl, path: {json.dumps(str(problems))}}}"
    runs = (
        ["distill", "tiny/micro", "distill.problems.count=11"],
        ["eval", "tiny/benchmarks", "evaluate.engine=scripted", f"evaluate.problems={source}"],
    )
    for words in runs:
        assert main([*words, "--json", "--out", str(tmp_path / words[0])]) == 0
        told = capsys.readouterr()
        assert told.out.strip()
        for line in (told.out + told.err).splitlines():
            assert isinstance(json.loads(line), dict), line
    assert isinstance(json.loads(shown(capsys, "doctor", "--json")), dict)
