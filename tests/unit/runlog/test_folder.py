"""A run folder is one run's, one process's, and one recipe's."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from thincode._environment import without_secrets
from thincode.errors import RunFolderError
from thincode.runlog import FORMAT, RunFolder, read_log

RECIPE: dict[str, Any] = {"seed": 1, "rl": {"lr": 1e-6, "stages": [{"steps": 2}], "filters": ["a"]}}


def begin(path: Path, *, resume: bool = False, resolved: dict[str, Any] = RECIPE) -> RunFolder:
    return RunFolder.create(path, resolved=resolved, resume=resume)


def test_a_fresh_folder_says_what_runs_and_with_what(tmp_path: Path) -> None:
    blocks = {"preset": "cir", "keeps": "nothing"}
    with RunFolder.create(tmp_path / "runs/a", resolved=RECIPE, resume=False, tier="T2", interpreter=blocks) as folder:
        assert not folder.resumed
        assert folder.done is None
    environment = json.loads((tmp_path / "runs/a/environment.json").read_text())
    assert environment["format"] == FORMAT
    assert environment["isolation"] == "T2"
    assert environment["interpreter"] == blocks
    assert environment["python"] == ".".join(map(str, sys.version_info[:3]))
    assert environment["cpus"] >= 1
    assert set(environment) >= {"thincode", "commit", "versions", "platform", "machine", "argv"}
    assert "seed: 1" in (tmp_path / "runs/a/recipe.resolved.yaml").read_text()


def test_a_folder_with_a_run_is_refused_without_resume(tmp_path: Path) -> None:
    folder = begin(tmp_path / "a")
    folder.log("metrics").append({"step": 1})
    folder.close()
    with pytest.raises(RunFolderError, match=r"a: holds a run already \(unfinished\); go on with --resume, or .*--out"):
        begin(tmp_path / "a")
    with begin(tmp_path / "a", resume=True) as folder:
        assert folder.resumed
        folder.finish({"steps": 1})
        assert folder.done == {"steps": 1}
    with pytest.raises(RunFolderError, match=r"\(finished\)"):
        begin(tmp_path / "a")
    assert list(read_log(tmp_path / "a/metrics.jsonl")) == [{"step": 1}]
    assert len(json.loads((tmp_path / "a/environment.json").read_text())["resumed"]) == 1


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("")
    for resume in (False, True):
        with pytest.raises(RunFolderError, match=r"holds 'thesis.tex' and no thincode run; .*--out"):
            begin(tmp_path, resume=resume)
    with pytest.raises(RunFolderError, match="a file of that name"):
        begin(tmp_path / "thesis.tex")
    with pytest.raises(RunFolderError, match="can't write there"):
        begin(tmp_path / "thesis.tex" / "inside")


def test_a_run_that_never_began_leaves_the_folder_free(tmp_path: Path) -> None:
    with begin(tmp_path / "a") as folder:
        assert folder.take_back()
    assert list((tmp_path / "a").iterdir()) == []
    with begin(tmp_path / "a", resolved={"seed": 2}) as folder:
        folder.log("metrics").append({"step": 0})
        assert not folder.take_back()
    with begin(tmp_path / "a", resolved={"seed": 2}, resume=True) as folder:
        assert not folder.take_back()
    assert (tmp_path / "a" / "recipe.resolved.yaml").exists()


def test_nothing_to_resume_is_said(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match="no run to resume there; leave --resume out"):
        begin(tmp_path / "typo", resume=True)
    assert not (tmp_path / "typo").exists()


def test_a_run_killed_before_its_recipe_was_written_starts_afresh(tmp_path: Path) -> None:
    (tmp_path / ".lock").write_text("1\n")
    (tmp_path / ".recipe.resolved.yaml.1.tmp").write_text("se")
    (tmp_path / "environment.json").write_text("{}")
    with begin(tmp_path, resume=True) as folder:
        assert not folder.resumed


CHANGES: list[tuple[dict[str, Any], list[str]]] = [
    ({**RECIPE, "seed": 2}, ["seed: 1 there, 2 now"]),
    (
        {"seed": 1, "rl": {"lr": 1e-5, "stages": [{"steps": 3}], "filters": ["a"], "new": 0}},
        ["rl.lr: 1e-06 there, 1e-05 now", "rl.stages.0.steps: 2 there, 3 now", "rl.new: 'absent' there, 0 now"],
    ),
    ({"seed": 1}, ["rl.lr: 1e-06 there, 'absent' now", "rl.filters: ['a'] there, 'absent' now"]),
]


def test_resuming_sweeps_up_what_a_killed_process_was_writing(tmp_path: Path) -> None:
    begin(tmp_path / "a").close()
    (tmp_path / "a/.model.123.tmp").mkdir()
    (tmp_path / "a/.model.123.tmp/config.json").touch()
    (tmp_path / "a/.done.json.123.tmp").touch()
    (tmp_path / "a/mine.tmp").touch()
    begin(tmp_path / "a", resume=True).close()
    assert not [*(tmp_path / "a").glob(".*.tmp")]
    assert (tmp_path / "a/mine.tmp").exists()


@pytest.mark.parametrize(("resolved", "lines"), CHANGES)
def test_resuming_with_another_recipe_names_each_key(
    resolved: dict[str, Any], lines: list[str], tmp_path: Path
) -> None:
    begin(tmp_path / "a").close()
    with pytest.raises(RunFolderError) as caught:
        begin(tmp_path / "a", resume=True, resolved=resolved)
    for line in lines:
        assert f"  {line}" in str(caught.value).splitlines()


def test_a_folder_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    begin(tmp_path / "a").close()
    (tmp_path / "a/environment.json").write_text(json.dumps({"format": FORMAT + 1}))
    with pytest.raises(RunFolderError, match=r"written by a newer thincode .* upgrade: pip install -U thincode"):
        begin(tmp_path / "a", resume=True)


def test_logs_go_back_to_what_was_committed(tmp_path: Path) -> None:
    with begin(tmp_path / "a") as folder:
        assert folder.log("metrics") is folder.log("metrics")
        folder.log("metrics").append(1)
        committed = folder.commit()
        folder.log("metrics").append(2)
        folder.log("trajectories").append(3)
    with begin(tmp_path / "a", resume=True) as folder:
        folder.roll_back(committed)
        folder.log("metrics").append("again")
    assert list(read_log(tmp_path / "a/metrics.jsonl")) == [1, "again"]
    assert list(read_log(tmp_path / "a/trajectories.jsonl")) == []
    with (
        begin(tmp_path / "a", resume=True) as folder,
        pytest.raises(RunFolderError, match="the checkpoint committed 999"),
    ):
        folder.roll_back({"metrics": 999})


HOLD = """
import os, sys, time
from pathlib import Path
from thincode.runlog import RunFolder
folder = RunFolder.create(Path(sys.argv[1]), resolved={"seed": 1}, resume=False)
folder.log("metrics").append(1)
if os.fork() == 0:
    print(os.getpid(), flush=True)
    time.sleep(60)
    os._exit(0)
time.sleep(60)
"""


def test_one_process_writes_a_folder_and_kill_9_lets_it_go(tmp_path: Path) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path / "a")], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    child = int(holder.stdout.readline())
    try:
        for resume in (True, False):
            with pytest.raises(RunFolderError, match=f"process {holder.pid} is writing there; wait for it"):
                begin(tmp_path / "a", resume=resume, resolved={"seed": 1})
        holder.kill()
        holder.wait(timeout=30)
        with begin(tmp_path / "a", resume=True, resolved={"seed": 1}) as folder:  # a forked child still lives
            assert folder.resumed
            with pytest.raises(RunFolderError, match=f"process {os.getpid()}"):
                begin(tmp_path / "a", resume=True, resolved={"seed": 1})
    finally:
        holder.kill()
        holder.wait(timeout=30)
        holder.stdout.close()
        os.kill(child, signal.SIGKILL)


ARGUMENTS = [
    (["rl", "tiny/micro", "seed=2"], ["rl", "tiny/micro", "seed=2"]),
    (["--api-key", "sk-123", "--out", "a"], ["--api-key", "***", "--out", "a"]),
    (["--api-key=sk-123"], ["--api-key=***"]),
    (["engine.api_key=sk-1", "engine.token=t"], ["engine.api_key=***", "engine.token=***"]),
    (["budget.context_tokens=512", "key.path=3"], ["budget.context_tokens=512", "key.path=3"]),
    (["engine.url=https://me:pass@host/v1"], ["engine.url=https://***@host/v1"]),
]


@pytest.mark.parametrize(("given", "shown"), ARGUMENTS)
def test_secrets_of_a_command_line_are_not_written(given: list[str], shown: list[str]) -> None:
    assert without_secrets(given) == shown
