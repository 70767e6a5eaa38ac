"""One trajectory from prompt to end: the model speaks, complete blocks run, what they print goes in.

The same driver serves teacher, RL and evaluation. Token ids are append-only: what was sampled is never decoded and encoded
again; only what we insert is encoded, once.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from ..engines import Context, Exchange, Finish, Sampling, Voice
from ..errors import GenerationLostError, RecipeError
from ..interpreter import BlockResult, Interpreter, Session, Status
from ..trajectory import Address, Author, Block, BlockStatus, EndReason, Segment, SegmentKind, Trajectory
from ..trajectory.formats import Call, Concludes, Converses, Format, Insertion, Reports, Thinks, has_blocks
from ..trajectory.tokens import TokenBuilder, insert, spans
from ..trajectory.turns import spoken
from . import Budget, prompt
from ._turn import Deaf, Turn, Watch
from .prompt import Shots

if TYPE_CHECKING:
    from ..trajectory.tokenizer import Tokenizer

CALLS_SPENT = "No calls are left. Give the final answer now."
UNAVAILABLE = "The interpreter is unavailable. Give the final answer now."
RETRIES = 2
"""Fresh sessions tried when a block is lost; earlier blocks are replayed and must print the same."""

_OURS = (SegmentKind.OUTPUT, SegmentKind.NOTICE)
_RAN = (SegmentKind.CODE, SegmentKind.OUTPUT)
_CUT = (EndReason.CONTEXT, EndReason.CALLS, EndReason.SECONDS, EndReason.LOST)


@dataclass(frozen=True)
class Ask:
    """One trajectory that is wanted. It has no gold answer: nothing in this room could use one."""

    address: Address
    question: str
    shown: tuple[str, ...] | None = None
    """Show these texts instead of what the blocks really print (the last one again when more are asked for)."""
    fail_first: int = 0
    """Report this many first blocks as failed, to measure recovery."""
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Setting:
    """What all episodes of a crowd share."""

    interpreter: Interpreter
    format: Format
    tokenizer: Tokenizer | None
    budget: Budget
    sampling: Sampling
    shots: Shots | None = None
    """Worked examples before the question."""
    executes: bool = True
    """False runs no block: the model's text goes on behind it, as text."""
    timed: bool = True
    """False in the deterministic schedule: seconds judge nothing."""
    answer_without_interpreter: bool = False
    """Where a block stays lost, tell the model and let it answer in text, instead of giving the trajectory up."""

    @cached_property
    def runs(self) -> bool:
        """Whether there are blocks to run."""
        return self.executes and has_blocks(self.format)


def check_room(ask: Ask, setting: Setting) -> None:
    """Refuse a prompt that leaves the model no room.

    Raises:
        RecipeError: says how long the prompt is, and how large the budget.
        ModelError: the format's outputs can't be written in the words of the model's chat template.
    """
    if setting.tokenizer is None:
        return
    spoken(setting.format, setting.tokenizer)
    text = prompt.render(ask.question, format=setting.format, tokenizer=setting.tokenizer, shots=setting.shots)
    length = len(setting.tokenizer.encode(text, special=True))
    if length >= setting.budget.context_tokens:
        raise RecipeError(
            f"context_tokens: {setting.budget.context_tokens} leaves no room behind the prompt of problem "
            f"{ask.address.problem!r}, which has {length} tokens; raise context_tokens above that, or leave the problem out"
        )


class _Episode:
    """The state of one trajectory while it is made."""

    def __init__(self, ask: Ask, voice: Voice, setting: Setting, watch: Watch | None) -> None:
        self.ask = ask
        self.voice = voice
        self.setting = setting
        self.watch = watch
        self.format = spoken(setting.format, setting.tokenizer)
        self.prompt = prompt.render(ask.question, format=self.format, tokenizer=setting.tokenizer, shots=setting.shots)
        self.shots = setting.shots.exchanges(self.format) if setting.shots is not None else ()
        self.unseen_chars = 0
        """Of what uses up the context but stands in no segment: examples the record leaves out, counted hidden thoughts."""
        if setting.tokenizer is None:
            self.unseen_chars = sum(len(shot.user) + sum(map(len, shot.said)) for shot in self.shots)
        self.segments: list[Segment] = []
        self.tokens: TokenBuilder | None = None
        if setting.tokenizer is not None:
            self.tokens = TokenBuilder(setting.tokenizer.encode(self.prompt, special=True))
        self.session: Session | None = None
        self.ran: list[tuple[str, BlockResult]] = []
        self.refused = 0
        """Calls that were answered without being run; they count as calls."""
        self.told = False
        self.unavailable = False
        """The model was told that the interpreter is."""
        self.began_at = self.used()
        self.generate_s = 0.0
        self.execute_s = 0.0
        self.started = time.monotonic()

    # --- budget ---

    def used(self) -> int:
        """Tokens of context used; estimated where nobody speaks ids."""
        if self.tokens is not None:
            return len(self.tokens)
        return (len(self.prompt) + self.unseen_chars + sum(len(segment.text) for segment in self.segments)) // 3

    def deadline(self) -> float | None:
        return self.started + self.setting.budget.trajectory_s if self.setting.timed else None

    # --- the model speaks ---

    async def speak(self, number: int) -> tuple[Turn, Finish]:
        room = self.room()
        scanner = self.format.scanner if self.setting.runs else Deaf
        turn = Turn(scanner, self.setting.tokenizer, deadline=self.deadline(), watch=self.watch)
        context = self.context()
        began = time.monotonic()
        finish = await self.voice.generate(
            context, sink=turn, sampling=self.setting.sampling, max_tokens=room, seed=self.ask.address.seed(number)
        )
        self.generate_s += time.monotonic() - began
        self.unseen_chars += turn.hidden_chars
        turn.ended = turn.ended or finish is Finish.ENDED
        turn.finish()
        return turn, finish

    def room(self) -> int:
        """New tokens that this turn may have."""
        budget = self.setting.budget
        bounds = (budget.context_tokens - self.used(), budget.turn_tokens, self.thought_left())
        return min(bound for bound in bounds if bound is not None)

    def thought_left(self) -> int | None:
        """New tokens that an open thought may still have; None where nothing bounds one."""
        most = self.setting.budget.thinking_tokens
        return None if most is None or self.thought_is_over() else max(1, most - (self.used() - self.began_at))

    def thought_is_over(self) -> bool:
        """Whether the format knows no thoughts, or the model has ended its own."""
        if not isinstance(self.format, Thinks):
            return True
        said = (segment.text for segment in self.segments if segment.kind not in _RAN)
        return any(self.format.thought_end in text for text in said)

    def close_thought(self) -> bool:
        """End a thought whose tokens are spent, unless the model did; False when nothing more fits into the context."""
        if self.thought_is_over() or not isinstance(self.format, Thinks):
            return True
        closing = self.format.close_thought()
        return self.insert(SegmentKind.NOTICE, closing, closing.body, Author.DRIVER)

    def context(self) -> Context:
        """What the engine is told."""
        said: list[str] = []
        for segment in self.segments:
            ours = segment.kind in _OURS
            if len(said) % 2 == int(ours):  # the other one speaks now
                said.append("")
            said[-1] += segment.text
        question, shots = self.ask.question, self.setting.shots
        user = self.format.user_message(question) if shots is None else shots.user_message(question, self.format)
        return Context(
            question_id=self.ask.address.problem,
            exchange=Exchange(user, tuple(said), self._turns()),
            prompt=self.prompt,
            text="".join(said),
            ids=self.tokens.ids if self.tokens is not None else None,
            outputs=tuple(segment.content for segment in self.segments if segment.kind is SegmentKind.OUTPUT),
            shots=self.shots,
            stop=self.format.output("").marker if self.setting.runs else "",
            tools=self.format if isinstance(self.format, Converses) else None,
        )

    def _turns(self) -> tuple[Mapping[str, str], ...]:
        """What was said so far as messages, where outputs are turns of a tool."""
        return tuple(self.format.messages(self.segments)) if isinstance(self.format, Converses) else ()

    def keep(self, turn: Turn, *, last: bool) -> None:
        """Append what the model wrote up to the end of its block; what stands behind counts as never sampled."""
        call = turn.call
        body = turn.body if call is None else turn.body[: call.end]
        new = self.format.segments(turn.body, call=call, first=not self.segments, last=last)
        if self.tokens is not None:
            new = self._keep_tokens(turn, body, new)
        self.segments += new

    def _keep_tokens(self, turn: Turn, body: str, new: list[Segment]) -> list[Segment]:
        assert self.tokens is not None
        assert self.setting.tokenizer is not None
        first = len(self.tokens)
        kept = turn.kept_tokens(len(body))
        for token_id, logprob in zip(turn.ids[:kept], turn.logprobs[:kept], strict=True):
            self.tokens.sampled(token_id, logprob)
        # A closer that shared its token with what followed it is put back by us; so is its missing line break.
        forced = body[turn.starts[kept] :] if kept < len(turn.ids) else ""
        forced += turn.call.missing if turn.call is not None else ""
        self.tokens.inserted(self.setting.tokenizer.encode(forced, special=False, added=True), Author.DRIVER)
        placed = spans([segment.text for segment in new], turn.starts[:kept])
        new = [
            replace(segment, start=first + start, end=first + end)
            for segment, (start, end) in zip(new, placed, strict=True)
        ]
        if new and forced:
            new[-1] = replace(new[-1], end=len(self.tokens))
        # A turn that a tool answers has ended; in a block's closer, an end was a slip of the model's that is not kept.
        ended = turn.call is None or (isinstance(self.format, Converses) and len(body) == len(turn.body))
        if ended and turn.end_id is not None:
            self.tokens.sampled(*turn.end_id)
        return new

    def insert(self, kind: SegmentKind, insertion: Insertion, content: str, author: Author) -> bool:
        """Append text of ours; False when it does not fit into the context."""
        if self.tokens is None:
            fits = self.used() + len(insertion.text) // 3 < self.setting.budget.context_tokens
            self.segments.append(Segment(kind, insertion.text, content))
            return fits
        assert self.setting.tokenizer is not None
        # The token by which the model ended its turn stands first in the tool's, as its text does.
        ended = insertion.ends_turn and self.tokens.ended_by(self.setting.tokenizer.eos_ids)
        start = len(self.tokens) - ended
        insert(self.tokens, self.setting.tokenizer, insertion, body=author)
        self.segments.append(Segment(kind, insertion.text, content, start, len(self.tokens)))
        return len(self.tokens) < self.setting.budget.context_tokens

    # --- the interpreter runs ---

    async def execute(self, call: Call) -> BlockResult:
        began = time.monotonic()
        result = await self._run_with_retry(call.code)
        self.execute_s += time.monotonic() - began
        self.ran.append((call.code, result))
        return result

    async def _run_with_retry(self, code: str) -> BlockResult:
        result = BlockResult(Status.LOST, "", "no session")
        for _ in range(1 + RETRIES):
            if self.session is None:
                self.session = await self.setting.interpreter.session(seed=self.ask.address.seed("session"))
                for earlier, printed in self.ran:
                    if (await self.session.run(earlier)).output != printed.output:
                        return BlockResult(Status.LOST, "", "earlier blocks print something else when run again")
            result = await self.session.run(code)
            if result.status is not Status.LOST:
                return result
            await self.session.close()
            self.session = None
        return result

    def show(self, result: BlockResult) -> tuple[BlockResult, str]:
        """What the model is shown of a result, after the measurements that intervene in it."""
        number = len(self.ran) - 1
        if number < self.ask.fail_first:
            result = replace(
                result, status=Status.ERROR, output="RuntimeError: the block could not be run", detail="RuntimeError"
            )
        elif self.ask.shown is not None:
            result = replace(result, output=self.ask.shown[min(number, len(self.ask.shown) - 1)])
        printed = result.output
        if self.setting.tokenizer is not None:
            printed = self.setting.tokenizer.neutralize(printed)
        return result, printed

    def reported(self, printed: str, block: Block) -> Insertion:
        """What goes in for a block that printed `printed` and ended so."""
        if not isinstance(self.format, Reports):
            return self.format.output(printed)
        return self.format.report(printed, block if self.setting.timed else replace(block, wall_s=0.0, cpu_s=0.0))

    # --- the end ---

    def finished(self, end: EndReason) -> Trajectory:
        return Trajectory(
            address=self.ask.address,
            question=self.ask.question,
            format=self.format.name,
            prompt=self.prompt,
            segments=tuple(self.segments),
            end=end,
            answer=None if end in _CUT else self.format.answer(self.segments),  # a draft's box is no answer
            tokens=self.tokens.freeze() if self.tokens is not None else None,
            versions=self.ask.versions,
            usage=dict(self.voice.usage),
            generate_s=self.generate_s,
            execute_s=self.execute_s,
        )


async def run(ask: Ask, *, voice: Voice, setting: Setting, watch: Watch | None = None) -> Trajectory:
    """Make one trajectory.

    Args:
        ask: what is wanted.
        voice: the engine's side of this episode; closed here.
        setting: interpreter, format, tokenizer, budget and sampling.
        watch: shown every piece of text as it comes.

    Returns:
        The finished trajectory; failures of the model are in it, failures of ours end it as `EndReason.LOST`.

    Raises:
        InfrastructureError: the engine failed.
    """
    episode = _Episode(ask, voice, setting, watch)
    try:
        return episode.finished(await _converse(episode))
    finally:
        await voice.close()
        if episode.session is not None:
            await episode.session.close()


async def _converse(episode: _Episode) -> EndReason:
    budget = episode.setting.budget
    for number in range(1_000_000):
        if episode.used() >= budget.context_tokens:
            return EndReason.CONTEXT
        bounded = episode.thought_left() is not None
        try:
            turn, finish = await episode.speak(number)
        except GenerationLostError:
            return EndReason.LOST
        cut = bounded and finish is Finish.LENGTH and turn.call is None
        episode.keep(turn, last=turn.call is None and not cut)
        if turn.out_of_time:
            return EndReason.SECONDS
        if episode.unavailable:
            return EndReason.ANSWERED_WITHOUT_INTERPRETER if turn.call is None and turn.ended else EndReason.LOST
        if cut and episode.close_thought():
            continue
        if turn.call is None:
            return EndReason.FINISHED if turn.ended else EndReason.CONTEXT
        if len(episode.ran) + episode.refused >= budget.calls:
            if episode.told:
                return EndReason.CALLS
            episode.told = True
            notice = episode.format.notice(CALLS_SPENT)
            fits = episode.insert(SegmentKind.NOTICE, notice, CALLS_SPENT, Author.DRIVER)
        elif turn.call.refused:
            episode.refused += 1
            notice = episode.format.output(turn.call.refused)
            fits = episode.insert(SegmentKind.NOTICE, notice, notice.body, Author.DRIVER)
        else:
            result, printed = episode.show(await episode.execute(turn.call))
            block = _note(episode, result)
            if result.status is not Status.LOST:
                insertion = episode.reported(printed, block)
                fits = episode.insert(SegmentKind.OUTPUT, insertion, insertion.body, Author.INTERPRETER)
            elif episode.setting.answer_without_interpreter:
                episode.unavailable = True
                notice = episode.format.notice(UNAVAILABLE)
                fits = episode.insert(SegmentKind.NOTICE, notice, UNAVAILABLE, Author.DRIVER)
            else:
                return EndReason.LOST
        if episode.watch is not None:
            episode.watch(episode.segments[-1].text)
        if isinstance(episode.format, Concludes) and episode.format.concluded(episode.segments):
            return EndReason.FINISHED
        if not fits:
            return EndReason.CONTEXT
    raise AssertionError("unreachable: every turn uses at least one token of the budget")


def _note(episode: _Episode, result: BlockResult) -> Block:
    """Write the block's result into its code segment, the last one."""
    block = Block(
        status=BlockStatus(result.status),
        detail=result.detail,
        cut_chars=result.cut_chars,
        wall_s=result.wall_s,
        cpu_s=result.cpu_s,
    )
    episode.segments[-1] = replace(episode.segments[-1], block=block)
    return block
