"""Published data sets: from the Hugging Face hub, or from a local copy with the same columns.

Rows that repeat a question (DAPO-Math-17k has each a hundred times), rows without exactly one answer and rows that a
filter in `keep` refuses are left out. Licenses are what the cards on the hub state, `none stated` included; what is
marked unverified was not read on the card.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from ... import _jsonl
from ...errors import DataError, MissingExtraError, RecipeError
from ...settings import settings
from .. import Problem
from ..language import is_english
from ._rows import answer_text, field_at, is_positive_integer


@dataclass(frozen=True)
class Published:
    """How one data set is read. Columns are paths such as `prompt.0.content`; the first that a row has counts."""

    hub: str
    license: str
    split: str = "train"
    config: str | None = None
    question: tuple[str, ...] = ("problem", "question")
    answer: tuple[str, ...] = ("answer",)
    where: tuple[str, str] | None = None
    """Only rows in which this column has this value."""
    cut: tuple[str, ...] = ()
    """Patterns taken out of the question: instructions for one prompt that is not ours."""
    tags: tuple[str, ...] = ()
    stream: bool = False
    """Too large to download whole."""


_VERL_QUESTION = ("prompt.0.content",)
_VERL_ANSWER = ("reward_model.ground_truth",)
_DAPO_INSTRUCTIONS = (
    r"\ASolve the following math problem step by step\..*?\n\n",
    r"\s*Remember to put your answer on its own line after \"Answer:\"\.\s*\Z",
)
_BOX_INSTRUCTION = (r"\s*(?:Please|Let's)[^.\n]*\\boxed\{\}\.?\s*\Z",)

DATASETS: Mapping[str, Published] = {
    "dapo_math_17k": Published(
        "BytedTsinghua-SIA/DAPO-Math-17k",
        "apache-2.0 (unverified)",
        question=_VERL_QUESTION,
        answer=_VERL_ANSWER,
        cut=_DAPO_INSTRUCTIONS,
    ),
    "dapo_math_17k_processed": Published(
        "open-r1/DAPO-Math-17k-Processed",
        "none stated",
        config="en",
        question=("prompt",),
        answer=("solution", *_VERL_ANSWER),
        cut=_DAPO_INSTRUCTIONS,
    ),
    "skywork_or1": Published(
        "Skywork/Skywork-OR1-RL-Data",
        "apache-2.0",
        split="math",
        question=_VERL_QUESTION,
        answer=_VERL_ANSWER,
        cut=_BOX_INSTRUCTION,
        tags=("data_source",),
    ),
    "open_math_reasoning": Published(
        "nvidia/OpenMathReasoning",
        "cc-by-4.0",
        split="cot",
        answer=("expected_answer",),
        where=("problem_type", "has_answer_extracted"),
        tags=("problem_source",),
        stream=True,
    ),
    "still_3": Published(
        "RUC-AIBOX/STILL-3-Preview-RL-Data",
        "unverified",
        question=("question", "problem"),
        cut=_BOX_INSTRUCTION,
    ),
    "aime24": Published("HuggingFaceH4/aime_2024", "none stated"),
    "aime25": Published("MathArena/aime_2025", "cc-by-nc-sa-4.0"),
    "aime26": Published("MathArena/aime_2026", "cc-by-nc-sa-4.0"),
    "hmmt_feb_2025": Published("MathArena/hmmt_feb_2025", "cc-by-nc-sa-4.0"),
    "beyond_aime": Published("ByteDance-Seed/BeyondAIME", "cc0-1.0 (unverified)", split="test"),
    "math500": Published("HuggingFaceH4/MATH-500", "none stated", split="test", tags=("subject", "level")),
    "amc23": Published("math-ai/amc23", "unverified", split="test"),
    "olymmath_en_easy": Published("RUC-AIBOX/OlymMATH", "mit", split="test", config="en-easy", tags=("subject",)),
    "olymmath_en_hard": Published("RUC-AIBOX/OlymMATH", "mit", split="test", config="en-hard", tags=("subject",)),
    "gsm8k": Published("openai/gsm8k", "mit", split="test", config="main"),
}


class Keep(StrEnum):
    """What a row must be to be kept."""

    ENGLISH = "english"
    POSITIVE_INTEGER = "positive_integer"


@settings
class Settings:
    """Which data set, from where, and which of its rows."""

    dataset: str
    """A key of `DATASETS`."""
    path: Path | None = None
    """A parquet or JSONL file, or a folder of them, with the columns of the data set; null takes it from the hub."""
    split: str | None = None
    """Null: the data set's usual one. A local copy has no splits."""
    revision: str | None = None
    """Commit on the hub; name one to have the same problems for ever."""
    keep: tuple[Keep, ...] = ()
    first: Annotated[int, Field(ge=0)] = 0
    """Problems left out at the start, after filtering."""
    limit: Annotated[int, Field(ge=1)] | None = None
    """At most so many problems; reading stops there."""


def load(settings: Settings) -> Sequence[Problem]:
    """The problems in the data set's order, each with the tags dataset, license and those of the data set.

    Raises:
        RecipeError: an unknown data set; a split or revision of a local copy.
        MissingExtraError: the hub or a parquet file is asked for, and `datasets` is not installed.
        DataError: the hub can't be reached; a file is missing or has other columns; nothing is left.
    """
    published = DATASETS.get(settings.dataset)
    if published is None:
        raise RecipeError(f"dataset: {settings.dataset!r} is not known; known: {', '.join(DATASETS)}")
    if settings.path is not None and (settings.split or settings.revision):
        raise RecipeError("split, revision: a local copy has neither; name the file of the split in path, or drop path")
    rows = _hub_rows(settings, published) if settings.path is None else _local_rows(settings.path)
    left_out: Counter[str] = Counter()
    seen: set[str] = set()
    problems: list[Problem] = []
    end = None if settings.limit is None else settings.first + settings.limit
    for place, row in rows:
        problem = _problem(settings.dataset, published, row, place)
        reason = "no answer" if problem is None else _refusal(problem, settings.keep, seen)
        if problem is None or reason:
            left_out[reason] += 1
            continue
        seen.add(problem.question)
        problems.append(problem)
        if len(problems) == end:
            break
    if not problems[settings.first :]:
        counts = ", ".join(f"{n} {reason}" for reason, n in left_out.items()) or "no row"
        raise DataError(
            f"{settings.path or published.hub}: {len(problems)} problems of {settings.dataset} are left (left out: "
            f"{counts}), none from number {settings.first} on; relax keep or lower first"
        )
    return problems[settings.first :]


def worked_solution(settings: Settings, problem: Problem, *, seed: int) -> None:
    """Published data hold no programs of ours: always None."""
    return


def _refusal(problem: Problem, keep: Sequence[Keep], seen: set[str]) -> str:
    """Why the problem is left out; empty where it is kept."""
    if problem.question in seen:
        return "repeated"
    if Keep.ENGLISH in keep and not is_english(problem.question):
        return "not English"
    if Keep.POSITIVE_INTEGER in keep and not is_positive_integer(problem.answer):
        return "no positive integer"
    return ""


def _problem(name: str, published: Published, row: dict[str, Any], place: str) -> Problem | None:
    if published.where and str(field_at(row, published.where[0])) != published.where[1]:
        return None
    question = _first(row, published.question, place)
    answer = _gold(_first(row, published.answer, place))
    if not isinstance(question, str):
        raise DataError(f"{place}: the question is {question!r}; it must be text, as in {published.hub}")
    for pattern in published.cut:
        question = re.sub(pattern, "", question, flags=re.DOTALL)
    question = question.strip()
    if not answer or not question:
        return None
    digest = hashlib.blake2b(question.encode(), digest_size=6).hexdigest()
    tags = {tag: answer_text(field_at(row, tag)) or "" for tag in published.tags}
    return Problem(
        id=f"{name}/{digest}",
        question=question,
        answer=answer,
        tags={"dataset": name, "license": published.license, **tags},
    )


def _first(row: dict[str, Any], paths: Sequence[str], place: str) -> Any:
    found = [value for value in (field_at(row, path) for path in paths) if value is not None]
    if not found and not any(path.partition(".")[0] in row for path in paths):
        raise DataError(f"{place}: no column {' or '.join(paths)}; the columns are {', '.join(row)}")
    return found[0] if found else None


def _gold(value: Any) -> str | None:
    """The gold answer: behind `####` where there is one, out of a list of one written as text, commas of 1,234 gone."""
    text = answer_text(value)
    if text is None:
        return None
    if "####" in text:
        text = text.rpartition("####")[2].strip()
    if text.startswith('["') or text.startswith("['"):
        try:
            several = json.loads(text)
        except ValueError:
            several = re.findall(r"'((?:[^'\\]|\\.)*)'", text)
        return answer_text(several[0]) if len(several) == 1 else None
    return text.replace(",", "") if re.fullmatch(r"-?\d{1,3}(,\d{3})+", text) else text or None


# --- where rows come from -------------------------------------------------------------------------------------------


def _hub_rows(settings: Settings, published: Published) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        datasets = importlib.import_module("datasets")
    except ModuleNotFoundError:
        raise MissingExtraError("datasets", "train", f"the data set {settings.dataset} from the hub") from None
    split = settings.split or published.split
    try:
        loaded = datasets.load_dataset(
            published.hub, published.config, split=split, revision=settings.revision, streaming=published.stream
        )
    except Exception as error:  # what the hub's client raises differs by version and by what is wrong with the network
        raise DataError(
            f"{published.hub} (split {split}) can't be loaded from the hub: {type(error).__name__}: {error}. Download "
            f"it where there is a network and name the file or folder: path: FOLDER (parquet or JSONL, same columns)"
        ) from None
    for number, row in enumerate(loaded):
        yield f"{published.hub}:{split}:{number}", row


def _local_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    files = sorted(f for f in path.rglob("*") if f.suffix in (".parquet", ".jsonl")) if path.is_dir() else [path]
    if not path.exists() or not files:
        raise DataError(f"{path}: no parquet or JSONL file there; give a file or a folder that holds some")
    for file in files:
        if file.suffix == ".parquet":
            yield from _parquet_rows(file)
        elif file.suffix in (".jsonl", ".json"):
            yield from ((f"{file}:{number}", row) for number, row in _jsonl.read(file))
        else:
            raise DataError(f"{file}: neither .parquet nor .jsonl; convert it to one of them")


def _parquet_rows(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        parquet = importlib.import_module("pyarrow.parquet")
    except ModuleNotFoundError:
        raise MissingExtraError("datasets", "train", f"{file} (parquet)") from None
    number = 0
    try:
        with parquet.ParquetFile(file) as opened:
            for batch in opened.iter_batches(batch_size=1000):
                for row in batch.to_pylist():
                    yield f"{file}:row {number}", row
                    number += 1
    except (OSError, ValueError) as error:
        raise DataError(f"{file}: not a parquet file that can be read ({error}); download it again") from None
