"""Rollouts per second of our driver beside a plain lock-step loop over transformers' `generate`, and what slow blocks cost.

    python perf/rollout.py --out rollout.json            # trains a tiny model first, a minute or two
    python perf/rollout.py --model DIR --rounds 5

Two figures, each a ratio of measurements that lie side by side in one run:

1. overlapped against lock-step: the same problems, model, interpreter and number of live episodes; greedy, where both write
   the same trajectories (checked), and drawn at temperature 1, where the texts differ and tokens per second are the fairer
   figure. A greedy tiny model may write on to the end of its budget: the plain loop then waits for that row every turn;
2. the wall time when one random block of every tenth episode sleeps for a second, against the same without.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

from thincode import _environment
from thincode.interpreter import BlockResult, Interpreter, Session
from thincode.runs.recipe import Recipe
from thincode.runs.workshop import Workshop
from thincode.settings import Resolved, load

NAP_S = 1.0
NAP = f"__import__('time').sleep({NAP_S})"
SAME_AT_LEAST = 0.95
"""Share of episodes in which both loops must write the same text; float rounding may turn a greedy choice in the rest."""


@dataclass(frozen=True)
class Side:
    """One measurement: so many episodes took so long."""

    wall_s: float
    cpu_s: float
    """Of this process; the blocks' own processes are not in it."""
    episodes: int
    tokens: int
    """Written by the model."""
    texts: tuple[str, ...]
    blocks: Mapping[int, int]
    """Session seed → blocks that ran in it."""


class Sleepy:
    """An interpreter in which chosen blocks sleep first, in the session's own process."""

    def __init__(self, inner: Interpreter, naps: Mapping[int, int]) -> None:
        """`naps`: session seed → number of the block that sleeps."""
        self.inner = inner
        self.naps = naps

    async def session(self, *, seed: int = 0) -> Session:
        session = await self.inner.session(seed=seed)
        return SleepySession(session, self.naps[seed]) if seed in self.naps else session

    async def close(self) -> None:
        """The inner interpreter is its owner's."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *details: object) -> None: ...


class SleepySession:
    """Sleeps before block number `at`."""

    def __init__(self, inner: Session, at: int) -> None:
        self.inner = inner
        self.left = at

    async def run(self, code: str) -> BlockResult:
        self.left -= 1
        if self.left == -1:
            await self.inner.run(NAP)
        return await self.inner.run(code)

    async def close(self) -> None:
        await self.inner.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *details: object) -> None:
        await self.close()


# --- the model ------------------------------------------------------------------------------------------------------


def recipe(words: argparse.Namespace) -> Resolved[Recipe]:
    """The demo's recipe, cut to what teaches the format."""
    small = [f"distill.problems.count={words.train_problems}", f"sft.train.max_tokens={words.train_tokens}"]
    return load(Recipe, "tiny/demo", [*small, f"threads={words.threads}", "rl=null", "evaluate=null"])


def train(resolved: Resolved[Recipe], shop: Workshop, folder: Path) -> Path:
    """Distill and SFT; the folder of the model."""
    from thincode.runlog import Progress
    from thincode.runs.pipeline import Console, Pipeline

    console = Console(progress=partial(Progress, every_s=20.0), say=print)
    pipeline = Pipeline(resolved, out=folder, shop=shop, console=console)
    pipeline.distill(folder / "distill")
    return pipeline.sft(folder / "sft", data=folder / "distill")


# --- the two loops --------------------------------------------------------------------------------------------------


class Bench:
    """Model, problems and both loops."""

    def __init__(self, words: argparse.Namespace, shop: Workshop, model_folder: Path) -> None:
        import torch
        import transformers
        from _lockstep import Lockstep

        from thincode.engines import Sampling, local
        from thincode.problems.sources import drills
        from thincode.rollout import Budget
        from thincode.training import models
        from thincode.trajectory.tokenizer import Tokenizer

        transformers.logging.set_verbosity_error()
        torch.set_num_threads(words.threads)
        self.words, self.shop = words, shop
        self.tokenizer = Tokenizer.load(model_folder)
        model: Any = models.load(str(model_folder)).eval()
        problems = drills.Settings(
            split=drills.Split.HELDOUT, count=words.problems, seed=5, wordings=drills.Wordings.MIXED
        )
        self.problems = drills.load(problems)
        budget = Budget(context_tokens=words.context_tokens, calls=8)
        self.setting = shop.setting(tokenizer=self.tokenizer, budget=budget, sampling=Sampling(temperature=1.0))
        self.engine = local.open(local.Settings(rows=words.rows), tokenizer=self.tokenizer, model=model)
        padded = transformers.AutoTokenizer.from_pretrained(model_folder, padding_side="left")
        self.plain = partial(Lockstep, model=model, tokenizer=padded, loop=shop.loop)
        self.cache = "dynamic"

    def heat(self, temperature: float) -> None:
        """Draw at this temperature from now on; 0 is greedy."""
        self.setting = replace(self.setting, sampling=replace(self.setting.sampling, temperature=temperature))

    def asks(self, name: str, count: int) -> list[Any]:
        """So many episodes, over the problems in turn."""
        from thincode.rollout.episode import Ask
        from thincode.trajectory import Address

        chosen = [(number, self.problems[number % len(self.problems)]) for number in range(count)]
        return [Ask(Address(1, name, 0, p.id, n // len(self.problems)), p.question) for n, p in chosen]

    def overlapped(self, asks: Sequence[Any], *, live: int, naps: Mapping[int, int] | None = None) -> Side:
        """Our driver."""
        from thincode.rollout import Schedule
        from thincode.rollout.crowd import Crowd
        from thincode.trajectory.tokens import Author

        crowd = Crowd(loop=self.shop.loop, engine=self.engine, schedule=Schedule.OVERLAPPED, live=live)
        setting = self.setting
        if naps is not None:
            setting = replace(setting, interpreter=Sleepy(setting.interpreter, naps))
        done, wall_s, cpu_s = timed(lambda: crowd.roll(asks, setting))
        tokens = sum(int((one.tokens.author == Author.MODEL).sum()) for one in done if one.tokens is not None)
        blocks = {one.address.seed("session"): len(one.blocks) for one in done}
        return Side(wall_s, cpu_s, len(done), tokens, tuple(one.text for one in done), blocks)

    def lockstep(self, asks: Sequence[Any], *, live: int) -> Side:
        """The plain loop."""
        done, wall_s, cpu_s = timed(lambda: self.plain(setting=self.setting, live=live, cache=self.cache).roll(asks))
        blocks = {talk.ask.address.seed("session"): talk.calls for talk in done}
        texts = tuple(talk.written for talk in done)
        return Side(wall_s, cpu_s, len(done), sum(talk.generated for talk in done), texts, blocks)


def timed(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """What `work` gave, wall seconds, CPU seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    return result, time.perf_counter() - wall, time.process_time() - cpu


# --- the two figures ------------------------------------------------------------------------------------------------


def against_lockstep(bench: Bench, words: argparse.Namespace, temperature: float) -> dict[str, Any]:
    """Rounds of both loops, in alternating order."""
    bench.heat(temperature)
    asks = bench.asks("speed", words.episodes)
    few = asks[: max(words.live // 2, 1)]
    bench.overlapped(few, live=words.live)  # warm up; and find the cache that is better for the plain loop
    trial = {}
    for bench.cache in ("dynamic", "static"):
        trial[bench.cache] = bench.lockstep(few, live=words.live).cpu_s
    bench.cache = min(trial, key=lambda name: trial[name])
    print(f"temperature {temperature:g}; the plain loop uses the {bench.cache} cache", flush=True)
    rounds = []
    for number in range(words.rounds):
        sides: dict[str, Side] = {}
        for name in ("overlapped", "lockstep") if number % 2 == 0 else ("lockstep", "overlapped"):
            sides[name] = getattr(bench, name)(asks, live=words.live)
        ours, plain = sides["overlapped"], sides["lockstep"]
        same = statistics.mean(one == other for one, other in zip(ours.texts, plain.texts, strict=True))
        if temperature == 0 and same < SAME_AT_LEAST:
            raise SystemExit(f"only {same:.1%} of the trajectories are the same: the loops do not do the same work")
        rounds.append({"same_share": same, **{name: rates(side) for name, side in sides.items()}})
        print(
            f"  round {number + 1}: {ours.wall_s:.1f} s and {plain.wall_s:.1f} s, {same:.1%} the same text", flush=True
        )
    figures = ("rollouts_per_s", "tokens_per_s", "cpu_ms_per_rollout")
    ratios = {name: spread([one["overlapped"][name] / one["lockstep"][name] for one in rounds]) for name in figures}
    return {"cache": bench.cache, "cache_trial_cpu_s": trial, "rounds": rounds, "ratios": ratios}


def rates(side: Side) -> dict[str, float]:
    """Per second of wall time, and CPU time of this process for each episode."""
    return {
        "wall_s": side.wall_s,
        "rollouts_per_s": side.episodes / side.wall_s,
        "tokens_per_s": side.tokens / side.wall_s,
        "tokens": side.tokens,
        "blocks": sum(side.blocks.values()),
        "cpu_ms_per_rollout": 1e3 * side.cpu_s / side.episodes,
    }


def slow_blocks(bench: Bench, words: argparse.Namespace) -> dict[str, Any]:
    """Rounds with and without naps, in alternating order."""
    bench.heat(1.0)
    asks = bench.asks("slow", words.slow_episodes)
    first = bench.overlapped(asks, live=words.slow_live)  # also tells how many blocks each episode has
    seeds = [ask.address.seed("session") for ask in asks[::10]]
    draw = random.Random(1)
    naps = {seed: draw.randrange(first.blocks[seed]) for seed in seeds if first.blocks[seed]}
    rounds = []
    for number in range(words.slow_rounds):
        sides = {}
        for name in ("plain", "naps") if number % 2 == 0 else ("naps", "plain"):
            sides[name] = bench.overlapped(asks, live=words.slow_live, naps=naps if name == "naps" else None)
        rounds.append({name: rates(side) for name, side in sides.items()})
        print(
            f"  round {number + 1}: {sides['naps'].wall_s:.1f} s with, {sides['plain'].wall_s:.1f} s without",
            flush=True,
        )
    return {
        "naps": len(naps),
        "rounds": rounds,
        "cost": spread([one["naps"]["wall_s"] / one["plain"]["wall_s"] - 1 for one in rounds]),
    }


def spread(values: Sequence[float]) -> dict[str, float]:
    """Median, least and largest."""
    return {"median": statistics.median(values), "least": min(values), "largest": max(values)}


# --- what is shown --------------------------------------------------------------------------------------------------


def table(found: Mapping[str, Any]) -> str:
    """The figures as text."""
    lines = []
    for title, speed in found.get("speed", {}).items():
        lines.append(f"{title:<14}{'rollouts/s':>12}{'tokens/s':>12}{'CPU ms/rollout':>16}   (medians)")
        for name in ("overlapped", "lockstep"):
            columns = ("rollouts_per_s", "tokens_per_s", "cpu_ms_per_rollout")
            one, two, three = (statistics.median(row[name][column] for row in speed["rounds"]) for column in columns)
            lines.append(f"  {name:<12}{one:>12.1f}{two:>12.0f}{three:>16.1f}")
        lines.append("  rollouts/s, overlapped over lock-step: " + shown(speed["ratios"]["rollouts_per_s"], "×", 1))
        lines.append("  tokens/s,   overlapped over lock-step: " + shown(speed["ratios"]["tokens_per_s"], "×", 1))
    if "slow" in found:
        words = shown(found["slow"]["cost"], "%", 100)
        lines.append(f"{found['slow']['naps']} naps of {NAP_S:g} s cost  {words}   wanted: at most 15 %")
    return "\n".join(lines)


def shown(values: Mapping[str, float], unit: str, scale: float) -> str:
    """Median and spread."""
    median, least, largest = (scale * values[name] for name in ("median", "least", "largest"))
    return f"{median:.2f} {unit} ({least:.2f} to {largest:.2f})"


def machine(words: argparse.Namespace) -> dict[str, Any]:
    """Where this was measured, and how."""
    load_before = os.getloadavg()[0]
    about = _environment.environment()
    print(
        f"{about['cpus']} CPUs, {words.threads} torch threads, load {load_before:.1f}, {about['platform']}, "
        f"torch {about['versions'].get('torch')}, transformers {about['versions'].get('transformers')}"
    )
    return {**about, "load_before": load_before, "settings": {**vars(words), "out": None, "model": None}}


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Rollouts per second beside a plain loop, and what slow blocks cost.")
    parser.add_argument("--model", type=Path, metavar="DIR", help="a model that knows the format (default: train one)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write everything measured as JSON")
    parser.add_argument("--only", choices=("speed", "slow"), help="one of the two figures")
    parser.add_argument("--threads", type=int, default=1, help="torch threads; blocks use the other cores")
    parser.add_argument("--context-tokens", type=int, default=320)
    parser.add_argument("--problems", type=int, default=256)
    parser.add_argument("--episodes", type=int, default=512, help="of a round against the plain loop")
    parser.add_argument("--live", type=int, default=192, help="episodes at once, in both loops")
    parser.add_argument("--rows", type=int, default=192, help="rows of our engine")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--slow-episodes", type=int, default=1024)
    parser.add_argument("--slow-live", type=int, default=256)
    parser.add_argument("--slow-rounds", type=int, default=3)
    parser.add_argument("--train-problems", type=int, default=2000)
    parser.add_argument("--train-tokens", type=int, default=800_000)
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> dict[str, Any]:
    """Measure, print, write."""
    words = arguments(argv)
    resolved = recipe(words)
    with ExitStack() as stack:
        shop = stack.enter_context(Workshop(resolved.value))
        found: dict[str, Any] = {"machine": machine(words)}
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        bench = Bench(words, shop, words.model or train(resolved, shop, folder))
        if words.only != "slow":
            found["speed"] = {
                name: against_lockstep(bench, words, heat) for name, heat in (("greedy", 0.0), ("temperature 1", 1.0))
            }
        if words.only != "speed":
            found["slow"] = slow_blocks(bench, words)
        shop.close_engine(bench.engine)
    print(table(found))
    if words.out is not None:
        words.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return found


if __name__ == "__main__":
    main()
