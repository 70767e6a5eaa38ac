"""Suites: which benchmarks a paper reports, and how it samples each. Each public module here is a kind.

A recipe names one, `evaluate: {suite: thinc}`, and each benchmark is then sampled by its own protocol; the average is the
unweighted mean of the benchmarks' means.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ...settings import Kind, PositiveInt, kind, settings


@dataclass(frozen=True)
class Part:
    """One benchmark of a suite with its protocol."""

    name: str
    """Value of the tag `benchmark`, and the column in tables."""
    benchmark: Kind
    samples: int
    temperature: float
    """0 is greedy."""
    top_p: float
    context_tokens: int
    """Prompt, generated tokens and outputs together."""
    turn_tokens: int | None
    """New tokens of one turn; None where only the whole is bounded."""
    calls: int


@settings
class SuiteSettings:
    """What every suite may be told."""

    data: Path | None = None
    """Folder with local files; a benchmark whose file is not there comes from the hub."""
    samples: PositiveInt | None = None
    """Samples a problem instead of the paper's, where the paper draws more than one."""
    limit: PositiveInt | None = None
    """At most so many problems of each benchmark: for trying out, not for reporting."""


class Suite(Protocol):
    """A module of this room: a `Settings` class and this function."""

    def parts(self, settings: Any) -> Sequence[Part]:
        """The benchmarks in the paper's order."""


def chosen(suite: SuiteSettings, name: str, file: str, **which: Any) -> Kind:
    """A benchmark, read from `data/file` where that exists."""
    path = suite.data / file if suite.data is not None and (suite.data / file).exists() else None
    return kind("thincode.evaluation.benchmarks", name, path=path, limit=suite.limit, **which)
