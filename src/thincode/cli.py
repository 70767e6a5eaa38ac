"""The `thincode` command: verbs that call `runs`; it prints and never computes."""

from __future__ import annotations


def main() -> int:
    """Run the command line."""
    return 0
