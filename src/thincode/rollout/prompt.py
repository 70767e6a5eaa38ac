"""The start of a trajectory: what the user says, in the tokenizer's chat template, behind worked examples if there are any.

Examples are data: `rollout/prompts/NAME.yaml`, or a file of yours of the same form. They hold plan, blocks and what the blocks
print, so one file serves every wire format.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..engines import Exchange, conversation
from ..errors import DataError
from ..settings import parse, read_yaml, settings
from ..trajectory import Segment, SegmentKind, turns
from ..trajectory.formats import Converses, Format

if TYPE_CHECKING:
    from ..trajectory.tokenizer import Tokenizer


@settings
class Step:
    """One block of an example, and what running it prints."""

    code: str
    prints: str
    thought: str
    """Stands before the block in formats that interleave thoughts."""
    alone: str = ""
    """The block without names of earlier ones, for interpreters that keep none; empty: as it is."""


@settings
class Exemplar:
    """One worked example."""

    topic: str
    question: str
    answer: str
    plan: str
    steps: tuple[Step, ...]


@settings
class Sheet:
    """What a prompt file holds."""

    version: int
    """Grows with each change."""
    preface: str = ""
    """Stands before the first example, in the user's message: not every chat template knows a system's."""
    reminder: str = ""
    """Stands behind every question, the one that is asked too: small teachers forget what was said at the beginning."""
    exemplars: tuple[Exemplar, ...]


@dataclass(frozen=True)
class Shots:
    """A prompt file that was read."""

    version: str
    """Name, version and digest of the file: every record made with it carries this."""
    preface: str
    reminder: str
    exemplars: tuple[Exemplar, ...]

    def standing_alone(self) -> Shots:
        """With blocks that need no names of earlier ones."""
        exemplars = tuple(
            replace(one, steps=tuple(replace(step, code=step.alone or step.code) for step in one.steps))
            for one in self.exemplars
        )
        return replace(self, exemplars=exemplars, version=f"{self.version}, blocks alone")

    def user_message(self, question: str, format: Format) -> str:
        """What the user says to ask `question`."""
        return "\n\n".join(part for part in (format.user_message(question), self.reminder) if part)

    def exchanges(self, format: Format) -> tuple[Exchange, ...]:
        """The examples as a conversation in `format`."""
        found = [
            _exchange(exemplar, format, self.user_message(exemplar.question, format)) for exemplar in self.exemplars
        ]
        if self.preface and found:
            found[0] = replace(found[0], user=f"{self.preface}\n\n{found[0].user}")
        return tuple(found)


def load(name: str) -> Shots:
    """The worked examples of a prompt file.

    Args:
        name: of a file that ships, for example `thinc_3shot`, or the path of a YAML file.

    Raises:
        DataError: there is no such file; the ones that ship are named.
        RecipeError: the file holds something else.
    """
    folder = files(__package__) / "prompts"
    file: Any = Path(name) if name.endswith((".yaml", ".yml")) else folder / f"{name}.yaml"
    try:
        raw: bytes = file.read_bytes()
    except OSError:
        known = ", ".join(sorted(item.name.removesuffix(".yaml") for item in folder.iterdir()))
        raise DataError(
            f"prompt {name!r}: no such file; name a YAML file, or one that ships with thincode: {known}"
        ) from None
    sheet = parse(Sheet, read_yaml(raw.decode("utf-8"), place=str(name)), place=str(name))
    digest = hashlib.blake2b(raw, digest_size=4).hexdigest()
    return Shots(
        f"{Path(name).stem}@{sheet.version}:{digest}", sheet.preface.strip(), sheet.reminder.strip(), sheet.exemplars
    )


def render(question: str, *, format: Format, tokenizer: Tokenizer | None, shots: Shots | None = None) -> str:
    """The prompt's text, up to where the model begins.

    Args:
        question: as the problem gives it; special tokens in it are made harmless.
        format: gives the user's message around the question.
        tokenizer: its chat template wraps the conversation; None gives the user's message alone, with a blank line behind.
        shots: worked examples that come first.

    Raises:
        ModelError: there is no chat template, or it refuses the conversation.
    """
    if tokenizer is None:
        return format.user_message(question) + "\n\n"
    question = tokenizer.neutralize(question)
    if shots is None:
        messages = conversation((), Exchange(format.user_message(question)))
    else:
        messages = conversation(shots.exchanges(format), Exchange(shots.user_message(question, format)))
    return turns.render(messages, format=format, tokenizer=tokenizer)


def _exchange(exemplar: Exemplar, format: Format, user: str) -> Exchange:
    steps = exemplar.steps
    said: list[str] = []
    messages: list[dict[str, str]] = []
    blocks = [step.code for step in steps]
    turns = format.teacher_turns(exemplar.plan, [step.thought for step in steps], blocks, exemplar.answer)
    for number, turn in enumerate(turns):
        said.append(turn)
        messages.append({"role": "assistant", "content": turn})
        if number < len(turns) - 1:
            shown = format.output(steps[number].prints)
            said.append(shown.text)
            if isinstance(format, Converses):
                messages += format.messages([Segment(SegmentKind.OUTPUT, shown.text, shown.body)])
    return Exchange(user, tuple(said), tuple(messages) if isinstance(format, Converses) else ())
