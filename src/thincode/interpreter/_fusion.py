"""SandboxFusion's `POST /run_code`, answered by a session: its fields and status names, as its public client reads them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import InfrastructureError, RecipeError
from ..settings import parse, settings
from . import BlockResult, Interpreter, Limits, Status, _script

LANGUAGES = ("python",)
OUTPUT_CHARS = 1 << 26
"""Of the report, which holds both streams and the fetched files; the disk quota bounds it before this does."""
MARGIN_S = 10.0
"""Upload, start and report, beside the program's own time."""


@settings
class RunCode:
    """The fields of a request that mean something here; others (`args` is pytest's) are ignored."""

    code: str
    language: str
    stdin: str | None = None
    files: dict[str, str | None]
    """Path below the program's folder → content in base64."""
    fetch_files: tuple[str, ...] = ()
    run_timeout: float = 10.0
    """Seconds of wall time."""
    memory_limit_MB: int = -1  # noqa: N815 - SandboxFusion's name
    """Counted beyond what Python and the preload take; -1 is the server's own limit."""


def read(body: Mapping[str, Any], most: Limits) -> RunCode:
    """A request, checked against what the server allows.

    Raises:
        RecipeError: a field is missing or of the wrong type, no such language here, more asked for than there is.
    """
    fields = {name: value for name, value in body.items() if name in RunCode.__dataclass_fields__}
    asked = parse(RunCode, {"files": {}, **fields})
    if asked.language not in LANGUAGES:
        raise RecipeError(f"language: {asked.language!r} is not offered here; offered: {', '.join(LANGUAGES)}")
    if not 0 < asked.run_timeout <= most.wall_s:
        raise RecipeError(
            f"run_timeout: {asked.run_timeout:g} is outside 0 to {most.wall_s:g} s, the most this server gives; "
            "ask for less, or start it with a larger most.wall_s"
        )
    if asked.memory_limit_MB > most.memory_mib:
        raise RecipeError(
            f"memory_limit_MB: {asked.memory_limit_MB} is above {most.memory_mib}, the most this server gives; "
            "ask for less, or start it with a larger most.memory_mib"
        )
    return asked


def limits(asked: RunCode, most: Limits) -> Limits:
    """Those of the session that runs the program: time is the program's own affair, the session's is a backstop."""
    memory = asked.memory_limit_MB if asked.memory_limit_MB > 0 else most.memory_mib
    backstop = most.wall_s + MARGIN_S
    return Limits(
        cpu_s=backstop, wall_s=backstop, memory_mib=memory, output_chars=OUTPUT_CHARS, processes=most.processes,
        disk_mib=most.disk_mib, files=most.files, grace_s=most.grace_s,
    )  # fmt: skip


async def answer(asked: RunCode, interpreter: Interpreter) -> dict[str, Any]:
    """Run the program in a fresh session.

    Returns:
        SandboxFusion's response; `SandboxError` is our failure and no word about the program.
    """
    order = json.dumps(
        {name: getattr(asked, name) for name in ("code", "stdin", "files", "fetch_files", "run_timeout")}
    )
    source = Path(_script.__file__).read_text(encoding="utf-8")
    try:
        async with await interpreter.session() as session:
            result = await session.run(f"{source}\n\nmain({order!r})\n")
    except InfrastructureError as error:
        return response("SandboxError", str(error))
    return told(result)


def told(result: BlockResult) -> dict[str, Any]:
    """The block's result as a response: its output is the script's report, unless the program ended its own session."""
    if result.status is Status.OK:
        try:
            report = json.loads(result.output)
        except ValueError:  # it wrote over the report
            result = replace(result, status=Status.LIMIT, detail="tampered")
    if result.status is Status.OK:
        files, code = report.pop("files"), report["return_code"]
        run = {"status": "TimeLimitExceeded" if code is None else "Finished", **report}
        return response("Success" if code == 0 else "Failed", run=run, files=files)
    if result.status is Status.LIMIT:
        kind = "TimeLimitExceeded" if result.detail == "time" else "Finished"
        code = None if result.detail == "time" else -9
        run = {
            "status": kind,
            "return_code": code,
            "execution_time": result.wall_s,
            "stdout": "",
            "stderr": result.output,
        }
        return response("Failed", run=run)
    return response("SandboxError", result.output or result.detail)


def response(
    status: str, message: str = "", *, run: dict[str, Any] | None = None, files: dict[str, str] | None = None
) -> dict[str, Any]:
    """All fields of a response; Python compiles nothing ahead."""
    return {
        "status": status,
        "message": message,
        "compile_result": None,
        "run_result": run,
        "executor_pod_name": None,
        "files": files or {},
    }
