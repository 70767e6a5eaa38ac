"""RL steps per second beside TRL's GRPOTrainer, on the same model, problems, budget and machine; and how long our generator idles.

    python perf/rl.py --out rl.json                # trains a tiny model first, a minute or two
    python perf/rl.py --model DIR --rounds 3

Sides, in rounds of alternating order:

- **ours**: `runs.rl`, as a recipe runs it; a step is P problems × G samples and two updates;
- **lock-step**: TRL's `GRPOTrainer` with a `rollout_func` that goes turn by turn over transformers' `generate` and runs blocks in
  the same interpreter (`_lockstep.py`, keeping ids); a generation batch of P × G and two updates, the same optimizer;
- **python -c**: the same with a fresh Python for each block. Names from earlier blocks are gone, so its texts differ: read tokens
  per second. It is there for the reader, and judges nothing.

The first step of a side warms up and is not counted. The generator idles while an episode is open, none of its blocks runs, and
no step of the model is being made; its share is of the time in which any episode is so.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from rollout import machine, recipe, shown, spread, train

from thincode.interpreter import BlockResult, Interpreter, Session, Status
from thincode.runlog import Progress, RunFolder
from thincode.runs import rl
from thincode.runs.recipe import Recipe
from thincode.runs.workshop import Workshop
from thincode.settings import load

# --- the generator's idle time ----------------------------------------------------------------------------------------


@dataclass
class Intervals:
    """When episodes were open, blocks ran, and the model made steps; from any thread."""

    changes: list[tuple[float, str, int]] = field(default_factory=list)

    def note(self, what: str, change: int) -> None:
        self.changes.append((time.monotonic(), what, change))

    def idle_share(self) -> float:
        """Of the time in which an episode could be continued, the share in which no step was being made."""
        counts = {"open": 0, "block": 0, "step": 0}
        able = idle = 0.0
        before = 0.0
        for now, what, change in sorted(self.changes):
            if counts["open"] > counts["block"]:
                able += now - before
                idle += (now - before) * (counts["step"] == 0)
            counts[what] += change
            before = now
        return idle / able if able else 0.0


class Watched:
    """An interpreter whose blocks are noted."""

    def __init__(self, inner: Interpreter, notes: Intervals) -> None:
        self.inner, self.notes = inner, notes

    async def session(self, *, seed: int = 0) -> Any:
        return WatchedSession(await self.inner.session(seed=seed), self.notes)

    async def close(self) -> None:
        await self.inner.close()


class WatchedSession:
    def __init__(self, inner: Session, notes: Intervals) -> None:
        self.inner, self.notes = inner, notes

    async def run(self, code: str) -> BlockResult:
        self.notes.note("block", 1)
        try:
            return await self.inner.run(code)
        finally:
            self.notes.note("block", -1)

    async def close(self) -> None:
        await self.inner.close()


def watch(engine: Any, notes: Intervals) -> None:
    """Note voices and steps of our engine."""
    make, step = engine.voice, engine._step

    async def voice(address: Any) -> Any:
        made = await make(address)
        close, notes_closed = made.close, [False]
        notes.note("open", 1)

        async def closed() -> None:
            if not notes_closed[0]:
                notes_closed[0] = True
                notes.note("open", -1)
            await close()

        made.close = closed
        return made

    def stepped() -> None:
        notes.note("step", 1)
        try:
            step()
        finally:
            notes.note("step", -1)

    engine.voice, engine._step = voice, stepped


# --- our side ---------------------------------------------------------------------------------------------------------


class Clock(Progress):
    """Tells when each step was done."""

    def __init__(self, name: str, *, total: int | None, unit: str, done: int = 0) -> None:
        super().__init__(name, total=total, unit=unit, done=done, quiet=True)
        self.at: list[float] = []

    def advance(self, units: float = 1, **shown: Any) -> None:
        self.at.append(time.monotonic())
        super().advance(units, **shown)


def ours(words: argparse.Namespace, model: Path, *, idle: bool = False) -> dict[str, float]:
    """Steps per second of `runs.rl`; or, watched, the generator's idle share."""
    resolved = load(Recipe, "tiny/demo", overrides(words))
    section = resolved.value.rl
    assert section is not None
    clocks: list[Clock] = []
    notes = Intervals()

    def clock(name: str, **more: Any) -> Clock:
        clocks.append(Clock(name, **more))
        return clocks[-1]

    with tempfile.TemporaryDirectory() as place, Workshop(resolved.value) as shop:
        restore: Callable[[], None] = lambda: None  # noqa: E731
        if idle:
            shop.interpreter = Watched(shop.interpreter, notes)  # type: ignore[assignment]
            plain = rl.Policy

            class Policy(plain):  # type: ignore[misc, valid-type]
                def __init__(self, *given: Any) -> None:
                    super().__init__(*given)
                    watch(self.engine, notes)

            rl.Policy = Policy  # type: ignore[misc]
            restore = lambda: setattr(rl, "Policy", plain)  # noqa: E731
        try:
            with RunFolder.create(Path(place) / "run", resolved={}, resume=False) as folder:
                rl.run(section, start=model, folder=folder, shop=shop, progress=clock, say=print)
                lines = [json.loads(line) for line in (folder.path / "metrics.jsonl").read_text().splitlines()]
        finally:
            restore()
    at = clocks[0].at
    steps = [line for line in lines if "reward_mean" in line][1:]
    tokens = sum(line["n"] * line["response_tokens"] for line in steps)
    return {
        "steps_per_s": (len(at) - 1) / (at[-1] - at[0]),
        "tokens_per_s": tokens / (at[-1] - at[0]),
        "accuracy": statistics.mean(line["accuracy"] for line in steps),
        "idle_share": notes.idle_share(),
    }


def overrides(words: argparse.Namespace) -> list[str]:
    return [
        f"threads={words.threads}",
        f"live={words.problems_per_step * words.samples}",
        f"rl.problems_per_step={words.problems_per_step}",
        f"rl.samples={words.samples}",
        "rl.validation=null",
        "rl.algorithm={kind: grpo, denominator: batch}",
        "rl.policy.optimizer={kind: adamw, lr: 1.0e-6}",
        "rl.policy.checkpoint_every=1000",
        f"rl.stages=[{{steps: {words.steps + 1}, context_tokens: {words.context_tokens}, calls: 8}}]",
    ]


# --- TRL's side -------------------------------------------------------------------------------------------------------


class FreshPython:
    """An interpreter that starts `python -c` for each block."""

    async def session(self, *, seed: int = 0) -> Self:
        return self

    async def run(self, code: str) -> BlockResult:
        if "\0" in code:  # no argument of a process can hold one, and Python refuses such a source anyway
            return BlockResult(Status.ERROR, "SyntaxError: source code string cannot contain null bytes", "SyntaxError")
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        try:
            output, _ = await asyncio.wait_for(process.communicate(), 5.0)
        except TimeoutError:
            process.kill()
            return BlockResult(Status.LIMIT, "stopped", "wall_s")
        text = output.decode(errors="replace")[:120]
        return BlockResult(Status.ERROR if process.returncode else Status.OK, text)

    async def close(self) -> None: ...


def theirs(words: argparse.Namespace, model_folder: Path, *, fresh: bool) -> dict[str, float]:
    """Steps per second of TRL's trainer around the lock-step loop."""
    import torch
    import transformers
    from _lockstep_ids import LockstepIds
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    from thincode.rollout import Budget
    from thincode.rollout.episode import Ask
    from thincode.runs.workshop import load_problems
    from thincode.trajectory import Address
    from thincode.trajectory.tokenizer import Tokenizer

    os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(words.threads)
    resolved = load(Recipe, "tiny/demo", overrides(words))
    section = resolved.value.rl
    assert section is not None
    problems = load_problems(section.problems)
    padded = transformers.AutoTokenizer.from_pretrained(model_folder, padding_side="left")
    model = transformers.AutoModelForCausalLM.from_pretrained(model_folder)
    at: list[float] = []
    tokens: list[int] = []

    with tempfile.TemporaryDirectory() as place, Workshop(resolved.value) as shop:
        setting = shop.setting(
            tokenizer=Tokenizer.load(model_folder),
            budget=Budget(context_tokens=words.context_tokens, calls=8),
            sampling=section.sampling,
        )
        if fresh:
            object.__setattr__(setting, "interpreter", FreshPython())

        def roll(prompts: Sequence[str], trainer: Any) -> dict[str, Any]:
            unwrapped = trainer.accelerator.unwrap_model(trainer.model)
            unwrapped.eval()
            plain = LockstepIds(model=unwrapped, tokenizer=padded, setting=setting, loop=shop.loop, live=len(prompts))
            asks = [Ask(Address(1, "trl", len(at), f"p{n}", 0), prompt) for n, prompt in enumerate(prompts)]
            talks = plain.roll(asks)
            unwrapped.train()
            tokens.append(sum(talk.generated for talk in talks))
            return {
                "prompt_ids": [talk.prompt_ids for talk in talks],
                "completion_ids": [talk.ids for talk in talks],
                "env_mask": [talk.mask for talk in talks],
                "logprobs": None,
            }

        def reward(
            prompts: Sequence[str], completions: Sequence[str], answer: Sequence[str], **more: Any
        ) -> list[float]:
            found = [re.findall(r"\\boxed\{([^}]*)\}", str(completion)) for completion in completions]
            return [float(bool(boxes) and boxes[-1].strip() == gold) for boxes, gold in zip(found, answer, strict=True)]

        class Done(transformers.TrainerCallback):
            def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
                if state.global_step % 2 == 0:
                    at.append(time.monotonic())

        config = GRPOConfig(
            output_dir=place,
            use_cpu=True,
            bf16=False,
            per_device_train_batch_size=words.problems_per_step * words.samples // 2,
            gradient_accumulation_steps=1,
            steps_per_generation=2,
            num_generations=words.samples,
            max_completion_length=words.context_tokens,
            loss_type="dapo",
            epsilon=0.2,
            epsilon_high=0.28,
            beta=0.0,
            temperature=1.0,
            learning_rate=1e-6,
            lr_scheduler_type="constant",
            max_steps=2 * (words.steps + 1),
            save_strategy="no",
            logging_strategy="no",
            report_to="none",
            activation_checkpointing=False,
            disable_tqdm=True,
        )
        rows = [{"prompt": problem.question, "answer": problem.answer} for problem in problems]
        trainer = GRPOTrainer(
            model=model,
            reward_funcs=reward,
            args=config,
            train_dataset=Dataset.from_list(rows),
            processing_class=padded,
            rollout_func=roll,
            callbacks=[Done()],
        )
        trainer.remove_callback(transformers.PrinterCallback)
        trainer.train()
    return {"steps_per_s": (len(at) - 1) / (at[-1] - at[0]), "tokens_per_s": sum(tokens[1:]) / (at[-1] - at[0])}


# --- what is shown ----------------------------------------------------------------------------------------------------


def compare(words: argparse.Namespace, model: Path) -> dict[str, Any]:
    """Rounds of all sides, in alternating order, and ratios inside each round."""
    sides: dict[str, Callable[[], dict[str, float]]] = {
        "ours": lambda: ours(words, model),
        "lockstep": lambda: theirs(words, model, fresh=False),
    }
    if words.fresh:
        sides["python -c"] = lambda: theirs(words, model, fresh=True)
    rounds = []
    for number in range(words.rounds):
        names = list(sides) if number % 2 == 0 else list(reversed(sides))
        rounds.append({name: sides[name]() for name in names})
        said = ", ".join(f"{name} {rounds[-1][name]['steps_per_s']:.3f} steps/s" for name in sides)
        print(f"round {number + 1}: {said}", flush=True)
    ratios = {
        name: {
            figure: spread([one["ours"][figure] / one[name][figure] for one in rounds])
            for figure in ("steps_per_s", "tokens_per_s")
        }
        for name in sides
        if name != "ours"
    }
    return {"rounds": rounds, "ratios": ratios, "idle_share": ours(words, model, idle=True)["idle_share"]}


def table(found: Mapping[str, Any]) -> str:
    lines = []
    for name in found["rounds"][0]:
        speeds = [
            statistics.median(one[name][key] for one in found["rounds"]) for key in ("steps_per_s", "tokens_per_s")
        ]
        lines.append(f"{name:<12}{speeds[0]:>8.3f} steps/s {speeds[1]:>8.0f} tokens/s   (medians)")
    for name, ratio in found["ratios"].items():
        steps, tokens = (shown(ratio[key], "×", 1) for key in ("steps_per_s", "tokens_per_s"))
        lines.append(f"ours over {name}: {steps} in steps, {tokens} in tokens")
    lines.append(
        f"the generator idles {found['idle_share']:.1%} of the time in which an episode could go on   wanted: at most 5 %"
    )
    return "\n".join(lines)


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, metavar="DIR", help="a model that knows the format (default: train one)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write everything measured as JSON")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--problems-per-step", type=int, default=16)
    parser.add_argument("--samples", type=int, default=8)
    parser.add_argument("--context-tokens", type=int, default=320)
    parser.add_argument("--steps", type=int, default=6, help="of a side in a round, behind one that warms up")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--fresh", action=argparse.BooleanOptionalAction, default=True, help="also python -c")
    parser.add_argument("--train-problems", type=int, default=2000)
    parser.add_argument("--train-tokens", type=int, default=800_000)
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> dict[str, Any]:
    words = arguments(argv)
    with ExitStack() as stack:
        found: dict[str, Any] = {"machine": machine(words)}
        model = words.model
        if model is None:
            resolved = recipe(words)
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            with Workshop(resolved.value) as shop:
                model = train(resolved, shop, folder)
        found |= compare(words, model)
    print(table(found))
    if words.out is not None:
        words.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return found


if __name__ == "__main__":
    main()
