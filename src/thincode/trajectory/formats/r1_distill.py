r"""DeepSeek-R1 and its distilled models (2025, arXiv 2501.12948): a thought up to `</think>`, then text with `\boxed{…}`.

The authors advise to say everything in the user's message, without a system prompt, and to make every answer begin with
`<think>`; newer chat templates write that themselves, older ones leave it to the model, hence `writes_opening`. A thought that
never ends has no answer.
"""

from __future__ import annotations

from ...settings import settings
from . import Sheet
from ._text import BOX, THINK, Thinking

SHEET = Sheet(
    system="R1-Distill",
    paper="arXiv 2501.12948",
    repository="github.com/deepseek-ai/DeepSeek-R1",
    calls=0,
    context_tokens=32_768,
)


@settings
class Settings:
    """What a recipe may set."""

    instruction: str = BOX
    """Follows the question in the prompt; empty for the bare question."""
    writes_opening: bool = False
    """Whether the model writes `<think>`; false where its chat template does."""


def build(settings: Settings) -> Thinking:
    """The format."""
    opening = f"{THINK}\n" if settings.writes_opening else ""
    return Thinking(name="r1_distill", instruction=settings.instruction, thought_opening=opening)
