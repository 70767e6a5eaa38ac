"""Every system in one walk: its format carries a small episode on its own interpreter, its transcript is read and measured."""

from __future__ import annotations

import asyncio
import functools
import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from thincode.engines import Context, Sampling
from thincode.engines.scripted import Script, ScriptedEngine
from thincode.errors import MissingExtraError
from thincode.evaluation import Scorecard
from thincode.interpreter import Interpreter, open_interpreter
from thincode.problems.sources import drills
from thincode.rollout import Budget
from thincode.rollout.episode import Ask, Setting, run
from thincode.runlog import Progress
from thincode.runs import measure
from thincode.runs.distill import teacher_script
from thincode.runs.recipe import default_metrics
from thincode.settings import Kind, kind, kinds
from thincode.trajectory import Address, SegmentKind, Trajectory, published
from thincode.trajectory.formats import Format, Sheet, build, sheet

ROOM = "thincode.trajectory.formats"
GOLDEN = Path(__file__).parent / "golden" / "wire_formats"
BLOCKS = ("print(2 + 4)", "print(7 - 4)")
"""They print the same in every language of blocks, and need no names of each other."""
ANSWER, GOLDEN_ANSWER = "3", "4"

_DRILLS = {
    language: drills.Settings(families=("gcd",), count=1, cut=cut, language=drills.Language(language))
    for language, cut in (("python", drills.Cut.ALONE), ("gp", drills.Cut.STEPS))
}
(DRILL,) = drills.load(_DRILLS["python"])
"""A problem, and how its teacher solves it in each language: in blocks that run alone, where an interpreter may keep nothing."""
SOLUTIONS = {language: drills.worked_solution(settings, DRILL, seed=1) for language, settings in _DRILLS.items()}


@dataclass(frozen=True)
class Row:
    """One system."""

    name: str
    """Its format."""
    sheet: Sheet
    backend: str
    ran: Trajectory | None
    """The episode: a scripted model, real blocks; None where this machine lacks the language they are in."""
    taught: Trajectory | None
    """A drill, by the scripted teacher; None where there is no interpreter for it either."""
    golden: Trajectory
    """The transcript that is pinned, read from its text."""
    measured: Scorecard
    """Of that transcript."""


@functools.cache
def walk() -> tuple[Row, ...]:
    """A row for each format there is, in the order of their systems' names."""
    rows = asyncio.run(_walk())
    return tuple(sorted(rows, key=lambda row: row.sheet.system.lower()))


async def _walk() -> list[Row]:
    opened: dict[tuple[str, str | None], Interpreter | None] = {}
    rows = []
    for name in kinds(ROOM):
        chosen = kind(ROOM, name, instruction="")
        found, backend = sheet(chosen), getattr(build(chosen), "language", "python")
        key = (backend, found.preset)
        if key not in opened:
            opened[key] = _open(backend, found.preset)
        text = json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))["text"]
        row = {"id": name, "problem": "How many?", "trajectory": text, "answer": GOLDEN_ANSWER}
        golden = published.trajectory_of(row, format=build(chosen))
        format = build(chosen)
        turns = iter(format.teacher_turns("Add, then subtract.", ["First add.", "Then subtract."], BLOCKS, ANSWER))
        ran = taught = None
        if (interpreter := opened[key]) is not None:
            ran = await _episode(format, interpreter, "What is 7 - 4?", partial(_next_of, turns))
            script = teacher_script({DRILL.id: SOLUTIONS[backend]}, format)
            taught = await _episode(format, interpreter, DRILL.question, script)
        rows.append(Row(name, found, backend, ran, taught, golden, _measured(row, chosen)))
    for used in opened.values():
        if used is not None:
            await used.close()
    return rows


def _open(backend: str, preset: str | None) -> Interpreter | None:
    settings = {"preload": [], "pool": 1} if backend == "python" else {}
    try:
        return open_interpreter(kind("thincode.interpreter.backends", backend, **settings), preset=preset)
    except MissingExtraError:
        return None


def _next_of(turns: Iterator[str], context: Context) -> str:
    return next(turns)


async def _episode(format: Format, interpreter: Interpreter, question: str, script: Script) -> Trajectory:
    setting = Setting(
        interpreter=interpreter,
        format=format,
        tokenizer=None,
        budget=Budget(context_tokens=4000, calls=8),
        sampling=Sampling(),
    )
    ask = Ask(Address(1, "systems", 0, DRILL.id, 0), question)
    return await run(ask, voice=await ScriptedEngine(script).voice(ask.address), setting=setting)


def _measured(row: dict[str, str], chosen: Kind) -> Scorecard:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "golden.jsonl"
        file.write_text(json.dumps(row) + "\n" + json.dumps({**row, "id": "again"}) + "\n", encoding="utf-8")
        found = measure.run(
            file,
            format=chosen,
            metrics=default_metrics(),
            progress=lambda *words, **named: Progress(*words, **named, quiet=True),
            processes=1,
        )
    return found.card


# --- the page -------------------------------------------------------------------------------------------------------


def page(rows: Sequence[Row]) -> str:
    """`docs/systems.md`."""
    head = "| system | published | format | interpreter | budget | runs | reads | measured |"
    every = set().union(*(_names(row) for row in rows))
    table = [head, "|" + "---|" * head.count(" | ") + "---|", *(_line(row, every) for row in rows)]
    unknown = [f"- {row.sheet.system}: {row.sheet.unknown}." for row in rows if row.sheet.unknown]
    return _PAGE.format(table="\n".join(table), unknown="\n".join(unknown))


def _line(row: Row, every: set[str]) -> str:
    budget = {
        "calls": row.sheet.calls,
        "turn_tokens": row.sheet.turn_tokens,
        "thinking_tokens": row.sheet.thinking_tokens,
        "context_tokens": row.sheet.context_tokens,
    }
    assert row.ran is not None
    has_code = bool(row.ran.blocks)
    interpreter = f"`{row.sheet.preset}`" if row.sheet.preset else "ours" if has_code else "none"
    cells = [
        row.sheet.system,
        ", ".join(_links(row.sheet)),
        f"`{row.name}`",
        interpreter if row.backend == "python" else f"backend `{row.backend}`",
        " ".join(f"`{key}={value}`" for key, value in budget.items() if value),
        f"{_count(len(row.ran.blocks), 'block')}, answer {row.ran.answer}",
        " ".join(_shape(row.golden)),
        "by every metric" if _names(row) == every else f"{len(_names(row))} of {len(every)} values",
    ]
    return f"| {' | '.join(cells)} |"


def _names(row: Row) -> set[str]:
    return {estimate.name for estimate in row.measured.estimates}


def _links(sheet: Sheet) -> Iterator[str]:
    if sheet.paper:
        yield f"[{sheet.paper}](https://arxiv.org/abs/{sheet.paper.removeprefix('arXiv ')})"
    if sheet.repository:
        yield (
            f"[code](https://{sheet.repository})"
            if sheet.repository.startswith("github")
            else f"<https://{sheet.repository}>"
        )
    if not sheet.paper and not sheet.repository:
        yield "no"


def _count(number: int, what: str) -> str:
    return "text" if not number else f"{number} {what}" + "s" * (number > 1)


_SIGNS = {
    SegmentKind.PLAN: "t",
    SegmentKind.THOUGHT: "t",
    SegmentKind.CODE: "c",
    SegmentKind.OUTPUT: "o",
    SegmentKind.NOTICE: "n",
    SegmentKind.ANSWER: "a",
}


def _shape(trajectory: Trajectory) -> list[str]:
    return [_SIGNS[segment.kind] for segment in trajectory.segments]


_PAGE = r"""# Every system has a row

<!-- written by tests/systems.py; renew it with: make golden -->

Each system is a wire format that any engine can speak, a reader of transcripts written in it, and an interpreter with its limits.
The table is made by running them: the episode of the column *runs* was spoken by a scripted model in that format, its blocks really
ran on that interpreter; *reads* is the shape of a transcript of ours, read back from its text (t thought or plan, c code, o output,
a answer); *measured* says what `thincode measure` gave of it. `tests/contracts/test_systems.py` asks the same of each row.

{table}

*Interpreter* is a preset of [interpreter.md](interpreter.md), which a recipe takes over with the format unless it names another
(`interpreter.preset: null` for none); *ours* has live names and the recipe's limits. *Budget* holds what is published and is taken
over by naming it: `evaluate.budget.calls=5`. What differs from the system itself stands in the docstring of the format's file,
`src/thincode/trajectory/formats/NAME.py`.

## Commands

Run: any recipe, with the format of the row. Here the drills' teacher speaks, which needs no instruction: `format.kind=cir` keeps
the recipe's empty one.

```bash
thincode distill tiny/micro --out runs/cir --quiet format.kind=cir distill.problems.count=33 distill.problems.cut=alone
thincode distill tiny/micro --out runs/retool --quiet format.kind=retool distill.problems.count=33 distill.problems.cut=alone
```

`cut=alone` makes each block of the teacher stand on its own, for interpreters that keep nothing from block to block.

Ask a model: `format=cir` brings the format's instruction along, and `--plan` says at its end what holds for a block.

<!-- not run: needs a server -->
```bash
for system in cir retool aster; do
    thincode eval tiny/benchmarks format=$system 'evaluate.problems={{kind: jsonl, path: gsm8k_test.jsonl}}' \
        'evaluate.engine={{kind: openai, base_url: "http://127.0.0.1:8000/v1", template: TOKENIZER_FOLDER}}' \
        evaluate.budget.context_tokens=16384 --out runs/$system
done
thincode compare runs/cir runs/retool runs/aster
```

The text is in its wire form, outputs inside the model's own turn, where the engine is `local` or `vllm`, or where `template`
names the folder of the model's tokenizer and the server has `/completions`. Of a server that only chats, outputs are messages
of the user, or of a tool: an approximation, which the run's first line calls `way turns`. What stays unlike the system in any
case, its file's docstring says; recipes for training as published ship for ThinC and CIR (`thincode recipes`), planned but
never run at that size.

Read and measure: a file of transcripts, one a line, in the format of the row.

```bash
cat > theirs.jsonl <<'END'
{{"problem": "6 * 7?", "answer": "42", "text": "<python>print(6 * 7)</python> <result>\n42\n</result><answer>42</answer>"}}
END
thincode measure theirs.jsonl --format tool_star
```

## What could not be known

Where a paper and its code leave something open, it is our choice:

{unknown}
"""
