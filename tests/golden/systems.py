"""The page about every system, made by running, reading and measuring each."""

from __future__ import annotations

from systems import page, walk


def files() -> dict[str, str]:
    return {"../../docs/systems.md": page(walk())}
