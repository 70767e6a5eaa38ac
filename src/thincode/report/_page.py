"""The page: template, data block and policy put together into one file.

Text of trajectories reaches the page in one place only, a JSON block that browsers do not run, in which no character
can end the block; the script puts it on the page as text. A Content-Security-Policy names the page's own script and
style by hash and forbids everything else, so that a mistake here would still run nothing and load nothing.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from markupsafe import Markup

from .. import atomic
from ..runlog import duration
from ..settings import read_yaml, write_yaml
from ._figures import Cell, Table
from ._read import Run, read_run
from ._records import Shelf, read_shelves
from ._sections import build_sections, environment_rows, time_split


def write(folder: Path, out: Path | None, *, limit_bytes: int) -> Path:
    """See `thincode.report.build`."""
    run = read_run(folder)
    shelves = read_shelves(folder, run.checkpoints, limit_bytes=limit_bytes)
    target = out or folder / "report.html"
    # A lone surrogate in a name must not cost the page.
    atomic.write_bytes(target, render(run, shelves).encode("utf-8", "replace"))
    return target


def render(run: Run, shelves: Sequence[Shelf]) -> str:
    """The whole page as text."""
    import jinja2

    page = resources.files(__package__) / "page"
    style, script = ((page / name).read_text(encoding="utf-8") for name in ("style.css", "page.js"))
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    template = environment.from_string((page / "page.html.j2").read_text(encoding="utf-8"))
    return template.render(
        run=run,
        facts=facts(run),
        sections=build_sections(run),
        time=time_split(run),
        shelves=shelves,
        sampled=sum(len(s.rows) for s in shelves) < sum(s.total for s in shelves),
        published=published(),
        recipe=write_yaml(dict(run.recipe)) if run.recipe else "",
        environment=environment_rows(run.environment),
        policy=policy(style=style, script=script),
        style=Markup(style),
        script=Markup(script),
        data=Markup(inert_json([row for shelf in shelves for row in shelf.rows])),
        labels=Markup(inert_json({shelf.key: shelf.label for shelf in shelves})),
    )


def inert_json(value: Any) -> str:
    """JSON that can stand in a script element: no `<`, `>` or `&`, nothing beyond ASCII (U+2028 and lone surrogates too)."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def policy(*, style: str, script: str) -> str:
    """A Content-Security-Policy that allows these two texts and nothing else."""

    def source(text: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    return f"default-src 'none'; script-src {source(script)}; style-src {source(style)}; base-uri 'none'; form-action 'none'"


def facts(run: Run) -> list[tuple[str, str]]:
    """What ran, when, with what: whatever of it the run folder says."""
    wanted = {
        "Started": ("started",),
        "Seed": ("seed",),
        "Model": ("model", "base", "architecture"),
        "Platform": ("platform",),
        "CPUs": ("cpus",),
        "Isolation": ("isolation",),
        "thincode": ("thincode",),
        "Commit": ("commit",),
        "Python": ("python",),
        "torch": ("torch",),
    }
    found = {name: next(run.facts(*keys), "") for name, keys in wanted.items()}
    if not found["Started"] and run.begun:
        found["Started"] = f"{run.begun:%Y-%m-%d %H:%M} UTC, by the date of the recipe file"
    total = sum(run.timing.values())
    rows = {"Started": found.pop("Started"), "Took": duration(total) if total else "", **found}
    return [(name, value) for name, value in rows.items() if value]


def published() -> list[tuple[str, str, Table]]:
    """(title, source and protocol, table) of each table of published figures."""
    path = resources.files("thincode") / "recipes" / "published.yaml"
    raw = read_yaml(path.read_text(encoding="utf-8"), place="published.yaml")
    tables = []
    for table in raw["tables"]:
        rows = [
            (row["system"], [Cell("–" if value is None else str(value)) for value in row["values"]])
            for row in table["rows"]
        ]
        notes = "; ".join(f"{row['system']}: {row['note']}" for row in table["rows"] if "note" in row)
        tables.append(
            (
                table["title"],
                f"{table['source']}. {table['protocol']}.",
                Table(["System", *table["columns"]], rows, notes),
            )
        )
    return tables
