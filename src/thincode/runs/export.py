"""Export: records as other trainers read them. JSON lines, one JSON array, or Parquet, by the file's suffix.

    messages   {"id", "messages": [{"role": "user", …}, {"role": "assistant", …}], "answer", "format"}
               TRL (`messages`), LLaMA-Factory (`sharegpt` with role and content), axolotl (`chat_template`), verl (SFT, Parquet)
    text       {"id", "text"}: prompt and trajectory in one, the prompt in a tokenizer's chat template if there is one
    ids        {"id", "input_ids", "labels"}: as SFT trains them here; −100 where nothing is trained

The whole trajectory is one turn of the assistant, outputs included: a trainer that masks by role alone trains them too. Only
`ids` says which tokens the model wrote. Where a format's outputs are turns of a tool, they are messages of the role `tool`, and
`tools` holds the schemas.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Any

from .. import atomic
from ..errors import DataError, RecipeError, require
from ..rollout import prompt
from ..settings import load
from ..trajectory import SegmentKind, Trajectory
from ..trajectory.formats import Converses, Format, build
from ..trajectory.store import LOG, Record, read
from ..trajectory.tokenizer import Tokenizer
from ..trajectory.turns import spoken
from . import sieve
from .recipe import Recipe
from .sft import row

UNTRAINED = -100
"""The label that PyTorch's cross entropy leaves out."""


class To(StrEnum):
    """What is written."""

    MESSAGES = "messages"
    TEXT = "text"
    IDS = "ids"


def run(
    folder: Path,
    *,
    to: To,
    out: Path,
    tokenizer: Path | None = None,
    train_outputs: bool = False,
    all_records: bool = False,
) -> int:
    """Write the records of a run folder to a file.

    Args:
        folder: a run folder with records; of a distillation, what it kept.
        to: which shape.
        out: `.jsonl`, `.json` or `.parquet`; replaced if it is there.
        tokenizer: model folder whose tokenizer counts; `ids` needs one.
        train_outputs: label the interpreter's tokens too (ThinC's m=1).
        all_records: also what a distillation dropped.

    Returns:
        How many rows were written.

    Raises:
        DataError: no records there.
        RecipeError: another suffix, or `ids` without a tokenizer.
        MissingExtraError: Parquet without pyarrow.
    """
    if not (folder / LOG).is_file():
        raise DataError(f"{folder}: no records there (no {LOG}); name a run folder that holds some")
    words = Tokenizer.load(tokenizer) if tokenizer is not None else None
    if to is To.IDS and words is None:
        raise RecipeError("export ids: whose token ids? Name the student's folder with --model DIR")
    format = build(load(Recipe, folder / "recipe.resolved.yaml").value.format)
    keep = None if all_records or not (folder / sieve.VERDICTS).is_file() else sieve.kept_keys(folder)
    chosen = (record for record in read(folder, ids=False) if keep is None or record.trajectory.address.key in keep)
    rows = (_row(record, to, format, words, train_outputs) for record in chosen)
    return write(rows, out)


def _row(record: Record, to: To, format: Format, words: Tokenizer | None, train_outputs: bool) -> dict[str, Any]:
    trajectory = record.trajectory
    address = trajectory.address
    found: dict[str, Any] = {"id": f"{address.problem}#{address.sample}"}
    if to is To.MESSAGES:
        asked = {"role": "user", "content": format.user_message(trajectory.question)}
        if isinstance(format, Converses):
            found["messages"] = [asked, *format.messages(trajectory.segments)]
            found["tools"] = [*format.tools]
        else:
            found["messages"] = [asked, {"role": "assistant", "content": trajectory.text}]
        found |= {"answer": str(record.annotations.get("gold", "")), "format": trajectory.format}
    elif to is To.TEXT:
        found["text"] = prompt.render(trajectory.question, format=format, tokenizer=words) + _text(
            trajectory, spoken(format, words)
        )
    else:
        assert words is not None
        ids, mask = row(trajectory, format, words, train_outputs=train_outputs)
        pairs = zip(ids.tolist(), mask.tolist(), strict=True)
        found |= {"input_ids": ids.tolist(), "labels": [token if on else UNTRAINED for token, on in pairs]}
    return found


def _text(trajectory: Trajectory, format: Format) -> str:
    """What stands behind the prompt, a tool's turns in the words of the template that the prompt is in."""
    if not isinstance(format, Converses):
        return trajectory.text
    ours = (SegmentKind.OUTPUT, SegmentKind.NOTICE)
    return "".join(format.insertion(s).text if s.kind in ours else s.text for s in trajectory.segments)


def write(rows: Iterable[dict[str, Any]], out: Path) -> int:
    """Write rows in the file's own kind, whole or not at all; returns their number."""
    out.parent.mkdir(parents=True, exist_ok=True)
    listed = list(rows)
    if out.suffix == ".jsonl":
        atomic.write_text(out, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in listed))
    elif out.suffix == ".json":
        atomic.write_json(out, listed)
    elif out.suffix == ".parquet":
        _write_parquet(listed, out)
    else:
        raise RecipeError(f"{out}: {out.suffix or 'no suffix'}: a file ends in .jsonl, .json or .parquet")
    return len(listed)


def _write_parquet(rows: list[dict[str, Any]], out: Path) -> None:
    require("pyarrow", extra="train", needed_for=f"{out} (Parquet)")
    import io

    import pyarrow
    from pyarrow import parquet

    buffer = io.BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist(rows), buffer)
    atomic.write_bytes(out, buffer.getvalue())
