"""Many episodes at once, on one long-lived event loop.

The loop lives in a thread of its own and owns episodes, sockets and sessions. Whoever calls `roll` owns torch: while the
episodes talk, the calling thread drives the engine. In the overlapped schedule episodes start as others end; in the
deterministic one they come in fixed cohorts, so that the asks alone decide which rows share a batch.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar

from ..engines import Engine
from ..errors import TooManyLostError
from ..trajectory import BlockStatus, Trajectory
from . import Schedule
from ._turn import Watch
from .episode import Ask, Setting, check_room, run

T = TypeVar("T")
OnFinished = Callable[[Trajectory], None]
LOST_RETRIES = 2
"""Times a lost trajectory is asked for again at the same address."""


class LoopThread:
    """An event loop in a thread of its own, for as long as the run lasts."""

    def __init__(self) -> None:
        """Start the thread."""
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="episodes", daemon=True)
        self._thread.start()

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Run a coroutine on the loop."""
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop and wait for it."""
        return self.submit(work).result()

    def close(self) -> None:
        """Cancel what is left, stop the loop and join the thread."""

        async def cancel_rest() -> None:
            rest = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            for task in rest:
                task.cancel()
            await asyncio.gather(*rest, return_exceptions=True)

        self.call(cancel_rest())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: object) -> None:
        self.close()


@dataclass
class LostCount:
    """Blocks run and blocks lost after retry; a run stops when too many are lost. A lost generation counts as a lost block."""

    limit_share: float = 0.02
    at_least: int = 50
    """Blocks seen before the share is judged."""
    blocks: int = 0
    lost: int = 0
    last_detail: str = ""

    def add(self, trajectory: Trajectory) -> None:
        """Count the blocks of one trajectory."""
        for segment in trajectory.blocks:
            assert segment.block is not None
            self.blocks += 1
            if segment.block.status is BlockStatus.LOST:
                self.lost += 1
                self.last_detail = segment.block.detail
                return
        if trajectory.lost:
            self.blocks += 1
            self.lost += 1
            self.last_detail = "the engine could not go on with a trajectory"

    def check(self) -> None:
        """Stop the run when the share of lost blocks is above the limit.

        Raises:
            TooManyLostError: says how many, and what failed last.
        """
        if self.blocks >= self.at_least and self.lost > self.limit_share * self.blocks:
            raise TooManyLostError(
                f"{self.lost} of {self.blocks} blocks were lost by interpreter or engine, more than the limit of "
                f"{self.limit_share:.0%} (lost_share_limit); last failure: {self.last_detail}. Nothing of it counts as the "
                "model's error. Run `thincode doctor`, then continue with --resume"
            )


class Crowd:
    """Makes trajectories, many at once."""

    def __init__(
        self, *, loop: LoopThread, engine: Engine, schedule: Schedule, live: int = 256, lost: LostCount | None = None
    ) -> None:
        """Bind an engine to a loop.

        Args:
            loop: where episodes live.
            engine: who speaks; driven by the thread that calls `roll`.
            schedule: overlapped or deterministic.
            live: episodes at once; in the deterministic schedule the size of a cohort.
            lost: counts lost blocks over the whole run.
        """
        self.engine = engine
        self.lost = lost or LostCount()
        self._loop = loop
        self._schedule = schedule
        self._live = live

    def roll(self, asks: Sequence[Ask], setting: Setting, *, on_finished: OnFinished | None = None) -> list[Trajectory]:
        """Make all trajectories asked for; lost ones are asked for again at the same address, twice.

        Args:
            asks: in the order of the result.
            setting: what the episodes share.
            on_finished: told of each trajectory that is final: at once in the overlapped schedule, cohort by cohort and in
                order in the deterministic one. Called on the event-loop thread, one call at a time.

        Raises:
            InfrastructureError: the engine failed.
            TooManyLostError: more blocks than allowed were lost.
            RecipeError: a prompt leaves no room in the context budget; said before anything is sampled.
        """
        for ask in asks:
            check_room(ask, setting)
        found: dict[tuple[str, int, str, int], Trajectory] = {}
        open_asks = list(asks)
        for attempt in range(1 + LOST_RETRIES):
            last = attempt == LOST_RETRIES
            # Answering in text is the last resort: first the sample is asked for again.
            now = replace(setting, answer_without_interpreter=setting.answer_without_interpreter and last)

            def take(trajectory: Trajectory, last: bool = last) -> None:
                if trajectory.lost and not last:
                    return
                self.lost.add(trajectory)
                found[trajectory.address.key] = trajectory
                if on_finished is not None:
                    on_finished(trajectory)

            for cohort in self._cohorts(open_asks):
                future = self._loop.submit(self._run(cohort, now, take))
                self.engine.drive(future)
                try:
                    future.result()
                except BaseExceptionGroup as group:
                    raise _first(group) from group
            open_asks = [ask for ask in open_asks if ask.address.key not in found]
            if not open_asks:
                break
        self.lost.check()
        return [found[ask.address.key] for ask in asks]

    def roll_one(self, ask: Ask, setting: Setting, *, watch: Watch) -> Trajectory:
        """Make one trajectory and show each piece of text as it comes, on whichever thread it comes.

        Raises:
            InfrastructureError: the engine failed.
            RecipeError: the prompt leaves no room in the context budget.
        """
        check_room(ask, setting)

        async def one() -> Trajectory:
            return await run(ask, voice=await self.engine.voice(ask.address), setting=setting, watch=watch)

        future = self._loop.submit(one())
        self.engine.drive(future)
        return future.result()

    def _cohorts(self, asks: Sequence[Ask]) -> list[Sequence[Ask]]:
        if self._schedule is Schedule.OVERLAPPED:
            return [asks] if asks else []
        return [asks[first : first + self._live] for first in range(0, len(asks), self._live)]

    async def _run(self, asks: Sequence[Ask], setting: Setting, take: OnFinished) -> None:
        if self._schedule is Schedule.DETERMINISTIC:
            # All voices are open before the first one speaks: the engine waits for every open voice.
            voices = [await self.engine.voice(ask.address) for ask in asks]
            pairs = zip(asks, voices, strict=True)
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(run(ask, voice=voice, setting=setting)) for ask, voice in pairs]
            for task in tasks:
                take(task.result())
            return
        waiting = iter(asks)

        async def worker() -> None:
            for ask in waiting:
                take(await run(ask, voice=await self.engine.voice(ask.address), setting=setting))

        async with asyncio.TaskGroup() as group:
            for _ in range(min(self._live, len(asks))):
                group.create_task(worker())


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
