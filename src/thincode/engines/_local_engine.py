"""The torch side of the engine `local`: rows, steps, and the loop that one thread drives."""

from __future__ import annotations

import queue
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import nn

from ..errors import InfrastructureError
from ..trajectory import Address
from . import Finish
from ._local_voice import Closed, LocalVoice, Message, Opened, Request, Row, Wake
from ._ragged_cache import RaggedCache
from ._sampler import Drawn, draw, uniforms

_SHORT = 16
"""A row with at most so many ids to feed takes them one column a step, beside the rows that sample."""
_PREFILL_TOKENS = 2048
"""Columns x rows of one forward for rows with more to feed."""
_GATHER = 8
"""So many rows are gathered for one prefill, for at most so many steps."""
_DENSE = 0.75
"""Rows are moved together when fewer than this share of a step's batch is at work."""


class LocalEngine:
    """See `thincode.engines.local.open`."""

    speaks_ids = True
    most_at_once = None

    def __init__(
        self,
        *,
        model: nn.Module,
        name: str,
        ends: frozenset[int],
        rows: int,
        context_tokens: int | None,
        threads: int | None,
        deterministic: bool,
    ) -> None:
        config: Any = model.config
        text_config = config.get_text_config()
        reach = getattr(text_config, "max_position_embeddings", None)
        self.name = name
        self._model = model
        self._device = next(model.parameters()).device
        self._additive_mask = config._attn_implementation == "eager"
        self._ends = ends
        self._rows = rows
        self._context_tokens = min((n for n in (context_tokens, reach) if n is not None), default=None)
        self._threads = threads
        self._deterministic = deterministic
        self._cache = RaggedCache(layers=text_config.num_hidden_layers, device=self._device, rows=rows)
        self._inbox: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self._voices: set[LocalVoice] = set()
        """The event-loop side's list of open voices."""
        self._open: set[LocalVoice] = set()
        """The torch side's; follows by messages."""
        self._waiting: list[Request] = []
        self._held = 0
        """Requests of voices that have no row yet."""
        self._seats: list[Row | None] = []
        """Who holds which row of the cache."""
        self._closed = False

    # --- the event-loop side ----------------------------------------------------------------------------------------

    async def prepare(self) -> Mapping[str, str]:
        """See `Engine.prepare`; the model was checked when it was opened."""
        return {}

    async def voice(self, address: Address) -> LocalVoice:
        """See `Engine.voice`."""
        if self._closed:
            raise InfrastructureError("engine local is closed")
        voice = LocalVoice(address, post=self._post, context_tokens=self._context_tokens)
        self._voices.add(voice)
        self._post(Opened(voice))
        return voice

    async def close(self) -> None:
        """See `Engine.close`. The cache is freed by the drive in progress, or with the engine."""
        self._closed = True
        for voice in list(self._voices):
            await voice.close()

    def _post(self, message: Message) -> None:
        if isinstance(message, Closed):
            self._voices.discard(message.voice)
        self._inbox.put(message)

    # --- the torch side ---------------------------------------------------------------------------------------------

    def weights_changed(self) -> None:
        """Forget all cached keys and values: the model was updated. Call it between drives, from the torch thread."""
        for voice in self._open:
            voice.row.fed = 0

    def drive(self, until: Future[Any]) -> None:
        """Generate for whoever asks until `until` is done; sleep while nobody does. Called by the thread that owns torch.

        Sinks are called here. The model is in evaluation mode meanwhile, without gradients.
        """
        until.add_done_callback(lambda _: self._inbox.put(Wake()))
        with self._generating():
            while not until.done():
                self._read_inbox(sleep=not self._ready())
                if self._ready() and not until.done():
                    try:
                        self._step()
                    except Exception as error:
                        self._fail_all(error)
        self._read_inbox(sleep=False)
        if not self._open:
            self._cache.clear()

    @contextmanager
    def _generating(self) -> Iterator[None]:
        modes = [(module, module.training) for module in self._model.modules()]
        threads = torch.get_num_threads()
        self._model.eval()
        if self._threads is not None:
            torch.set_num_threads(self._threads)
        try:
            # Not inference_mode: a buffer the forward makes anew (rotary frequencies) must stay usable for training.
            with torch.no_grad():
                yield
        finally:
            torch.set_num_threads(threads)
            for module, training in modes:
                module.training = training

    def _read_inbox(self, *, sleep: bool) -> None:
        try:
            message = self._inbox.get(block=sleep)
            while True:
                self._handle(message)
                message = self._inbox.get(block=False)
        except queue.Empty:
            pass

    def _handle(self, message: Message) -> None:
        if isinstance(message, Opened):
            self._open.add(message.voice)
        elif isinstance(message, Closed):
            self._open.discard(message.voice)
            row = message.voice.row
            if row.place is not None:
                self._seats[row.place] = None
            row.place = row.request = None
        elif isinstance(message, Request) and message.live:
            row = message.voice.row
            row.take(message)
            if row.place is None:
                self._waiting.append(message)

    def _ready(self) -> bool:
        """Whether a step can be made now."""
        if self._deterministic:
            return bool(self._open) and all(_at_work(voice.row) for voice in self._open)
        self._waiting = [request for request in self._waiting if request.live]
        free = self._rows - sum(row is not None for row in self._seats)
        return bool(self._waiting and free > 0) or any(row is not None and _at_work(row) for row in self._seats)

    def _step(self) -> None:
        """One token for each row at work, and one forward for the rows with much to feed."""
        self._seat()
        self._close_ranks()
        long = self._borrow([row for row in self._at_work() if len(row.ids) - row.fed > _SHORT])
        if long and self._prefill_is_due(long):
            self._prefill(long)
            self._borrow(long)
        short = [row for row in self._at_work() if len(row.ids) - row.fed <= _SHORT]
        if short:
            self._advance(short)

    def _prefill_is_due(self, long: list[Row]) -> bool:
        """A forward for one prompt costs nearly what one for eight does: gather a few, while others have work to go on with."""
        others = len(self._at_work()) - len(long)
        self._held += 1
        if not self._deterministic and len(long) < _GATHER and others >= _GATHER and self._held < _GATHER:
            return False
        self._held = 0
        return True

    def _at_work(self) -> list[Row]:
        return [row for row in self._seats if row is not None and _at_work(row)]

    def _seat(self) -> None:
        """Give rows of the cache to those who wait for one, the lowest first."""
        self._waiting = [request for request in self._waiting if request.live]
        if not self._waiting:
            return
        if self._deterministic:
            self._waiting.sort(key=lambda request: request.voice.address)
        free = [place for place, row in enumerate(self._seats) if row is None]
        free.extend(range(len(self._seats), self._rows))
        seated = list(zip(free, self._waiting, strict=False))
        for place, request in seated:
            self._seats.extend([None] * (place + 1 - len(self._seats)))
            row = self._seats[place] = request.voice.row
            row.place = place
        del self._waiting[: len(seated)]

    def _close_ranks(self) -> None:
        """Move rows at work to the front when too much of the batch would be idle or dead."""
        while self._seats and self._seats[-1] is None:
            self._seats.pop()
        work = self._at_work()
        if not work or len(work) >= _DENSE * (_place(work[-1]) + 1):
            return
        movers = [_place(row) for row in work if _place(row) >= len(work)]
        busy = {_place(row) for row in work}
        holes = [place for place in range(len(work)) if place not in busy]
        self._cache.swap(movers, holes, length=max((row.fed for row in self._seats if row is not None), default=0))
        for mover, hole in zip(movers, holes, strict=True):
            self._seats[mover], self._seats[hole] = self._seats[hole], self._seats[mover]
            for place in (mover, hole):
                row = self._seats[place]
                if row is not None:
                    row.place = place

    def _borrow(self, rows: list[Row]) -> list[Row]:
        """Copy what a neighbor has computed already: samples of one problem share its prompt. Returns who found no neighbor."""
        lenders = {row.prompt: row for row in self._seats if row is not None and row.has_fed_prompt}
        borrowing = [(row, lenders[row.prompt]) for row in rows if row.fed == 0 and row.prompt in lenders]
        if borrowing:
            length = max(len(row.prompt) for row, _ in borrowing) - 1
            self._cache.copy(
                [_place(lender) for _, lender in borrowing], [_place(row) for row, _ in borrowing], length=length
            )
        for row, _ in borrowing:
            row.fed = len(row.prompt) - 1
        return [row for row in rows if row.fed == 0 or len(row.ids) - row.fed > _SHORT]

    def _prefill(self, rows: list[Row]) -> None:
        """Feed rows with much to feed all but their last id, in chunks; rows of like length together, each prompt once."""
        first_of = {row.prompt if row.fed < len(row.prompt) - 1 else id(row): row for row in sorted(rows, key=_fed)}
        rows = sorted(first_of.values(), key=lambda row: (row.fed - len(row.ids), _place(row)))
        columns = min(len(rows[0].ids) - 1 - rows[0].fed, _PREFILL_TOKENS)
        rows = rows[: max(1, _PREFILL_TOKENS // columns)]
        chunks = [row.ids[row.fed : min(row.fed + columns, len(row.ids) - 1)] for row in rows]
        token_BC = [chunk + [0] * (columns - len(chunk)) for chunk in chunks]
        # Padding columns write beyond the row's end, where no mask looks.
        position_BC = self._tensor([row.fed for row in rows])[:, None] + torch.arange(columns, device=self._device)
        if self._context_tokens is not None:  # Learned position embeddings end there.
            position_BC = position_BC.clamp(max=self._context_tokens - 1)
        longest = max(row.fed for row in rows) + columns
        mask = self._cache.point([_place(row) for row in rows], position_BC, longest=longest)
        nowhere = torch.zeros(len(rows), columns, dtype=torch.bool, device=self._device)
        self._forward(self._tensor(token_BC), position_BC, mask, keep_BC=nowhere)
        for row, chunk in zip(rows, chunks, strict=True):
            row.fed += len(chunk)

    def _advance(self, rows: list[Row]) -> None:
        """Feed each of `rows` one id; draw a token for those that have no more to feed."""
        batch = _place(rows[-1]) + 1
        # Rows of the batch that are not at work write garbage at their end, where no mask looks.
        positions = [0 if row is None else row.fed for row in self._seats[:batch]]
        tokens, keep = [0] * batch, [False] * batch
        drawing: list[tuple[Row, Request]] = []
        for row in rows:
            place = _place(row)
            tokens[place] = row.ids[row.fed]
            row.fed += 1
            if row.fed == len(row.ids) and row.request is not None:
                keep[place] = True
                drawing.append((row, row.request))
        position_B1 = self._tensor(positions)[:, None]
        mask = self._cache.point(batch, position_B1, longest=max(positions) + 1)
        logits_SV = self._forward(self._tensor(tokens)[:, None], position_B1, mask, keep_BC=self._tensor(keep)[:, None])
        if drawing:
            self._hand_out(drawing, _drawn(logits_SV, drawing))

    def _hand_out(self, drawing: list[tuple[Row, Request]], drawn: Drawn) -> None:
        for (row, request), token, logprob in zip(drawing, drawn.ids, drawn.logprobs, strict=True):
            if not request.live:
                continue
            row.ids.append(token)
            request.made += 1
            try:
                stop = request.sink.token(token, logprob)
            except Exception as error:
                request.send(error)
                continue
            if stop:
                request.send(Finish.STOPPED)
            elif token in self._ends:
                request.send(Finish.ENDED)
            elif request.made >= request.max_tokens:
                request.send(Finish.LENGTH)

    def _forward(
        self, token_BC: torch.Tensor, position_BC: torch.Tensor, mask: torch.Tensor, *, keep_BC: torch.Tensor
    ) -> torch.Tensor:
        if self._additive_mask:
            dtype = next(self._model.parameters()).dtype
            mask = torch.zeros_like(mask, dtype=dtype).masked_fill_(~mask, torch.finfo(dtype).min)
        result = self._model(
            input_ids=token_BC,
            attention_mask=mask,
            position_ids=position_BC,
            cache=self._cache,
            use_cache=True,
            logits_to_keep=keep_BC,
        )
        logits_SV: torch.Tensor = result.logits
        return logits_SV

    def _tensor(self, values: Any) -> torch.Tensor:
        return torch.tensor(values, device=self._device)

    def _fail_all(self, error: Exception) -> None:
        """A step failed: what the caches hold is unknown, so they are dropped; the engine can go on."""
        self._cache.clear()
        self.weights_changed()
        requests = {request for request in self._waiting if request.live}
        requests.update(voice.row.request for voice in self._open if voice.row.request and voice.row.request.live)
        self._waiting.clear()
        for request in requests:
            failure = InfrastructureError(
                f"engine local: a generation step failed: {type(error).__name__}: {error}; "
                "if memory ran out, lower engine.rows or budget.context_tokens"
            )
            failure.__cause__ = error
            request.send(failure)


def _at_work(row: Row) -> bool:
    return row.request is not None and row.request.live


def _fed(row: Row) -> int:
    return row.fed


def _place(row: Row) -> int:
    if row.place is None:
        raise RuntimeError("a row at work has a place in the cache")
    return row.place


def _drawn(logits_SV: torch.Tensor, drawing: list[tuple[Row, Request]]) -> Drawn:
    seed_S = np.array([request.seed for _, request in drawing], dtype=np.uint64)
    position_S = np.array([len(row.ids) for row, _ in drawing], dtype=np.uint64)
    return draw(
        logits_SV,
        temperature_S=np.array([request.sampling.temperature for _, request in drawing], dtype=np.float64),
        top_p_S=np.array([request.sampling.top_p for _, request in drawing], dtype=np.float64),
        uniform_S=uniforms(seed_S, position_S),
    )
