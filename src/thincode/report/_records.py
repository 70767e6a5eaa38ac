"""Trajectories → rows of the page's browser: short keys, one entry a segment, spans to mark."""

from __future__ import annotations

import hashlib
import heapq
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..runlog import read_log
from ._read import Checkpoint, is_number, label

LIMIT_CHARS = 40_000
"""Characters of one segment on the page; a longer one loses its middle, and the page says how much."""
AUTHORS = {"output": "interpreter", "notice": "driver"}


@dataclass(frozen=True)
class Shelf:
    """The trajectories of one checkpoint that are on the page."""

    key: str
    label: str
    total: int
    rows: Sequence[Mapping[str, Any]]


def read_shelves(folder: Path, checkpoints: Sequence[Checkpoint], *, limit_bytes: int) -> list[Shelf]:
    """Trajectories of every checkpoint, and those of the loops where they are kept; at most `limit_bytes` in all."""
    places = [(c.key, c.label, c.folder, c.details) for c in checkpoints]
    known = {c.folder for c in checkpoints}
    places += [(n, f"{label(n)} (training)", folder / n, {}) for n in ("distill", "rl") if folder / n not in known]
    places = [place for place in places if (place[2] / "trajectories.jsonl").is_file()]
    shelves, left = [], limit_bytes
    for index, (key, name, where, details) in enumerate(places):
        shelf = _shelf(key, name, where, details, left // (len(places) - index))
        left -= sum(len(json.dumps(row)) for row in shelf.rows)
        shelves.append(shelf)
    return shelves


def _shelf(key: str, name: str, folder: Path, details: Mapping[str, Any], limit_bytes: int) -> Shelf:
    """Keep the records whose problem hashes lowest, so that every checkpoint shows the same problems."""
    heap: list[tuple[int, int, int, dict[str, Any]]] = []
    size = total = 0
    for index, record in enumerate(_records(folder)):
        row = _row(record, key, details)
        total += 1
        digest = hashlib.blake2b(f"{row['p']}\0{row['n']}".encode("utf-8", "replace"), digest_size=6).digest()
        weight = len(json.dumps(row))
        heapq.heappush(heap, (-int.from_bytes(digest, "big"), index, weight, row))
        size += weight
        while size > limit_bytes and heap:
            size -= heapq.heappop(heap)[2]
    return Shelf(key, name, total, [row for _, _, _, row in sorted(heap, key=lambda item: item[1])])


def _records(folder: Path) -> Iterator[dict[str, Any]]:
    """One flat mapping a record: the trajectory's fields, its address's, and what was annotated."""
    for line in read_log(folder / "trajectories.jsonl"):
        flat: dict[str, Any] = {}
        for part in (line.get("trajectory"), line.get("annotations"), line, (line.get("address"))):
            flat |= part if isinstance(part, Mapping) else {}
        if isinstance(flat.get("address"), Mapping):
            flat |= flat["address"]
        yield flat


def _row(record: Mapping[str, Any], shelf: str, details: Mapping[str, Any]) -> dict[str, Any]:
    grade = record.get("grade")
    tags = record.get("tags")
    grade = grade if isinstance(grade, Mapping) else {}
    tags = tags if isinstance(tags, Mapping) else {}
    raw = [part for part in record.get("segments") or [] if isinstance(part, Mapping)]
    segments = [_segment(part) for part in raw]
    _mark_answer(segments, record.get("answer"))
    problem, sample = str(record.get("problem", "")), record.get("sample", 0)
    _mark_grounds(segments, raw, _grounds(details, problem, sample, record))
    reward = record.get("reward")
    reward = reward.get("total") if isinstance(reward, Mapping) else reward
    return {
        "c": shelf,
        "g": str(record.get("stage") or ""),
        "e": record.get("step"),
        "p": problem,
        "n": sample,
        "q": _cut(str(record.get("question", "")))[0],
        "a": record.get("answer"),
        "o": record.get("gold"),
        "ok": grade.get("correct") if isinstance(grade.get("correct"), bool) else None,
        "why": str(grade.get("reason") or ""),
        "end": str(record.get("end") or ""),
        "t": {str(key): str(value) for key, value in tags.items()},
        "r": reward if is_number(reward) else None,
        "s": segments,
    }


def _segment(part: Mapping[str, Any]) -> dict[str, Any]:
    kind, full = str(part.get("kind", "")), str(part.get("text", ""))
    text, cut = _cut(full)
    found: dict[str, Any] = {"k": kind, "x": text}
    if kind in AUTHORS:
        found["w"] = AUTHORS[kind]
    if cut:
        found["cut"] = cut
    content = str(part.get("content") or "")
    at = text.find(content) if content and kind in ("code", "output") else -1
    if at >= 0:
        found["in"] = [at, at + len(content)]
    block = part.get("block")
    if isinstance(block, Mapping):
        found["b"] = {
            "s": str(block.get("status", "")),
            "d": str(block.get("detail") or ""),
            "t": block.get("wall_s") if is_number(block.get("wall_s")) else None,
            "c": block.get("cut_chars") or 0,
        }
    return found


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


def _grounds(details: Mapping[str, Any], problem: str, sample: Any, record: Mapping[str, Any]) -> list[Any]:
    """Spans that ground this trajectory's answer, as (segment, start, end) in the segment's content."""
    spans = details.get("grounding_spans") or details.get("spans") or {}
    if not isinstance(spans, Mapping):
        return []
    step, stage = record.get("step"), record.get("stage")
    for key in (f"{stage}/{step}/{problem}/{sample}", f"{problem}/{sample}"):
        if isinstance(spans.get(key), Sequence):
            return list(spans[key])
    return []


def _mark_grounds(segments: Sequence[dict[str, Any]], raw: Sequence[Mapping[str, Any]], spans: Sequence[Any]) -> None:
    for span in spans:
        if isinstance(span, Mapping):
            span = [span.get(key) for key in ("segment", "start", "end")]
        if not (isinstance(span, Sequence) and len(span) == 3 and all(isinstance(part, int) for part in span)):
            continue
        index, start, end = span
        if not 0 <= index < len(segments) or segments[index].get("cut"):
            continue
        shift = segments[index].get("in", [0])[0]
        if 0 <= start < end <= len(str(raw[index].get("content") or raw[index].get("text") or "")):
            segments[index].setdefault("h", []).append([start + shift, end + shift])
