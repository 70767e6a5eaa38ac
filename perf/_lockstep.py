"""The plain way to roll out episodes, to be compared with ours: a lock-step loop over transformers' `generate`.

    while episodes are live:
        all of them generate, in one left-padded batch with a KV cache, until each has closed a block or ended
        all blocks run at once; their outputs are appended; who has ended makes room for the next problem

It is made as strong as such a loop can be: a row stops at the fence's own token, the cache (whichever of transformers' two is
faster here) serves the whole turn, blocks run concurrently in the same interpreter, and an episode that has ended is replaced
before the next turn. It keeps text only, and encodes it anew each turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from thincode.interpreter import Session
from thincode.rollout import prompt
from thincode.rollout.crowd import LoopThread
from thincode.rollout.episode import CALLS_SPENT, Ask, Setting


@dataclass
class Talk:
    """One episode, as text."""

    ask: Ask
    text: str
    """Prompt and everything after it."""
    begin: int
    """Where the prompt ends."""
    turn: str = ""
    calls: int = 0
    told: bool = False
    session: Session | None = None
    generated: int = 0
    """Tokens the model wrote."""
    over: bool = False

    @property
    def written(self) -> str:
        """Everything after the prompt."""
        return self.text[self.begin :]


class Lockstep:
    """Rolls out asks with `generate`."""

    def __init__(
        self, *, model: Any, tokenizer: Any, setting: Setting, loop: LoopThread, live: int, cache: str = "dynamic"
    ) -> None:
        """Bind model and interpreter.

        Args:
            model: a transformers model.
            tokenizer: transformers' own, padding on the left.
            setting: format, budget, sampling and interpreter.
            loop: where blocks are awaited.
            live: episodes in a batch.
            cache: `cache_implementation` of `generate`: dynamic or static.
        """
        self.cache = cache
        self.model = model
        self.tokenizer = tokenizer
        self.setting = setting
        self.loop = loop
        self.live = live
        self.end_ids = set(setting.tokenizer.eos_ids) if setting.tokenizer is not None else set()
        self.fence_id = tokenizer.convert_tokens_to_ids("```\n")
        if self.fence_id in (None, tokenizer.unk_token_id):
            raise SystemExit("the tokenizer has no token for the closing fence, so this baseline can't stop there")

    def roll(self, asks: Sequence[Ask]) -> list[Talk]:
        """All episodes, in the order asked."""
        talks = [self._start(ask) for ask in asks]
        waiting, live = list(reversed(talks)), []
        while waiting or live:
            while waiting and len(live) < self.live:
                live.append(waiting.pop())
            self._generate(live)
            self.loop.call(self._run_blocks(live))
            live = [talk for talk in live if not talk.over]
        return talks

    def _start(self, ask: Ask) -> Talk:
        text = prompt.render(ask.question, format=self.setting.format, tokenizer=self.setting.tokenizer)
        return Talk(ask, text, len(text))

    def _generate(self, live: list[Talk]) -> None:
        """One turn of everybody."""
        batch = self.tokenizer(
            [talk.text for talk in live], return_tensors="pt", padding=True, add_special_tokens=False
        )
        used = batch["attention_mask"].sum(dim=1).tolist()
        rooms = [self.setting.budget.context_tokens - length for length in used]
        width = batch["input_ids"].shape[1]
        heat = self.setting.sampling.temperature
        drawn = {"do_sample": True, "temperature": heat, "top_k": 0} if heat else {"do_sample": False}
        with torch.no_grad():
            rows = self.model.generate(
                input_ids=batch["input_ids"],
                attention_mask=batch["attention_mask"],
                max_new_tokens=max(1, *rooms),  # text encoded anew may have become longer than its budget
                eos_token_id=[self.fence_id, *sorted(self.end_ids)],
                pad_token_id=self.tokenizer.pad_token_id,
                cache_implementation=self.cache,
                **drawn,
            )[:, width:].tolist()
        for talk, row, room in zip(live, rows, rooms, strict=True):
            self._take(talk, row[: max(room, 0)], room)

    def _take(self, talk: Talk, row: list[int], room: int) -> None:
        stop = next((at for at, token in enumerate(row) if token == self.fence_id or token in self.end_ids), None)
        ended = stop is not None and row[stop] in self.end_ids
        ids = row if stop is None else row[: stop + (not ended)]
        talk.generated += len(ids) + ended
        piece = self.tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)
        talk.turn += piece
        talk.text += piece
        talk.over = ended or len(ids) >= room

    async def _run_blocks(self, live: list[Talk]) -> None:
        await asyncio.gather(*(self._run_block(talk) for talk in live))

    async def _run_block(self, talk: Talk) -> None:
        scanner = self.setting.format.scanner()
        call = scanner.feed(talk.turn) or (scanner.finish() if talk.over else None)
        if call is not None:
            talk.text += call.missing
            talk.over = talk.told and talk.calls >= self.setting.budget.calls
            if talk.calls < self.setting.budget.calls:
                talk.text += self.setting.format.output(await self._printed(talk, call.code)).text
            elif not talk.told:
                talk.told = True
                talk.text += self.setting.format.notice(CALLS_SPENT).text
            talk.turn = ""
            talk.over = talk.over or self._used(talk) >= self.setting.budget.context_tokens
        if talk.over and talk.session is not None:
            await talk.session.close()

    async def _printed(self, talk: Talk, code: str) -> str:
        talk.calls += 1
        if talk.session is None:
            talk.session = await self.setting.interpreter.session(seed=talk.ask.address.seed("session"))
        output = (await talk.session.run(code)).output
        return self.setting.tokenizer.neutralize(output) if self.setting.tokenizer is not None else output

    def _used(self, talk: Talk) -> int:
        return len(self.tokenizer.encode(talk.text, add_special_tokens=False))
