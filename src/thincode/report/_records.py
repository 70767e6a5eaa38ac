"""Trajectories → rows of the page's browser: what filters ask for, one entry a segment, spans to mark."""

from __future__ import annotations

import hashlib
import heapq
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..trajectory import BlockStatus, Segment, SegmentKind, store
from ._math import Formulas
from ._read import Checkpoint, is_number, label

LIMIT_CHARS = 40_000
"""Characters of one segment on the page; a longer one loses its middle, and the page says how much."""
LIMIT_READ = 400_000_000
"""Bytes of a training loop's records that are read; more would make people wait for what few of them look at."""
INSERTED = {SegmentKind.OUTPUT: "interpreter", SegmentKind.NOTICE: "driver"}
"""Who wrote what the model did not."""

FAILURES = {"post_hoc": "post-hoc verification", "constants": "unverified constants", "role_overlap": "role overlap"}

Spans = Mapping[tuple[str, int], Sequence[Mapping[str, Any]]]
"""By problem and sample: `output` (its number), `start` and `end` in that output's content."""


@dataclass(frozen=True)
class Place:
    """Where records of one checkpoint, or of a training loop, lie."""

    key: str
    label: str
    folder: Path
    spans: Spans | None = None
    """What grounds the answers; None where nobody measured it."""
    failures: Mapping[tuple[str, int], Sequence[str]] = field(default_factory=dict)
    """By problem and sample, the failures of reasoning that were found."""
    loop: bool = False
    """Records of training, not of an evaluation."""


@dataclass(frozen=True)
class Shelf:
    """The trajectories of one place that are on the page."""

    key: str
    label: str
    total: int
    rows: Sequence[dict[str, Any]]
    unread_bytes: int = 0
    """Size of records that were left unread; `total` is not known then."""


def places(folders: Sequence[Path], checkpoints: Sequence[Checkpoint]) -> list[Place]:
    """Where trajectories are: every checkpoint, then its arms (greedy, swapped, …), and the loops where they are kept."""
    found = [Place(c.key, c.label, c.folder, _spans(c.details), _failures(c.details)) for c in checkpoints]
    for c in checkpoints:
        arms = sorted(log.parent for log in c.folder.glob(f"*/{store.LOG}"))
        found += [Place(f"{c.key}/{arm.name}", f"{c.label}, {arm.name}", arm) for arm in arms]
    known = {c.folder for c in checkpoints}
    for folder in folders:
        run = f"{folder.resolve().name}/" if len(folders) > 1 else ""
        for name in ("distill", "rl"):
            if folder / name not in known:
                found.append(
                    Place(run + name, f"{run.replace('/', ' ')}{label(name)} (training)", folder / name, loop=True)
                )
    return [place for place in found if (place.folder / store.LOG).is_file()]


def read_shelves(where: Sequence[Place], formulas: Formulas, *, limit_bytes: int) -> list[Shelf]:
    """Trajectories of every place; at most `limit_bytes` in all."""
    shelves, left = [], limit_bytes
    for index, place in enumerate(where):
        size = (place.folder / store.LOG).stat().st_size
        if size > LIMIT_READ and place.loop:
            shelves.append(Shelf(place.key, place.label, 0, (), size))
            continue
        shelf = _shelf(place, left // (len(where) - index))
        left -= sum(len(json.dumps(row)) for row in shelf.rows)
        shelves.append(shelf)
    for shelf in shelves:
        for row in shelf.rows:
            set_formulas(row, formulas)
    return shelves


def _shelf(place: Place, limit_bytes: int) -> Shelf:
    """Keep the records whose problem hashes lowest, so that every checkpoint shows the same problems."""
    heap: list[tuple[int, int, int, dict[str, Any]]] = []
    size = total = 0
    for index, record in enumerate(store.read(place.folder, ids=False)):
        row = row_of(record, place)
        total += 1
        digest = hashlib.blake2b(f"{row['p']}\0{row['n']}".encode("utf-8", "replace"), digest_size=6).digest()
        weight = len(json.dumps(row))
        heapq.heappush(heap, (-int.from_bytes(digest, "big"), index, weight, row))
        size += weight
        while size > limit_bytes and heap:
            size -= heapq.heappop(heap)[2]
    return Shelf(place.key, place.label, total, [row for _, _, _, row in sorted(heap, key=lambda item: item[1])])


def row_of(record: store.Record, place: Place) -> dict[str, Any]:
    """One trajectory: who and what it is, what filters ask for, and its segments under `s`."""
    one, notes = record.trajectory, record.annotations
    address = one.address
    grade, tags, reward = (notes.get(key) for key in ("grade", "tags", "reward"))
    grade = grade if isinstance(grade, Mapping) else {}
    reward = reward.get("total") if isinstance(reward, Mapping) else reward
    segments = [_segment(part) for part in one.segments]
    _mark_answer(segments, one.answer)
    grounds = (place.spans or {}).get((address.problem, address.sample))
    _mark_grounds(segments, grounds or ())
    blocks = [part.block for part in one.segments if part.block is not None]
    return {
        "c": place.key,
        "g": address.stage,
        "e": address.step,
        "p": address.problem,
        "n": address.sample,
        "q": _cut(one.question)[0],
        "a": one.answer,
        "o": notes.get("gold"),
        "ok": grade.get("correct") if isinstance(grade.get("correct"), bool) else None,
        "why": str(grade.get("reason") or ""),
        "end": str(one.end),
        "t": {str(key): str(value) for key, value in tags.items()} if isinstance(tags, Mapping) else {},
        "r": reward if is_number(reward) else None,
        "k": len(blocks),
        "x": sum(block.status is not BlockStatus.OK for block in blocks),
        "gr": None if place.spans is None or one.answer is None else grounds is not None,
        "f": list(place.failures.get((address.problem, address.sample), ())),
        "tk": _tokens(one.segments),
        "s": segments,
    }


def set_formulas(row: dict[str, Any], formulas: Formulas) -> None:
    """Find the formulas of a row's question and prose; their places stand under `z`."""
    if found := formulas.find(row["q"]):
        row["z"] = found
    for part in row["s"]:
        if part["k"] not in (SegmentKind.CODE, SegmentKind.OUTPUT) and (found := formulas.find(part["x"])):
            part["z"] = found


def _tokens(segments: Sequence[Segment]) -> list[int] | None:
    """Tokens the model wrote, and tokens that were inserted; None where the text was never encoded."""
    counts = {False: 0, True: 0}
    for part in segments:
        if part.start is None or part.end is None:
            return None
        counts[part.kind in INSERTED] += part.end - part.start
    return [counts[False], counts[True]]


def _segment(part: Segment) -> dict[str, Any]:
    text, cut = _cut(_readable(part))
    found: dict[str, Any] = {"k": str(part.kind), "x": text}
    if part.kind in INSERTED:
        found["w"] = INSERTED[part.kind]
    if part.start is not None and part.end is not None:
        found["n"] = part.end - part.start
    if cut:
        found["cut"] = cut
    at = -1
    if part.content and part.kind in (SegmentKind.CODE, SegmentKind.OUTPUT):
        alone = text.find(f"\n{part.content}\n")
        at = alone + 1 if alone >= 0 else text.find(part.content)
    if at >= 0:
        found["in"] = [at, at + len(part.content)]
    if part.block is not None:
        block = part.block
        found["b"] = {"s": str(block.status), "d": block.detail, "t": block.wall_s, "c": block.cut_chars}
    return found


def _readable(part: Segment) -> str:
    """A segment's text; code that its format writes in escapes as the interpreter got it, between the first and the last line."""
    if part.kind is not SegmentKind.CODE or part.content in part.text:
        return part.text
    opener, closer = part.text.partition("\n")[0], part.text.rpartition("\n")[2]
    return f"{opener}\n{part.content}\n{closer}"


def _cut(text: str) -> tuple[str, int]:
    if len(text) <= LIMIT_CHARS:
        return text, 0
    half = LIMIT_CHARS // 2
    cut = len(text) - 2 * half
    return f"{text[:half]}\n[… {cut:,} characters not on this page …]\n{text[-half:]}", cut


def _mark_answer(segments: Sequence[dict[str, Any]], answer: Any) -> None:
    """Mark where the answer stands in the last text the model wrote: the last box, or the last mention."""
    if not isinstance(answer, str) or not answer:
        return
    for part in reversed(segments):
        if part.get("w"):
            continue
        text = part["x"]
        start = text.rfind("\\boxed{")
        if start >= 0:
            end = _closing_brace(text, start + 6)
        elif part["k"] == "answer":
            start = text.rfind(answer)
            end = start + len(answer)
        if start >= 0:
            part["m"] = [start, end]
            return


def _closing_brace(text: str, at: int) -> int:
    depth = 0
    for place in range(at, len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if depth == 0:
            return place + 1
    return len(text)


def _spans(details: Mapping[str, Any]) -> Spans | None:
    """What the grounding metric stored: `{"grounded": [{"problem", "sample", "spans"}, …]}`."""
    if "grounded" not in details:
        return None
    return {(str(item["problem"]), int(item["sample"])): item["spans"] for item in details.get("grounded", ())}


def _failures(details: Mapping[str, Any]) -> Mapping[tuple[str, int], Sequence[str]]:
    """What the metric of failures stored: `{"failures": [{"problem", "sample", "post_hoc", "constants", "role_overlap"}, …]}`."""
    found = {}
    for item in details.get("failures", ()):
        found[str(item["problem"]), int(item["sample"])] = [said for key, said in FAILURES.items() if item.get(key)]
    return found


def _mark_grounds(segments: Sequence[dict[str, Any]], spans: Sequence[Mapping[str, Any]]) -> None:
    outputs = [part for part in segments if part["k"] == SegmentKind.OUTPUT]
    for span in spans:
        number, start, end = span["output"], span["start"], span["end"]
        if number < len(outputs) and "in" in outputs[number]:
            first, last = outputs[number]["in"]
            if 0 <= start < end <= last - first:
                outputs[number].setdefault("h", []).append([first + start, first + end])
