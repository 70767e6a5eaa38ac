"""Code of models is read as Python without a word on the terminal."""

from __future__ import annotations

import warnings

import pytest

from thincode.trajectory.python import tree_of


@pytest.mark.parametrize("source", ["x = 1if 2else 3", "'\\d'", "x is 1"])
def test_what_python_would_warn_of_is_read_silently(source: str) -> None:
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        assert tree_of(source) is not None
    assert heard == []


@pytest.mark.parametrize("source", ["x = (", "\0", "(" * 500, "1" * 5000])
def test_what_is_no_python_has_no_tree(source: str) -> None:
    assert tree_of(source) is None
