r"""OpenReasoning-Nemotron (NVIDIA 2025): Qwen2.5 trained on traces of R1, so `<think>` text `</think>` text with `\boxed{…}`.

Qwen2.5's template opens no thought; the model writes the tag. Evaluated by its authors with up to 64K tokens of output. Its
second mode, which reads several solutions and selects one, is no trajectory and is not here.
"""

from __future__ import annotations

from ...settings import settings
from . import Sheet
from ._text import BOX, THINK, Thinking

SHEET = Sheet(
    system="OpenReasoning-Nemotron",
    repository="huggingface.co/nvidia/OpenReasoning-Nemotron-7B",
    calls=0,
    context_tokens=65_536,
    unknown="there is no paper of its own; the words of the authors' math prompt are replaced by ours",
)


@settings
class Settings:
    """What a recipe may set."""

    instruction: str = BOX
    """Follows the question in the prompt; empty for the bare question."""


def build(settings: Settings) -> Thinking:
    """The format."""
    return Thinking(name="openreasoning", instruction=settings.instruction, thought_opening=f"{THINK}\n")
