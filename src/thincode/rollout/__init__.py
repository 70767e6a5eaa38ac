"""The conversation: one episode driver for teacher, RL and evaluation, and many episodes at once.

`episode.run` lets an engine speak until a block is complete, runs the block, puts the output in and goes on, inside a
budget. `crowd.Crowd` runs many episodes on one long-lived event loop; `prompt` renders the start. Nothing here grades, and
nothing here knows the gold answer.
"""

from __future__ import annotations

from enum import StrEnum

from ..settings import settings


@settings
class Budget:
    """What one trajectory may use."""

    context_tokens: int = 16_384
    """Prompt, generated tokens and outputs together. Without a tokenizer, one token is counted for three characters."""
    turn_tokens: int | None = None
    """New tokens of one turn; None where only the whole is bounded. A turn that is cut ends the trajectory."""
    thinking_tokens: int | None = None
    """New tokens of a thought, for formats that have one: when they are spent the thought is closed and the model must answer."""
    calls: int = 20
    """Blocks that run, and calls of tools that are not here. When they are spent the model is told once and must answer."""
    trajectory_s: float = 600.0
    """Wall seconds from the first token to the end; not counted in the deterministic schedule."""


class Schedule(StrEnum):
    """How episodes share engine and interpreter."""

    OVERLAPPED = "overlapped"
    """Everything flows: fast, but timing decides which rows share a batch."""
    DETERMINISTIC = "deterministic"
    """Fixed batch membership: the same seed gives the same ids, texts and statuses on the same machine."""
