"""What the layers around a session amount to.

    T3  namespaces, a root file system and a process counter of its own, and everything of T2
    T2  Landlock, a system-call filter, limits, no privileges; as root: a user of its own for each session
    T1  limits alone: code can read, write and connect to whatever its user can
    T0  nothing; by explicit wish only

`docs/interpreter.md` says what each promises and what not.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from ..errors import IsolationError
from ._orders import CLOSED


class Tier(StrEnum):
    """How far sessions are kept apart from the machine; a later one is stronger."""

    T0 = "T0"
    T1 = "T1"
    T2 = "T2"
    T3 = "T3"


NEEDS: dict[Tier, tuple[str, ...]] = {
    Tier.T1: ("process group", "rlimits"),
    Tier.T2: (
        "ordinary user", "process limit", "no capabilities", "no new privileges", "not dumpable", "landlock",
        "own signals", "seccomp", "dies with parent", "adopts orphans",
    ),
    Tier.T3: ("namespaces", "file system", "own namespaces", "disk quota"),
}  # fmt: skip
"""What a tier asks for beyond the one below it."""
ENDS = ("process group", "dies with parent", "adopts orphans")
"""Layers that end a session's processes; they stay where no isolation is wished for."""
NOTHING = tuple(layer for tier in NEEDS.values() for layer in tier if layer not in ENDS)

ADVICE = {
    "namespaces": "allow user namespaces: sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone=1 and, on "
    "Ubuntu, kernel.apparmor_restrict_unprivileged_userns=0; a plain container refuses them and stays at T2",
    "landlock": "a kernel of 5.13 or later with `landlock` among the names in /sys/kernel/security/lsm (boot with lsm=…)",
    "seccomp": "a kernel with CONFIG_SECCOMP_FILTER, on x86_64 or aarch64",
    "ordinary user": "run as an ordinary user (runAsNonRoot), or as root with the capabilities SETUID and SETGID",
    "process limit": "run as an ordinary user, whose processes the kernel counts",
}
"""What to do about a layer that is missing."""


def reached(layers: Mapping[str, str]) -> Tier:
    """The highest tier all of whose layers hold."""
    found = Tier.T0
    for tier in NEEDS:
        if lacking(layers, tier):
            break
        found = tier
    return found


def lacking(layers: Mapping[str, str], tier: Tier) -> dict[str, str]:
    """What `tier` asks for and these layers don't hold, and why."""
    asked = [layer for below, names in NEEDS.items() if below <= tier for layer in names]
    return {layer: layers.get(layer, "was not tried") for layer in asked if layers.get(layer) != "on"}


def advice(layers: Mapping[str, str], tier: Tier) -> list[str]:
    """What to do to reach `tier`, one line a layer that something can be done about."""
    found = []
    for layer, why in lacking(layers, tier).items():
        if CLOSED in why:
            folder = why.partition("(")[2].rstrip(")")
            found.append(f"{layer}: chmod o+x '{folder}', or use a Python that stands where everybody may read it")
        elif layer in ADVICE:
            found.append(f"{layer}: {ADVICE[layer]}")
    return found


def demand(layers: Mapping[str, str], tier: Tier | None) -> Tier:
    """See to it that sessions are as isolated as they must be.

    Args:
        layers: layer → `on`, or why not.
        tier: the least that will do; None: whatever the machine gives, except where the only obstacle is a folder that
            root closed, or where there is nothing at all.

    Returns:
        What was reached.

    Raises:
        IsolationError: less; the message says what is missing and what to do.
    """
    found = reached(layers)
    closed = any(CLOSED in why for why in layers.values())
    least = tier or (Tier.T2 if closed else Tier.T1)
    if found >= least:
        return found
    missing = "; ".join(f"{layer} ({why})" for layer, why in lacking(layers, least).items())
    steps = [*advice(layers, least), f"or accept less: interpreter.backend.tier={found}"]
    raise IsolationError(
        f"sessions are isolated by tier {found} here, and {'the recipe asks for' if tier else 'this needs'} {least}; "
        f"missing: {missing}. What to do: {'; '.join(steps)}. `thincode doctor` shows every layer"
    )
