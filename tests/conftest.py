"""Options of the test suite."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

# One torch thread beside busy workers is five times faster than two; set before torch is imported anywhere.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--data", default=None, help="folder with real benchmark problems and transcripts")
    parser.addoption("--require-tier", default=None, help="fail instead of skipping below this isolation tier")


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


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    import importlib.util

    if importlib.util.find_spec("torch") is None:
        skip = pytest.mark.skip(reason="needs torch: pip install 'thincode[train]'")
        for item in items:
            if "train" in item.keywords:
                item.add_marker(skip)
