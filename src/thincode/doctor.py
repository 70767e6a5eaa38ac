"""What this machine has and lacks: `thincode doctor`."""

from __future__ import annotations

import importlib
import importlib.util
import os
import platform
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ._environment import commit, cpus, requirements, thincode_version, versions
from .interpreter.doctor import probe, probe_gp


def report(*, runs: Path = Path("runs")) -> dict[str, Any]:
    """Everything `lines` shows, as plain values (JSON).

    Args:
        runs: folder that runs are written under; it need not exist yet.

    Imports torch if it is installed, to see its devices.
    """
    extras = {name: extra for name, extra in requirements().items() if extra != "dev"}
    found = versions(extras)
    interpreter, gp = probe(), probe_gp()  # before torch: what they start must not inherit torch's threads
    return {
        "thincode": thincode_version(),
        "commit": commit(),
        "python": platform.python_version(),
        "executable": sys.executable,
        "platform": platform.platform(),
        "machine": platform.machine(),
        "cpus": cpus(),
        "memory_gib": _memory_gib(),
        "disk": _disk(runs),
        "packages": {name: {"version": found[name], "extra": extra} for name, extra in sorted(extras.items())},
        "devices": _devices(),
        "gp": gp,
        **interpreter,
    }


def lines(report: Mapping[str, Any]) -> list[str]:
    """The report for people; what is missing comes with the command that brings it."""
    built = f" ({report['commit']})" if report["commit"] else ""
    disk = report["disk"]
    shown = [
        f"thincode     {report['thincode']}{built}",
        f"python       {report['python']}  {report['executable']}",
        f"platform     {report['platform']}",
        f"cpus         {report['cpus']}",
        f"memory       {_or_unknown(report['memory_gib'], 'GiB')}",
        f"disk         {disk['free_gib']:.1f} GiB free at {disk['path']}"
        + ("" if disk["writable"] else ", not writable"),
    ]
    if report["devices"] is None:
        shown.append("torch        not installed; training needs it: pip install 'thincode[train]'")
    else:
        shown += [f"device       {device}" for device in report["devices"]]
    gp = report["gp"]
    shown.append(f"PARI/GP      {gp['version']}  {gp['library']}" if "version" in gp else f"PARI/GP      {gp['error']}")
    missing: dict[str, list[str]] = {}
    for name, package in report["packages"].items():
        if package["version"] is None:
            missing.setdefault(package["extra"], []).append(name)
        else:
            shown.append(f"package      {name} {package['version']}")
    for extra, names in missing.items():
        target = f"thincode[{extra}]" if extra else "thincode"
        shown.append(f"missing      {', '.join(names)}: pip install '{target}'")
    return shown + _isolation_lines(report)


def _isolation_lines(report: Mapping[str, Any]) -> list[str]:
    """The tier, each layer, each forbidden thing that was tried, and what would give a better tier."""
    refused = [name for name, came in report["attempts"].items() if came != "open"]
    return [
        f"isolation    tier {report['tier']}" + (f": {report['error']}" if "error" in report else ""),
        *(f"layer        {name}: {state}" for name, state in report["layers"].items()),
        *(f"refused      {name}" for name in refused),
        *(f"POSSIBLE     {name}" for name in report["open"]),
        *(f"better tier  {step}" for step in report["advice"]),
    ]


def _or_unknown(value: float | None, unit: str) -> str:
    return "unknown" if value is None else f"{value:.1f} {unit}"


def _memory_gib() -> float | None:
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return None
    try:  # inside a container the smaller of the two counts
        limit = Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii").strip()
        total = min(total, int(limit))
    except (OSError, ValueError):
        pass
    return round(total / 2**30, 2)


def _disk(runs: Path) -> dict[str, Any]:
    folder = runs.absolute()
    while not folder.exists():
        folder = folder.parent
    return {
        "path": str(folder),
        "free_gib": round(shutil.disk_usage(folder).free / 2**30, 2),
        "writable": os.access(folder, os.W_OK),
    }


def _devices() -> list[str] | None:
    """Names of torch's devices, the CPU last; None without torch."""
    if importlib.util.find_spec("torch") is None:
        return None
    torch = importlib.import_module("torch")
    found = []
    if torch.cuda.is_available():
        for index in range(torch.cuda.device_count()):
            card = torch.cuda.get_device_properties(index)
            found.append(f"cuda:{index} {card.name}, {card.total_memory / 2**30:.0f} GiB")
    if torch.backends.mps.is_available():
        found.append("mps")
    return [*found, f"cpu, {torch.get_num_threads()} threads"]
