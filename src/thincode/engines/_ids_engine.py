"""The engine `vllm`: token ids in, token ids and log-probabilities out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from ..errors import RecipeError
from . import Context, Sampling, Sink
from ._http import Client, Fault
from ._remote import Hearing, RemoteEngine, Request, Server

if TYPE_CHECKING:
    from ..trajectory.tokenizer import Tokenizer

_PATH = "completions"
_BY_IDS = {
    "return_token_ids": True,
    "logprobs": 0,  # of the sampled token alone
    "skip_special_tokens": False,
    "spaces_between_special_tokens": False,
    "add_special_tokens": False,
}
_USAGE_ALWAYS = {"include_usage": True, "continuous_usage_stats": True}
"""So that what a request cost is known also where it was cut short."""


class IdsEngine(RemoteEngine):
    """See `thincode.engines.vllm`."""

    speaks_ids = True

    def __init__(self, server: Server, client: Client, *, tokenizer: Tokenizer) -> None:
        """`tokenizer` is the served model's: its end-of-sequence ids end a turn."""
        super().__init__(server, client)
        self.tokenizer = tokenizer

    async def prepare(self) -> Mapping[str, str]:
        """See `Engine.prepare`; also asks for one token to see that ids come back, and which log-probabilities."""
        facts = await super().prepare()
        ids = self.tokenizer.encode("1 + 1 =", special=False)
        answer = await self.client.insist(
            lambda: self.ask(_PATH, {**_BY_IDS, "prompt": ids, "temperature": 0.01}), starting=True
        )
        choice = (answer.get("choices") or [{}])[0]
        sampled, logprobs = _sampled(choice)
        if len(sampled) != 1:
            raise RecipeError(
                f"{self.client.place}: {self.client.base_url} gives no token ids; this engine needs vLLM 0.10.2 or newer "
                "(return_token_ids). Other servers are spoken to by the engine openai, which can't be used in RL"
            )
        # So near to greedy, what the sampler drew had all but certainty; the model itself is hardly ever that sure.
        return {**facts, "logprobs": "processed" if logprobs[0] > -1e-3 else "raw"}

    async def read_weights_again(self) -> None:
        """Have the server take its weights from its folder anew, and forget what it cached with the old ones.

        Raises:
            RecipeError: it takes no such orders.
        """
        # Orders stand beside /v1.
        for path, body in (("../collective_rpc", {"method": "reload_weights"}), ("../reset_prefix_cache", {})):
            try:
                await self.client.insist(partial(self.client.order, path, body), starting=True)
            except RecipeError as error:
                raise RecipeError(f"{error}. RL needs a server that takes orders: VLLM_SERVER_DEV_MODE=1") from None

    def request(self, context: Context, *, sampling: Sampling, max_tokens: int, seed: int) -> Request:
        """See `RemoteEngine.request`."""
        if not context.ids:
            raise ValueError("engine vllm speaks ids: Context.ids must hold the prompt")
        fields = {"prompt": list(context.ids), **_BY_IDS}
        if self.stream:
            fields["stream_options"] = _USAGE_ALWAYS
        else:
            # Whole answers end where our text would begin; what stands behind the block is dropped by the sink.
            fields |= {"stop": [context.stop] if context.stop else None, "include_stop_str_in_output": True}
        body = self.body(fields, sampling=sampling, max_tokens=max_tokens, seed=seed)
        return Request(_PATH, body, chars=len(context.prompt) + len(context.text))

    def hearing(self, sink: Sink, request: Request) -> Hearing:
        """See `RemoteEngine.hearing`."""
        return _IdsHearing(sink)


class _IdsHearing(Hearing):
    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def hear(self, choice: Mapping[str, Any]) -> bool:
        """See `Hearing.hear`."""
        sampled, logprobs = _sampled(choice)
        self.tokens += len(sampled)
        return any(self._sink.token(*one) for one in zip(sampled, logprobs, strict=True))


def _sampled(choice: Mapping[str, Any]) -> tuple[list[int], list[float]]:
    """Ids of a choice and their log-probabilities.

    Raises:
        Fault: there are not as many of the one as of the other.
    """
    sampled = choice.get("token_ids") or []
    logprobs = (choice.get("logprobs") or {}).get("token_logprobs") or []
    if len(sampled) != len(logprobs):
        raise Fault(f"{len(sampled)} token ids, but {len(logprobs)} log-probabilities")
    return [int(token) for token in sampled], [math.nan if value is None else float(value) for value in logprobs]
