"""Trajectories as a log of Inspect (inspect.aisi.org.uk), so that `inspect view` opens them. Written as JSON, version 2 of its
format; Inspect itself is not needed for that.

A sample of Inspect is a problem, an epoch one of our samples. A block becomes a call of the tool `python`, what it printed the
tool's message, a block that failed a tool's error; the grade is a score `C` or `I` with its reason. Lost ones are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from .. import __version__, atomic
from ..errors import RunFolderError
from ..evaluation.intervals import normal
from ..evaluation.samples import by_problem
from ..grading import Graded
from ..trajectory import BlockStatus, EndReason, Segment, SegmentKind
from .compare import evaluation_of, graded

_SCORER = "thincode"
_STOP = {EndReason.FINISHED: "stop", EndReason.CONTEXT: "max_tokens"}


def run(folder: Path, out: Path | None = None) -> Path:
    """Write the log of one evaluation; returns where.

    Args:
        folder: an evaluation, or a pipeline's folder (its last evaluation counts).
        out: a file whose name ends with `.json`; None takes `inspect.json` in the folder.

    Raises:
        RunFolderError: no evaluation there; another kind of file is asked for.
    """
    folder = evaluation_of(folder)
    out = out or folder / "inspect.json"
    if out.suffix != ".json":
        raise RunFolderError(f"{out}: Inspect knows its logs by their names; end the name with .json")
    began = datetime.fromtimestamp((folder / "trajectories.jsonl").stat().st_mtime, UTC)
    atomic.write_json(out, log_of(graded(folder), name=folder.name, created=began))
    return out


def log_of(rows: Sequence[Graded], *, name: str, created: datetime) -> dict[str, Any]:
    """The log as plain JSON."""
    problems = by_problem(rows)
    kept = [row for found in problems.values() for row in found]
    epochs = max((len(found) for found in problems.values()), default=0)
    models = {row.trajectory.versions.get("model", "") for row in kept}
    mean = normal([sum(row.grade.correct for row in found) / len(found) for found in problems.values()])
    stderr = (mean.high - mean.low) / (2 * 1.959964) if mean.high is not None and mean.low is not None else 0.0
    metrics = {"accuracy": mean.value or 0.0, "stderr": stderr}
    return {
        "version": 2,
        "status": "success",
        "eval": {
            "created": created.isoformat(timespec="seconds"),
            "task": name,
            "dataset": {"name": name, "samples": len(problems), "sample_ids": list(problems)},
            "model": f"thincode/{', '.join(sorted(models)) or 'unknown'}",
            "config": {"epochs": max(epochs, 1)},
            "packages": {"thincode": __version__},
        },
        "plan": {"name": "plan", "steps": [], "config": {}},
        "results": {
            "total_samples": len(kept),
            "completed_samples": len(kept),
            "scores": [
                {
                    "name": _SCORER,
                    "scorer": _SCORER,
                    "metrics": {key: {"name": key, "value": value} for key, value in metrics.items()},
                }
            ],
        },
        "stats": {"started_at": "", "completed_at": ""},
        "samples": [_sample(row) for row in kept],
    }


def _sample(row: Graded) -> dict[str, Any]:
    said = row.trajectory
    messages = _messages(row)
    last = next((m for m in reversed(messages) if m["role"] == "assistant"), {"role": "assistant", "content": ""})
    return {
        "id": row.problem.id,
        "epoch": said.address.sample + 1,
        "input": said.question,
        "target": row.problem.answer,
        "messages": messages,
        "output": {
            "model": said.versions.get("model", ""),
            "choices": [{"message": last, "stop_reason": _STOP.get(said.end, "unknown")}],
        },
        "scores": {
            _SCORER: {
                "value": "C" if row.grade.correct else "I",
                "answer": said.answer,
                "explanation": row.grade.reason.value,
            }
        },
        "metadata": {**row.problem.tags, "end": said.end.value, "format": said.format, "stage": said.address.stage},
        "total_time": said.generate_s + said.execute_s,
    }


def _messages(row: Graded) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "user", "content": row.trajectory.question, "source": "input"}]
    text = ""
    ran: tuple[str, Segment] | None = None  # the call that waits for its output
    for segment in row.trajectory.segments:
        if segment.block is not None:
            ran = (f"call-{len(messages)}", segment)
            messages.append(_assistant(text, ran))
            text = ""
        elif segment.kind is SegmentKind.OUTPUT and ran is not None:
            messages.append(_tool(segment, *ran))
            ran = None
        elif segment.kind is SegmentKind.NOTICE:
            messages += [_assistant(text)] if text.strip() else []
            messages.append({"role": "user", "content": segment.content})
            text = ""
        else:
            text += segment.text
    return messages + ([_assistant(text)] if text.strip() else [])


def _assistant(text: str, call: tuple[str, Segment] | None = None) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text.strip(), "source": "generate"}
    if call is not None:
        name, segment = call
        arguments: Mapping[str, str] = {"code": segment.content}
        message["tool_calls"] = [{"id": name, "function": "python", "arguments": arguments, "type": "function"}]
    return message


def _tool(output: Segment, name: str, code: Segment) -> dict[str, Any]:
    message: dict[str, Any] = {
        "role": "tool",
        "content": output.content,
        "tool_call_id": name,
        "function": "python",
    }
    block = code.block
    if block is not None and block.status is not BlockStatus.OK:
        kind = "timeout" if block.status is BlockStatus.LIMIT else "unknown"
        message["error"] = {"type": kind, "message": block.detail or block.status.value}
    return message
