"""Token ids with their authors: one append-only list, and the only maker of loss masks."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from . import Segment, Trajectory
    from .formats import Format, Insertion
    from .tokenizer import Tokenizer


class Author(IntEnum):
    """Who wrote a token."""

    PROMPT = 0
    MODEL = 1
    """Sampled by the model, or, in a record encoded from text, written by the teacher."""
    INTERPRETER = 2
    DRIVER = 3
    """Inserted by us: fences around outputs, notices, a closer that had shared its token with dropped text."""


@dataclass(frozen=True, eq=False)
class Tokens:
    """The prompt and everything after it. Three arrays of one length T."""

    ids: NDArray[np.int32]
    author: NDArray[np.uint8]
    logprob: NDArray[np.float32]
    """Log-probability the sampler gave each sampled token, under the distribution it sampled from; NaN elsewhere."""

    def __post_init__(self) -> None:
        if not len(self.ids) == len(self.author) == len(self.logprob):
            raise ValueError(
                f"lengths differ: {len(self.ids)} ids, {len(self.author)} authors, {len(self.logprob)} logprobs"
            )

    def __len__(self) -> int:
        return len(self.ids)

    def __eq__(self, other: Any) -> bool:
        return (
            isinstance(other, Tokens)
            and np.array_equal(self.ids, other.ids)
            and np.array_equal(self.author, other.author)
            and np.array_equal(self.logprob, other.logprob, equal_nan=True)
        )

    def __hash__(self) -> int:
        return hash(self.ids.tobytes())

    @property
    def prompt_length(self) -> int:
        """Number of prompt tokens; they come first."""
        return int((self.author == Author.PROMPT).sum())


class TokenBuilder:
    """The ids of a trajectory that is still growing. Only ever appended to, but for a last token that is not kept."""

    def __init__(self, prompt: Iterable[int]) -> None:
        self.ids: list[int] = [int(token) for token in prompt]
        """Prompt and everything after it so far; to be read only."""
        self._author: list[int] = [Author.PROMPT] * len(self.ids)
        self._logprob: list[float] = [math.nan] * len(self.ids)

    def __len__(self) -> int:
        return len(self.ids)

    def sampled(self, token_id: int, logprob: float = math.nan) -> None:
        """A token the model wrote, with the log-probability its sampler gave it."""
        self._append(token_id, Author.MODEL, logprob)

    def inserted(self, ids: Iterable[int], author: Author) -> None:
        """Tokens that somebody else put in."""
        if author in (Author.MODEL, Author.PROMPT):
            raise ValueError(f"{author.name} inserts nothing; use `sampled` or a new builder")
        for token in ids:
            self._append(token, author, math.nan)

    def drop_last(self) -> None:
        """Take the last sampled token back: it counts as never sampled."""
        if not self._author or self._author[-1] != Author.MODEL:
            raise ValueError("the last token was not sampled, so it can't be dropped")
        for column in (self.ids, self._author, self._logprob):
            column.pop()

    def ended_by(self, ids: Collection[int]) -> bool:
        """Whether the last token is one of these, and the model's."""
        return bool(self.ids) and self._author[-1] == Author.MODEL and self.ids[-1] in ids

    def freeze(self) -> Tokens:
        """The tokens so far."""
        return Tokens(
            np.array(self.ids, dtype=np.int32),
            np.array(self._author, dtype=np.uint8),
            np.array(self._logprob, dtype=np.float32),
        )

    def _append(self, token_id: int, author: Author, logprob: float) -> None:
        self.ids.append(int(token_id))
        self._author.append(author)
        self._logprob.append(logprob)


def insertion_ids(tokenizer: Tokenizer, insertion: Insertion) -> list[list[int]]:
    """Ids of an insertion's three parts: before, body, after. The body is text of strangers, the rest our own."""
    if not insertion.ends_turn:
        return [
            tokenizer.encode(insertion.before, special=True),
            tokenizer.encode(insertion.body, special=False),
            tokenizer.encode(insertion.after, special=True),
        ]
    # No token reaches over a special one, so what stands between two of them is encoded for itself, as in one text.
    opened = tokenizer.plain_ends(insertion.before)[1]
    closed = tokenizer.plain_ends(insertion.after)[0]
    texts = [insertion.before[opened:], insertion.body, insertion.after[:closed]]
    ids, starts = tokenizer.encode_sampled("".join(texts))
    before, body, after = (ids[start:end] for start, end in spans(texts, starts))
    return [
        [*tokenizer.encode(insertion.before[:opened], special=True), *before],
        body,
        [*after, *tokenizer.encode(insertion.after[closed:], special=True)],
    ]


def insert(tokens: TokenBuilder, tokenizer: Tokenizer, insertion: Insertion, *, body: Author) -> None:
    """Append an insertion; its fences are the driver's, its body the interpreter's (an output) or the driver's (a notice).

    The token that ends the model's turn is not put in where the model has written one.
    """
    before, inside, after = insertion_ids(tokenizer, insertion)
    if insertion.ends_turn and tokens.ended_by(tokenizer.eos_ids):
        before = before[1:]
    for ids, author in ((before, Author.DRIVER), (inside, body), (after, Author.DRIVER)):
        tokens.inserted(ids, author)


def spans(texts: Sequence[str], starts: Sequence[int]) -> list[tuple[int, int]]:
    """For consecutive texts, the tokens that start in each.

    Args:
        texts: S texts that one run of T tokens spells, joined.
        starts: (T,) the character, in the joined text, that each token starts in; never falling.

    Returns:
        S pairs: first token and one past the last, counted from the run's first token; they touch, the last ends at T.
    """
    found, token, end = [], 0, 0
    for number, text in enumerate(texts):
        end += len(text)
        first = token
        while token < len(starts) and (starts[token] < end or number == len(texts) - 1):
            token += 1
        found.append((first, token))
    return found


def encode(trajectory: Trajectory, format: Format, tokenizer: Tokenizer, *, prompt: str | None = None) -> Trajectory:
    """Give a record of text alone its ids, once, as the episode driver would hold them.

    Each run of text the model wrote is encoded as one text, each insertion part by part, and a finished record ends with the
    end-of-sequence token, which stands behind the last segment's span. A turn that a tool answers ends with the one of the
    tokenizer's chat template, in whose words turns of a tool are put; it is the first token of that turn's span. Log-probabilities
    are NaN.

    Args:
        trajectory: without ids.
        format: the one it was written in.
        tokenizer: of the model that will learn from it.
        prompt: the rendered prompt the ids shall start with, where that is not the record's own (a teacher's examples are
            not the student's). A record without a prompt gets the question in the tokenizer's chat template.
    """
    from . import EndReason, SegmentKind
    from .turns import render, spoken

    if trajectory.tokens is not None:
        raise ValueError("this trajectory has ids; ids are never made anew from text")
    prompt = prompt or trajectory.prompt
    if not prompt:
        message = {"role": "user", "content": format.user_message(trajectory.question)}
        prompt = render([message], format=format, tokenizer=tokenizer)
    format = spoken(format, tokenizer)
    tokens = TokenBuilder(tokenizer.encode(prompt, special=True))
    segments: list[Segment] = []
    run: list[Segment] = []

    def flush() -> None:
        ids, starts = tokenizer.encode_sampled("".join(part.text for part in run), markers=format.markers)
        for part, (start, end) in zip(run, spans([part.text for part in run], starts), strict=True):
            segments.append(replace(part, start=len(tokens) + start, end=len(tokens) + end))
        for token in ids:
            tokens.sampled(token)
        run.clear()

    for segment in trajectory.segments:
        if segment.kind not in (SegmentKind.OUTPUT, SegmentKind.NOTICE):
            run.append(segment)
            continue
        insertion, spoke = format.insertion(segment), bool(run)
        flush()
        start = len(tokens)
        if insertion.ends_turn and spoke:
            tokens.sampled(insertion_ids(tokenizer, insertion)[0][0])
        body = Author.INTERPRETER if segment.kind is SegmentKind.OUTPUT else Author.DRIVER
        insert(tokens, tokenizer, insertion, body=body)
        segments.append(replace(segment, text=insertion.text, start=start, end=len(tokens)))
    flush()
    if trajectory.end is EndReason.FINISHED:
        tokens.sampled(tokenizer.eos_ids[0])
    return replace(trajectory, prompt=prompt, segments=tuple(segments), tokens=tokens.freeze())


def loss_mask(tokens: Tokens, *, train_outputs: bool = False) -> NDArray[np.bool_]:
    """Which tokens a loss may train: those the model wrote.

    Args:
        tokens: T tokens.
        train_outputs: also the interpreter's tokens and the fences around them (ThinC's m=1 in SFT); never in RL.

    Returns:
        (T,) booleans. Prompt tokens are never trained.
    """
    if train_outputs:
        return np.asarray(tokens.author != Author.PROMPT)
    return np.asarray(tokens.author == Author.MODEL)
