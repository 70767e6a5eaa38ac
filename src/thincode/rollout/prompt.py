"""The start of a trajectory: what the user says, in the tokenizer's chat template."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..trajectory.formats import Format

if TYPE_CHECKING:
    from ..trajectory.tokenizer import Tokenizer


def render(question: str, *, format: Format, tokenizer: Tokenizer | None) -> str:
    """The prompt's text, up to where the model begins.

    Args:
        question: as the problem gives it; special tokens in it are made harmless.
        format: gives the user's message around the question.
        tokenizer: its chat template wraps the message; None leaves the message as it is, with a blank line behind.
    """
    if tokenizer is None:
        return format.user_message(question) + "\n\n"
    return tokenizer.render_chat([{"role": "user", "content": format.user_message(tokenizer.neutralize(question))}])
