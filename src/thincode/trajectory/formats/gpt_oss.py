r"""gpt-oss (OpenAI 2025, arXiv 2508.10925): messages in channels, of which the last, `final`, is the answer with `\boxed{…}`.

    <|channel|>analysis<|message|>…<|end|><|start|>assistant<|channel|>final<|message|>…

All of it is the assistant's; what ends with the header of the final message is the thought, the commentary channel too. A server
that takes the headers away itself leaves text in which everything is the answer. The model can call a Python tool from its
thought; here, as in the papers that compare with it, it has none. `<|return|>`, which ends the final message, is the
end-of-sequence token and no text. The reasoning effort is a word in the system message, which the chat template writes.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...settings import settings
from . import Sheet
from ._text import BOX, Thinking

SHEET = Sheet(
    system="gpt-oss",
    paper="arXiv 2508.10925",
    repository="github.com/openai/gpt-oss",
    calls=0,
    unknown="the reasoning effort and the tokens behind the figures that others publish of it",
)


@settings
class Settings:
    """What a recipe may set."""

    instruction: str = BOX
    """Follows the question in the prompt; empty for the bare question."""


@dataclass(frozen=True)
class _Channels(Thinking):
    @property
    def markers(self) -> tuple[str, ...]:
        return (*super().markers, "<|channel|>", "<|message|>", "<|end|>", "<|start|>")


def build(settings: Settings) -> Thinking:
    """The format."""
    return _Channels(
        name="gpt_oss",
        instruction=settings.instruction,
        thought_opening="<|channel|>analysis<|message|>",
        thought_end="<|end|><|start|>assistant<|channel|>final<|message|>",
        around_end=("", ""),
    )
