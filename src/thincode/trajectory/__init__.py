"""What is said: one record for a plan, code blocks, what they printed, and the answer.

A trajectory is a list of typed segments whose texts, joined, are everything after the prompt. Where an engine gave
token ids, the same thing is held once more as one append-only list of ids with the author of each; ids are never
decoded and re-encoded. Records of text-only teachers have no ids until `tokens.encode` gives them some, once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from .tokens import Author, Tokens

__all__ = [
    "Address",
    "Author",
    "Block",
    "BlockStatus",
    "EndReason",
    "Segment",
    "SegmentKind",
    "Tokens",
    "Trajectory",
]


@dataclass(frozen=True, order=True)
class Address:
    """Where a trajectory stands in a run; seeds are derived from it, so no order of work changes a sample."""

    run: int
    """Seed of the run."""
    stage: str
    """For example `distill`, `rl-1`, `rl-1/validation`, `evaluate/sft`."""
    step: int
    problem: str
    sample: int

    def seed(self, *more: int | str) -> int:
        """A 63-bit seed for this address and `more` (a turn, a block)."""
        text = "\0".join(map(str, (self.run, self.stage, self.step, self.problem, self.sample, *more)))
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1

    @property
    def key(self) -> tuple[str, int, str, int]:
        """What is unique inside a run folder: (stage, step, problem, sample)."""
        return (self.stage, self.step, self.problem, self.sample)


class SegmentKind(StrEnum):
    """What a piece of a trajectory is."""

    PLAN = "plan"
    """Text before the first block."""
    THOUGHT = "thought"
    """Text between two blocks, or in a trajectory without code."""
    CODE = "code"
    OUTPUT = "output"
    NOTICE = "notice"
    """What the driver told the model, for example that no calls remain."""
    ANSWER = "answer"
    """Text after the last output, or the last text of a trajectory without code."""


class BlockStatus(StrEnum):
    """How a block ended. `error` and `limit` are the model's failures; `lost` is ours and never counted as the model's."""

    OK = "ok"
    ERROR = "error"
    """An exception reached the top."""
    LIMIT = "limit"
    """We stopped it: time, memory, processes, a crash."""
    LOST = "lost"
    """Our infrastructure failed."""


class EndReason(StrEnum):
    """Why a trajectory ended; each is counted."""

    FINISHED = "finished"
    """The model ended its turn, with an answer or without one."""
    CONTEXT = "context"
    """The token budget is spent."""
    CALLS = "calls"
    """The calls are spent, the model was told, and asked for another one all the same."""
    SECONDS = "seconds"
    """The seconds of the trajectory are spent."""
    LOST = "lost"
    """Our infrastructure failed, also after retry."""
    ANSWERED_WITHOUT_INTERPRETER = "answered_without_interpreter"
    """A block was lost, the model was told, and answered in text; only where a recipe asks for that."""


@dataclass(frozen=True)
class Block:
    """What running a code segment gave."""

    status: BlockStatus
    detail: str = ""
    """The exception's type name, the limit's name, or what of ours failed."""
    cut_chars: int = 0
    """Characters of output left out of what the model saw."""
    wall_s: float = field(default=0.0, compare=False)
    cpu_s: float = field(default=0.0, compare=False)


@dataclass(frozen=True)
class Segment:
    """One piece of a trajectory. The texts of all segments, joined, are the trajectory after its prompt."""

    kind: SegmentKind
    text: str
    """Verbatim, markers (fences, tags) included."""
    content: str = ""
    """For code: the source that ran. For output: what the model saw of what was printed. Else the stripped text."""
    start: int | None = None
    """First token in `Trajectory.tokens`; None in a record without ids. A token belongs to the segment it starts in."""
    end: int | None = None
    """One past the last token."""
    block: Block | None = None
    """For code that ran."""


@dataclass(frozen=True)
class Trajectory:
    """q, t1, c1, o1, …, cN, oN, a."""

    address: Address
    question: str
    format: str
    """Name of the wire format."""
    prompt: str
    """The rendered prompt, which the segments continue."""
    segments: tuple[Segment, ...]
    end: EndReason
    answer: str | None
    """What the format's own rule finds in the text the model wrote; None if it finds nothing, or a budget cut the text."""
    tokens: Tokens | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    """For example thincode, model, prompt, checkpoint."""
    usage: Mapping[str, int] = field(default_factory=dict, compare=False)
    """What a served model charged: `prompt_tokens`, `generated_tokens`, `requests`, …; empty for others."""
    generate_s: float = field(default=0.0, compare=False)
    execute_s: float = field(default=0.0, compare=False)

    @property
    def text(self) -> str:
        """Everything after the prompt."""
        return "".join(segment.text for segment in self.segments)

    @property
    def blocks(self) -> tuple[Segment, ...]:
        """The code segments that ran, in order."""
        return tuple(segment for segment in self.segments if segment.block is not None)

    @property
    def outputs(self) -> tuple[Segment, ...]:
        """The output segments, in order; one for each block."""
        return tuple(segment for segment in self.segments if segment.kind is SegmentKind.OUTPUT)

    @property
    def lost(self) -> bool:
        """Whether our infrastructure failed in it: it leaves updates, statistics and metrics."""
        return self.end is EndReason.LOST

    @property
    def with_interpreter(self) -> bool:
        """Whether the interpreter served it to its end: headline figures and, unless set otherwise, RL count no other."""
        return self.end not in (EndReason.LOST, EndReason.ANSWERED_WITHOUT_INTERPRETER)
