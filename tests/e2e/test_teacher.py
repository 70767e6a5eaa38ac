"""A served teacher, over a real connection: nothing is lost or doubled, however often server and run fail; the key stays out."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path
from random import Random
from typing import Any

import pytest

from e2e.killing import Moment, run, stop
from openai_server import OpenAIServer, drawn, problems, question
from thincode.cli import main

KEY = "sk-secret-in-a-file-77"


def words(server: OpenAIServer, folder: Path, count: int, **limits: float) -> list[str]:
    """The command line of a distillation of `count` problems."""
    file, key = folder / "problems.jsonl", folder / "key"
    file.write_text("".join(problems(count)))
    key.write_text(KEY)
    teacher = {"kind": "openai", "base_url": server.url, "key_file": str(key), "limits": limits}
    teacher["prices"] = {"prompt": 1.0, "generated": 2.0}
    return [
        "distill",
        "tiny/micro",
        f"distill.problems={json.dumps({'kind': 'jsonl', 'path': str(file)})}",
        f"distill.teacher={json.dumps(teacher)}",
        "distill.prompt=thinc_3shot",
        "distill.budget={context_tokens: 8000, calls: 8}",
        "live=16",
    ]


def records(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "trajectories.jsonl").read_text().splitlines()]


def assert_none_lost_none_doubled(out: Path, count: int) -> None:
    found = records(out)
    assert sorted(one["address"]["problem"] for one in found) == sorted(f"p{number}" for number in range(count))
    for one in found:
        assert one["answer"] == question(int(one["address"]["problem"][1:]))[1]
        text = "".join(segment["text"] for segment in one["segments"])
        assert re.search(r"(?<!\d)999(?!\d)", text) is None, text  # what the teacher makes up, and hides in a thought
    funnel = json.loads((out / "funnel.json").read_text())
    assert (funnel["problems"], funnel["sampled"], funnel["kept"]) == (count, count, count)


@pytest.mark.parametrize("way", ["continue", "turns"])
def test_a_served_teacher_thinks_with_the_interpreter_in_the_loop(
    way: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with OpenAIServer(key=KEY, can=frozenset({way}), thought="<think>999</think>") as server:
        assert main([*words(server, tmp_path, 12), "--out", str(tmp_path / "out")]) == 0
    said = capsys.readouterr()
    assert f"distill.teacher: engine openai, model teacher-1, way {way}, prompt thinc_3shot@" in said.err
    assert_none_lost_none_doubled(tmp_path / "out", 12)
    for record in records(tmp_path / "out"):
        assert record["versions"]["model"] == "teacher-1"
        assert record["usage"]["requests"] == 4
    funnel = json.loads((tmp_path / "out/funnel.json").read_text())
    usage = funnel["usage"]
    assert funnel["cost"] == round((usage["prompt_tokens"] + 2 * usage["generated_tokens"]) / 1e6, 4) > 0
    kept = "".join(path.read_text() for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert KEY not in kept + said.err + said.out


def test_a_served_model_is_evaluated(tmp_path: Path) -> None:
    (tmp_path / "problems.jsonl").write_text("".join(problems(6)))
    source = json.dumps({"kind": "jsonl", "path": str(tmp_path / "problems.jsonl")})
    with OpenAIServer() as server:
        engine = json.dumps({"kind": "openai", "base_url": server.url})
        words = [f"evaluate.engine={engine}", f"evaluate.problems={source}", "evaluate.prompt=thinc_3shot"]
        budget = "evaluate.budget.context_tokens=8000"
        assert main(["eval", "tiny/benchmarks", *words, budget, "--quiet", "--out", str(tmp_path / "out")]) == 0
    card = json.loads((tmp_path / "out/scorecard.json").read_text())
    assert card["name"] == "teacher-1"
    assert next(one for one in card["estimates"] if one["name"] == "avg@1")["value"] == 1.0


def chain(tmp_path: Path, *, count: int, kills: int, within_s: float) -> None:
    """A distillation from a server that fails in every tenth request, killed again and again."""
    out, random, hits = tmp_path / "out", Random(5), 0
    with OpenAIServer(key=KEY, faults=drawn(0.1, seed=3)) as server:
        command = [*words(server, tmp_path, count, silence_s=0.5, patience_s=120.0), "--quiet", "--out", str(out)]
        for number in range(kills):
            done = len(records(out)) if number else 0
            moment = Moment("trajectories.jsonl", at_least=size_of(out) + 1, within_s=within_s)
            ended = stop(
                [*command, *(["--resume"] if number else [])],
                out=out,
                moment=moment,
                random=random,
                with_signal=signal.SIGKILL,
                log=tmp_path / "log",
            )
            assert not ended.left_over
            hits += ended.hit
            assert len(records(out)) > done
        last = run(*command, "--resume")
        assert last.returncode == 0, last.stderr
    assert hits == kills
    assert_none_lost_none_doubled(out, count)


def size_of(out: Path) -> int:
    log = out / "trajectories.jsonl"
    return log.stat().st_size if log.exists() else 0


def test_ctrl_c_hangs_up_and_says_how_to_go_on(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with OpenAIServer(key=KEY, tick_s=0.05) as server:
        ended = stop(
            [*words(server, tmp_path, 400), "--quiet", "--out", str(out)],
            out=out,
            moment=Moment("trajectories.jsonl", at_least=1, within_s=0.2),
            random=Random(1),
            with_signal=signal.SIGINT,
            log=tmp_path / "log",
        )
    assert (ended.code, ended.hit, ended.left_over) == (130, True, [])
    said = f"thincode distill: stopped; go on with the same command, --out {out} and --resume"
    assert ended.stderr.strip() == said


def test_failing_servers_and_killed_runs_lose_nothing_and_double_nothing(tmp_path: Path) -> None:
    chain(tmp_path, count=60, kills=2, within_s=0.1)


@pytest.mark.slow
def test_five_hundred_problems_ten_kills_in_one_chain(tmp_path: Path) -> None:
    chain(tmp_path, count=500, kills=10, within_s=0.3)
