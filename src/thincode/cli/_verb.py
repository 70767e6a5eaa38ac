"""What a file in `verbs/` says of its verb."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Verb:
    """One verb of the command line."""

    line: str
    """For the list of verbs: at most 60 characters."""
    usage: str
    """What follows `thincode NAME`."""
    description: str
    run: Callable[[argparse.Namespace], int]
    """From the parsed words to the exit code. `words.overrides` has the `key.path=value` words."""
    add: Callable[[argparse.ArgumentParser], None] | None = None
    """Adds the verb's own arguments."""
    long: bool = False
    """It takes a recipe and has a run folder: it gets --out, --plan, --resume, --quiet, --json and overrides."""
    overrides: bool = False
    """It takes `key.path=value` though it is not long."""

    @property
    def takes_overrides(self) -> bool:
        """Whether `key.path=value` words mean something to it."""
        return self.long or self.overrides
