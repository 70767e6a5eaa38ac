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
from ..settings import write_yaml
from ._math import Formulas
from ._published import published
from ._read import Run, read_runs
from ._records import Shelf, places, read_shelves
from ._sections import build_sections, environment_rows, time_split

SCRIPTS = ("page.js", "reader.js", "browser.js")


def write(folders: Sequence[Path], out: Path | None, *, limit_bytes: int) -> Path:
    """See `thincode.report.build`."""
    run = read_runs(folders)
    formulas = Formulas()
    shelves = read_shelves(places(folders, run.checkpoints), formulas, limit_bytes=limit_bytes)
    target = out or folders[0] / "report.html"
    # A lone surrogate in a name must not cost the page.
    atomic.write_bytes(target, render(run, shelves, formulas).encode("utf-8", "replace"))
    return target


def render(run: Run, shelves: Sequence[Shelf], formulas: Formulas, *, live: str = "") -> str:
    """The whole page as text.

    Args:
        run: what sections show.
        shelves: trajectories; on a page that is served, rows without their segments.
        formulas: of these trajectories.
        live: what `version` of the server says now; empty for a page that stands alone.
    """
    import jinja2

    page = resources.files(__package__) / "page"
    style, *scripts = ((page / name).read_text(encoding="utf-8") for name in ("style.css", *SCRIPTS))
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    template = environment.from_string((page / "page.html.j2").read_text(encoding="utf-8"))
    # The page opens on the last checkpoint: that is what people come to see.
    opens = next((c.key for c in reversed(run.checkpoints) if any(c.key == shelf.key for shelf in shelves)), "")
    settings = {"labels": {shelf.key: shelf.label for shelf in shelves}, "opens": opens, "live": live}
    return template.render(
        run=run,
        facts=facts(run),
        sections=build_sections(run),
        time=time_split(run),
        shelves=shelves,
        sampled=sum(len(s.rows) for s in shelves) < sum(s.total for s in shelves),
        live=live,
        published=published(run),
        recipe=write_yaml(dict(run.recipe)) if run.recipe else "",
        environment=environment_rows(run.environment),
        policy=policy(style=style, scripts=scripts, live=bool(live)),
        style=Markup(style),
        scripts=[Markup(script) for script in scripts],
        data=Markup(inert_json([row for shelf in shelves for row in shelf.rows])),
        formulas=Markup(inert_json(formulas.trees)),
        settings=Markup(inert_json(settings)),
    )


def inert_json(value: Any) -> str:
    """JSON that can stand in a script element: no `<`, `>` or `&`, nothing beyond ASCII (U+2028 and lone surrogates too)."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def policy(*, style: str, scripts: Sequence[str], live: bool = False) -> str:
    """A Content-Security-Policy that allows these texts and nothing else; a served page may ask its own server."""

    def source(text: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    allowed = " ".join(source(script) for script in scripts)
    connect = "connect-src 'self'; " if live else ""
    return f"default-src 'none'; script-src {allowed}; style-src {source(style)}; {connect}base-uri 'none'; form-action 'none'"


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
    found["Commit"] = found["Commit"][:12]
    total = sum(run.timing.values())
    rows = {"Started": found.pop("Started"), "Took": duration(total) if total else "", **found}
    return [(name, value) for name, value in rows.items() if value]
