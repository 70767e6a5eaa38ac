"""What the command line says of itself, and what it says when it is used wrongly."""

from __future__ import annotations

from pathlib import Path

import pytest

from thincode import cli

VERBS = cli.NAMES


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    with pytest.raises(SystemExit) as stop:
        cli.main(words)
    assert stop.value.code == 0
    return capsys.readouterr().out


@pytest.fixture(autouse=True)
def _width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def test_the_first_help_fits_a_terminal_and_names_every_verb(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(capsys, "--help").splitlines()
    assert len(lines) < 24  # the smallest terminal, its prompt included
    assert max(map(len, lines)) <= 80
    assert [verb for verb in VERBS if not any(verb in line.split()[:2] for line in lines)] == []


@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_says_how_it_is_called(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    help_text = printed(capsys, verb, "--help")
    assert help_text.startswith(f"usage: thincode {verb} ")
    assert max(map(len, help_text.splitlines())) <= 90
    assert ("key.path=value" in help_text) is (cli.verb(verb).takes_overrides)


def test_resume_asks_which_run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert cli.main(["distill", "tiny/micro", "--resume"]) == 2
    assert "--out DIR" in capsys.readouterr().err


def test_a_mistake_found_late_leaves_the_folder_free(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert cli.main(["eval", "tiny/micro", "--quiet", "--out", str(out)]) == 2
    assert "--model DIR" in capsys.readouterr().err
    assert list(out.iterdir()) == []
    missing = "distill.problems={kind: jsonl, path: nowhere.jsonl}"
    assert cli.main(["run", "tiny/micro", "--quiet", "--out", str(out), missing]) == 2
    assert "nowhere.jsonl" in capsys.readouterr().err
    assert list(out.iterdir()) == []
