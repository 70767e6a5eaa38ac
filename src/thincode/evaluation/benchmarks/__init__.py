"""Contests people compare on. Each public module here is a kind: one contest, with its license and where it comes from.

A benchmark gives problems and checks that the contest is whole; how many samples are drawn, and how, is a suite's or a
recipe's business. The same problem has the same id wherever it was loaded from, so samples have the same seeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from ...problems import Problem


class Benchmark(Protocol):
    """A module of this room: a `Settings` class and this function."""

    def load(self, settings: Any) -> Sequence[Problem]:
        """The problems in the contest's order, each with the tag `benchmark`.

        Raises:
            DataError: the hub can't be reached, the file is missing, or it does not hold the whole contest.
            MissingExtraError: the hub is asked for and `datasets` is not installed.
        """
