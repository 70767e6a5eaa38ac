"""Token ids with their authors: one append-only list, and the only maker of loss masks."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


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
