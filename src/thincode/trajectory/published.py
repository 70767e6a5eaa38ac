"""Published transcripts as records: JSONL of other systems' runs, in text, in segments or in messages.

Nothing is lost: the texts of a record's segments, joined, are the text that was read (pieces of a row without a text are put
between their format's markers). What no file says is read off what the model was shown: how a block ended, from the last
exception its output reports; how the trajectory ended, from what stands last. A program that prints such a report itself, with
nothing else, is taken for one that failed.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .. import _jsonl
from ..errors import DataError
from . import Address, Block, BlockStatus, EndReason, Segment, SegmentKind, Trajectory
from .formats import Concludes, Converses, Format, Reads, Reports
from .formats._json_calls import written

STAGE = "published"

_TEXT_FIELDS = ("trajectory", "text", "completion", "response", "output")
_QUESTION_FIELDS = ("problem", "question", "prompt")
_ROLES = {
    "text": None,
    "code": SegmentKind.CODE,
    "execution": SegmentKind.OUTPUT,
    "output": SegmentKind.OUTPUT,
    "tool": SegmentKind.OUTPUT,
}

_ANSI = re.compile(r"\x1b\[[0-9;]*m|(?<=\[)[0-9;]*m")
_EXCEPTION = r"(?:\w+\.)*(\w*(?:Error|Exception|Interrupt|Exit|Iteration|Warning|Needed|Failed))"
_REPORT = re.compile(rf"^ ?{_EXCEPTION}(?::|[ \t]*$)", re.MULTILINE)
_WHOLE_REPORT = re.compile(rf"{_EXCEPTION}(?::.*)?")
_TRACE = re.compile(
    r"Traceback \(most recent call last\)|^-*> \d+ |^\s*Cell In\[|^\s*File \"[^\"]*\", line \d+", re.MULTILINE
)
_LIMIT = re.compile(r"(time ?d? ?out|timeout|memory limit|time limit)\b.{0,80}", re.IGNORECASE)


@dataclass(frozen=True)
class Transcript:
    """One row of a file."""

    trajectory: Trajectory
    gold: str | None
    """The row's gold answer."""
    row: Mapping[str, Any]
    """As it stands in the file."""


def read(path: Path, *, format: Format) -> Iterator[Transcript]:
    """The transcripts of a JSONL file, in its order.

    Args:
        path: one object a line; see `trajectory_of` for what it must hold.
        format: the one the transcripts are written in.

    Raises:
        DataError: no such file; a line is no JSON object or holds no transcript (file and line named).
    """
    if not path.is_file():
        raise DataError(f"{path}: no such file; transcripts are read from a JSONL file, one object a line")
    for number, row in _jsonl.read(path):
        place = f"{path}:{number}"
        gold = row.get("answer")
        trajectory = trajectory_of(row, format=format, place=place, name=f"{path.stem}:{number}")
        yield Transcript(trajectory, None if gold is None else str(gold), row)


def trajectory_of(row: Mapping[str, Any], *, format: Format, place: str = "row", name: str = "row") -> Trajectory:
    """One row as a record without ids.

    Args:
        row: holds the transcript as a text (`trajectory`, `text`, `completion`, `response` or `output`), as `segments`
            (`role`: text, code or execution; `content`) or as chat `messages` (the last turns of `assistant` and `tool`; an
            output in its marks may be the user's); and, where it has them, `id`, `sample`, `source`, and the question
            (`problem`, `question`, `prompt`, or the user's message).
        format: the one it is written in.
        place: of the row, for messages.
        name: the problem's id where the row has none.

    Raises:
        DataError: no transcript in it, or a role that is none.
    """
    messages = row.get("messages") or []
    text = next((row[field] for field in _TEXT_FIELDS if isinstance(row.get(field), str)), None)
    if text is not None:
        segments = _read(text, format)
    elif row.get("segments"):
        segments = _from_pieces(row["segments"], format, place)
    elif messages:
        segments = _from_messages(messages, format, place)
    else:
        raise DataError(
            f"{place}: no transcript; a row holds it as text ({', '.join(_TEXT_FIELDS)}), as segments or as messages. Fields of "
            f"this row: {', '.join(row) or 'none'}"
        )
    question = next((row[field] for field in _QUESTION_FIELDS if isinstance(row.get(field), str)), None)
    asked = [one["content"] for one in messages if one.get("role") == "user" and not _answers(one, format)]
    found = with_blocks(segments, format)
    return Trajectory(
        address=Address(0, STAGE, 0, str(row.get("id", name)), int(row.get("sample", 0))),
        question=question if question is not None else "\n".join(asked),
        format=format.name,
        prompt="",
        segments=tuple(found),
        end=_end(found, format),
        answer=format.answer(found),
        versions={"source": str(row["source"])} if "source" in row else {},
    )


def _read(text: str, format: Format) -> list[Segment]:
    return format.read_published(text) if isinstance(format, Reads) else format.parse(text)


def with_blocks(segments: Sequence[Segment], format: Format) -> list[Segment]:
    """The segments with a block on each piece of code that has an output right behind it."""
    found = list(segments)
    for place, (segment, after) in enumerate(itertools.pairwise(segments)):
        if segment.kind is SegmentKind.CODE and after.kind is SegmentKind.OUTPUT:
            said = format.reported(after) if isinstance(format, Reports) else None
            found[place] = replace(segment, block=said or status_of(after.content))
    return found


def status_of(printed: str) -> Block:
    """How a block ended, read off what the model was shown of it.

    A traceback, or an exception's line that stands alone, is an error; a lone remark on spent time or memory is a limit.
    """
    text = _ANSI.sub("", printed).strip()
    lone = _WHOLE_REPORT.fullmatch(text)
    if lone is None and _LIMIT.fullmatch(text):
        return Block(BlockStatus.LIMIT, detail=text[:80])
    reports = [lone] if lone else list(_REPORT.finditer(text)) if _TRACE.search(text) else []
    if not reports:
        return Block(BlockStatus.OK)
    name = reports[-1][1]
    return Block(BlockStatus.LIMIT if "Timeout" in name else BlockStatus.ERROR, detail=name)


def _from_pieces(pieces: Sequence[Mapping[str, Any]], format: Format, place: str) -> list[Segment]:
    """Code and outputs as their roles say; text is a plan before the first code, an answer behind the last output."""
    kinds = [_kind_of(piece, place) for piece in pieces]
    ran = [at for at, kind in enumerate(kinds) if kind is not None] or [-1]
    found = []
    for at, (piece, kind) in enumerate(zip(pieces, kinds, strict=True)):
        content = str(piece["content"])
        if kind is None:
            kind = SegmentKind.ANSWER if at > ran[-1] else SegmentKind.PLAN if at < ran[0] else SegmentKind.THOUGHT
        text = format.piece(kind, content)
        if kind is SegmentKind.CODE:
            content = content.replace("\r\n", "\n")
        elif kind is not SegmentKind.OUTPUT:
            content = content.strip()
        if text:
            found.append(Segment(kind, text, content))
    return found


def _from_messages(messages: Sequence[Mapping[str, Any]], format: Format, place: str) -> list[Segment]:
    """Turns of the assistant hold text and code, those of the tool what it printed; a single turn holds everything."""
    turns = [one for one in messages if one.get("role") not in ("system", "user") or _answers(one, format)]
    if len(turns) == 1:
        return _read(_said(turns[0]), format)
    if isinstance(format, Converses):
        return format.parse(_text(turns, format, place))
    found: list[Segment] = []
    for number, message in enumerate(turns, start=1):
        content = _said(message)
        if message.get("role") == "assistant":
            found += format.segments(content, call=None, first=not found, last=number == len(turns))
        else:
            kind = (
                SegmentKind.OUTPUT if message.get("role") == "user" else _kind_of(message, place) or SegmentKind.OUTPUT
            )
            printed = _in_marks(content, format)
            content = content if printed is None else printed
            found.append(Segment(kind, format.piece(kind, content), content))
    return found


def _text(turns: Sequence[Mapping[str, Any]], format: Format, place: str) -> str:
    """Turns as one text, as `format` writes it; answers to several calls of one turn are one answer."""
    text, answers = "", list[str]()
    for number, message in enumerate(turns):
        if message.get("role") == "assistant":
            text += _said(message)
            continue
        if message.get("role") != "user":
            _kind_of(message, place)
        answers.append(_said(message).removeprefix("<tool_response>\n").removesuffix("\n</tool_response>"))
        if number + 1 == len(turns) or turns[number + 1].get("role") == "assistant":
            text += format.piece(SegmentKind.OUTPUT, "\n</tool_response>\n<tool_response>\n".join(answers))
            answers.clear()
    return text


def _answers(message: Mapping[str, Any], format: Format) -> bool:
    """Whether a message of the user's is what a chat template makes of a tool's, or an output in the format's marks."""
    if message.get("role") != "user":
        return False
    content = str(message.get("content"))
    return content.lstrip().startswith("<tool_response>") or _in_marks(content, format) is not None


def _in_marks(content: str, format: Format) -> str | None:
    """What stands between the format's marks of an output, which are all there is in the text else."""
    marks, said = format.output(""), content.strip()
    before, after = marks.before.lstrip().rstrip("\n"), marks.after.strip()
    if not before or isinstance(format, Converses) or not (said.startswith(before) and said.endswith(after)):
        return None
    return said[len(before) : len(said) - len(after)].strip("\n")


def _said(message: Mapping[str, Any]) -> str:
    """What a message says; calls that stand beside its text are written behind it, as chat templates do."""
    parts = [str(message.get("content") or "")]
    for call in message.get("tool_calls") or ():
        function = call.get("function", call)
        parts.append(written(str(function.get("name")), function.get("arguments") or {}))
    return "\n".join(part for part in parts if part)


def _kind_of(piece: Mapping[str, Any], place: str) -> SegmentKind | None:
    role = piece.get("role")
    if role not in _ROLES or "content" not in piece:
        raise DataError(
            f"{place}: a piece with role {role!r} and fields {', '.join(piece) or 'none'}; each has a content and one of the "
            f"roles {', '.join(_ROLES)}"
        )
    return _ROLES[role]


def _end(segments: Sequence[Segment], format: Format) -> EndReason:
    """Text last: finished. An output, or a whole block that was not run: no calls were left. Half a block: no tokens."""
    if not segments or segments[-1].kind is SegmentKind.ANSWER:
        return EndReason.FINISHED
    if isinstance(format, Concludes) and format.concluded(segments):
        return EndReason.FINISHED
    scanner = format.scanner()
    half = segments[-1].kind is SegmentKind.CODE and not (scanner.feed(segments[-1].text) or scanner.finish())
    return EndReason.CONTEXT if half else EndReason.CALLS
