"""What a session ran, so that a state which was lost can be made again: the same blocks, which must print the same bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from . import Limits
from ._block import Ended
from ._process import Process

CHEAP_S = 1.0
"""CPU seconds that repeating blocks may take in all; beyond that their loss is named."""


@dataclass(frozen=True)
class Ran:
    """One block that ran to its end."""

    number: int
    code: str
    printed: bytes
    """A digest of how it ended and what it printed."""
    cpu_s: float
    repeatable: bool
    """False for a block that was stopped: how far it came is known to nobody."""


def digest(ended: Ended) -> bytes:
    """What a repetition must give again."""
    text = f"{ended.end}\n{ended.detail}\n{ended.cut_chars}\n{ended.output}"
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


@dataclass
class Past:
    """The blocks of a session in order, and how many of them its checkpoint covers."""

    blocks: list[Ran] = field(default_factory=list)
    covered: int = 0

    def add(self, number: int, code: str, ended: Ended) -> None:
        """A block after which the process lives."""
        self.blocks.append(Ran(number, code, digest(ended), ended.cpu_s, ended.stop is None))
        if ended.checkpoint:
            self.covered = len(self.blocks)

    async def repeat(self, process: Process, *, start: int, end: int, limits: Limits) -> int:
        """Run the blocks from `start` to `end` again.

        Returns:
            How many blocks of the past `process` now holds, counted from the first; less than `end` where one is not to be
            repeated, printed something else, or ended the process.
        """
        doing = self.blocks[start:end]
        if sum(ran.cpu_s for ran in doing) > CHEAP_S or not all(ran.repeatable for ran in doing):
            return start
        for at, ran in enumerate(doing, start):
            ended = await process.run(ran.number, ran.code, limits)
            if not ended.process_lives or digest(ended) != ran.printed:
                if ended.checkpoint:
                    process.checkpoint = 0  # it holds what went another way
                return at
            if ended.checkpoint:
                self.covered = at + 1
        return end


def names(blocks: Sequence[Ran]) -> str:
    """Blocks in words: `block 3`, `blocks 3 to 5`."""
    first, last = blocks[0].number, blocks[-1].number
    return f"block {first}" if first == last else f"blocks {first} to {last}"
