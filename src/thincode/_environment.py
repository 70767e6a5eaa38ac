"""What a run ran with: versions, machine, commit, command line. Reads metadata only; imports nothing heavy."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib import import_module, metadata
from pathlib import Path
from typing import Any


def thincode_version() -> str:
    """Of the code that runs, which need not be the installed one."""
    return str(import_module(__package__).__version__)


def requirements() -> dict[str, str]:
    """Every package that thincode names, with the extra it belongs to (empty for a plain dependency)."""
    try:
        lines = metadata.requires("thincode") or []
    except metadata.PackageNotFoundError:
        return {}
    found: dict[str, str] = {}
    for line in lines:
        name = re.match(r"[\w.-]+", line)
        extra = re.search(r"""extra\s*==\s*['"]([\w-]+)['"]""", line)
        if name:
            found.setdefault(name[0], extra[1] if extra else "")
    return found


def versions(packages: Mapping[str, str]) -> dict[str, str | None]:
    """The installed version of each package; None for a missing one."""
    found: dict[str, str | None] = {}
    for name in packages:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = None
    return found


def cpus() -> int:
    """CPUs this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def commit() -> str | None:
    """The commit of the checkout thincode runs from, `-dirty` behind it if files differ; None when it is installed."""
    here = Path(__file__).parent
    try:
        subprocess.run(
            ["git", "ls-files", "--error-unmatch", "__init__.py"], cwd=here, check=True, capture_output=True, timeout=10
        )
        described = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"],
            cwd=here,
            check=True,
            capture_output=True,
            timeout=10,
            text=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return described.stdout.strip()


_SECRET_NAME = re.compile(r"(?:^|[._-])(?:api_?key|key|token|secret|password|passwd|authorization)$", re.IGNORECASE)


def without_secrets(arguments: Sequence[str]) -> list[str]:
    """A command line with the values of keys, tokens and passwords replaced by `***`."""
    shown = []
    hide_next = False
    for argument in arguments:
        name, equals, _ = argument.partition("=")
        secret = bool(_SECRET_NAME.search(name.replace("api-key", "api_key")))
        if hide_next:
            shown.append("***")
        elif secret and equals:
            shown.append(f"{name}=***")
        else:
            shown.append(re.sub(r"//[^/@\s]+@", "//***@", argument))
        hide_next = secret and not equals and argument.startswith("--")
    return shown


def environment(*, tier: str | None = None) -> dict[str, Any]:
    """What `environment.json` holds of this process; `tier` is the interpreter's isolation, where a run has one."""
    names = {name: extra for name, extra in requirements().items() if extra != "dev"}
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "thincode": thincode_version(),
        "commit": commit(),
        "versions": {name: version for name, version in versions({"torch": "", **names}).items() if version},
        "python": platform.python_version(),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "cpus": cpus(),
        "isolation": tier,
        "argv": without_secrets(sys.argv),
    }
