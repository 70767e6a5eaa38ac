"""The lock-step loop with the ids a trainer needs: sampled ones as they were, what was put in encoded once, and who wrote which."""

from __future__ import annotations

from typing import Any

from _lockstep import Lockstep, Talk

from thincode.rollout.episode import Ask


class IdsTalk(Talk):
    """One episode, as text and as ids."""

    prompt_ids: list[int]
    ids: list[int]
    """Everything after the prompt."""
    mask: list[int]
    """1 for what the model wrote."""


class LockstepIds(Lockstep):
    """See the module."""

    def _start(self, ask: Ask) -> IdsTalk:
        plain = super()._start(ask)
        talk = IdsTalk(plain.ask, plain.text, plain.begin)
        talk.prompt_ids = self.tokenizer.encode(talk.text, add_special_tokens=False)
        talk.ids, talk.mask = [], []
        return talk

    def _take(self, talk: Any, row: list[int], room: int) -> None:
        ends = {self.fence_id, *self.end_ids}
        stop = next((at for at, token in enumerate(row) if token in ends), None)
        written = row if stop is None else row[: stop + 1]
        talk.ids += written
        talk.mask += [1] * len(written)
        super()._take(talk, row, room)

    async def _run_block(self, talk: Any) -> None:
        before = len(talk.text)
        await super()._run_block(talk)
        put_in = self.tokenizer.encode(talk.text[before:], add_special_tokens=False)
        talk.ids += put_in
        talk.mask += [0] * len(put_in)
