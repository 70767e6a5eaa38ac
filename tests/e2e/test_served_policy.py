"""RL whose rollouts come from a server by token ids: each update's weights are handed over before the next step."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from e2e.small import SMALL
from openai_server import OpenAIServer
from thincode.cli import main
from thincode.trajectory.tokenizer import Tokenizer

pytestmark = pytest.mark.train
ALL = frozenset({"completions", "ids", "processed", "orders"})


def rl(engine: object, small_run: Path, out: Path) -> int:
    stages = "rl.stages=[{steps: 2, context_tokens: 160, calls: 2}]"
    words = ["rl", *SMALL, stages, "rl.validation=null", f"rl.engine={json.dumps(engine)}", "--quiet"]
    return main([*words, "--model", str(small_run / "sft/model"), "--out", str(out)])


@pytest.fixture
def served(small_run: Path, tmp_path: Path) -> Path:
    """The folder a server would serve."""
    shutil.copytree(small_run / "sft/model", tmp_path / "served")
    return tmp_path / "served"


def test_rollouts_come_from_the_server_and_weights_go_back(small_run: Path, served: Path, tmp_path: Path) -> None:
    before = (served / "model.safetensors").read_bytes()
    # It ends a turn now and then, so that lengths differ, and with them rewards.
    with OpenAIServer(can=ALL, vocabulary=Tokenizer.load(served).vocab_size) as server:
        assert rl({"kind": "vllm", "base_url": server.url, "weights": str(served)}, small_run, tmp_path / "rl") == 0
        assert server.orders == ["reload_weights", "/reset_prefix_cache"] * 3  # at the start, and after each step
    assert (
        (served / "model.safetensors").read_bytes() == (tmp_path / "rl/model/model.safetensors").read_bytes() != before
    )
    steps = [json.loads(line) for line in (tmp_path / "rl/metrics.jsonl").read_text().splitlines()]
    assert len([one for one in steps if "train_s" in one]) == 2


@pytest.mark.parametrize(
    ("can", "engine", "said"),
    [
        (ALL, {"kind": "openai"}, "rl.engine: 'openai' can't be used: RL needs token ids with their log-probabilities"),
        (ALL, {"kind": "scripted"}, "rl.engine: 'scripted' can't be used"),
        (ALL, {"kind": "vllm"}, "choose local, or vllm with `weights`, the folder that its server serves"),
        (
            ALL - {"orders"},
            {"kind": "vllm", "weights": "served"},
            "needs a server that takes orders: VLLM_SERVER_DEV_MODE=1",
        ),
        (
            ALL - {"processed"},
            {"kind": "vllm", "weights": "served"},
            "start it with --logprobs-mode processed_logprobs",
        ),
    ],
)
def test_what_rl_cannot_learn_from_is_refused(
    can: frozenset[str],
    engine: dict[str, str],
    said: str,
    small_run: Path,
    served: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    with OpenAIServer(can=can) as server:
        chosen = engine if engine["kind"] == "scripted" else {**engine, "base_url": server.url}
        assert rl(chosen, small_run, tmp_path / "rl") == 2
    assert said in capsys.readouterr().err
