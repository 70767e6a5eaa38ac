"""A vLLM server, by token ids: for teacher, evaluation and RL rollouts.

    vllm serve FOLDER --logprobs-mode processed_logprobs

For RL the server must also take orders (VLLM_SERVER_DEV_MODE=1), and its folder is named in `weights`: each step's weights
are written there and read again.

`/v1/completions` takes the ids as they are and gives back those it sampled, each with its log-probability: nothing is decoded
and encoded again. Without `--logprobs-mode processed_logprobs` the log-probabilities are those of temperature 1, whatever the
temperature; records say which (`logprobs: processed` or `raw`), and an update must not use the latter.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import RecipeError
from ..settings import settings
from ..trajectory.tokenizer import Tokenizer
from ._remote import Server

if TYPE_CHECKING:
    from ._ids_engine import IdsEngine

PLACE = "engine vllm"


@settings
class Settings(Server):
    """Whose ids the server speaks."""

    weights: Path | None = None
    """The folder that the server serves, as this machine sees it; RL writes the policy there."""
    tokenizer: Path | None = None
    """Folder of the served model's tokenizer; an evaluation's --model DIR serves as well."""


def open(settings: Settings, *, tokenizer: Tokenizer | None = None) -> IdsEngine:
    """An engine that has asked nothing yet; `prepare` does.

    Args:
        settings: see `Settings`.
        tokenizer: instead of the one `settings.tokenizer` names.

    Raises:
        MissingExtraError: aiohttp is not installed.
        RecipeError: the address or the key can't be used, or no tokenizer is named.
        ModelError: the tokenizer's folder can't be read.
    """
    from ._ids_engine import IdsEngine

    client = settings.client(PLACE)
    if tokenizer is None:
        if settings.tokenizer is None:
            raise RecipeError(f"{PLACE}.tokenizer: missing; name the folder of the served model's tokenizer")
        tokenizer = Tokenizer.load(settings.tokenizer)
    return IdsEngine(settings, client, tokenizer=tokenizer)
