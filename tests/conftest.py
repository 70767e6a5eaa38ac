"""Options of the test suite."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import hypothesis
import pytest

# One torch thread beside busy workers is five times faster than two; set before torch is imported anywhere.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

# No deadlines: a busy machine must not fail a test. In CI the examples are the same each time.
hypothesis.settings.register_profile(
    "house",
    deadline=None,
    max_examples=60,
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.register_profile("whole", hypothesis.settings.get_profile("house"), max_examples=600)
hypothesis.settings.load_profile("house")

GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--data", default=None, help="folder with real benchmark problems and transcripts")
    parser.addoption("--renew", action="store_true", help="write golden files anew instead of comparing with them")
    parser.addoption("--require-tier", default=None, help="fail below this isolation tier, for example T2")


@pytest.fixture(scope="session")
def data_dir(request: pytest.FixtureRequest) -> Path:
    """The folder named by --data."""
    named = request.config.getoption("--data")
    if named is None:
        pytest.skip("needs real data: pytest --data DIR")
    folder = Path(named).resolve()
    if not folder.is_dir():
        pytest.fail(f"--data {folder} is no folder")
    return folder


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """`golden("formats/thinc.txt", text)` compares with a file under tests/golden; `make golden` writes it anew."""

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--renew"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"{path} is missing: make golden"
        assert text == path.read_text(encoding="utf-8"), f"{path} moved; if it should: make golden, and say why"

    return compare


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    import importlib.util

    if importlib.util.find_spec("torch") is None:
        skip = pytest.mark.skip(reason="needs torch: pip install 'thincode[train]'")
        for item in items:
            if "train" in item.keywords:
                item.add_marker(skip)
