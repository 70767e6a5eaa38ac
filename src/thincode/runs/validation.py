"""What RL is validated on, and the figures of one validation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any

from ..problems import Problem
from . import health
from .recipe import ValidationSettings
from .rollouts import Scored
from .workshop import load_problems


def problems(section: ValidationSettings) -> dict[str, Problem]:
    """By id: a suite's benchmarks in its order, or the section's own problems."""
    if section.suite is None:
        found = load_problems(section.problems)
    else:
        parts = section.suite.module.parts(section.suite.settings)
        found = [problem for part in parts for problem in part.benchmark.module.load(part.benchmark.settings)]
    return {problem.id: problem for problem in found}


def figures(section: ValidationSettings, scored: Sequence[Scored]) -> dict[str, Any]:
    """See `health.of_validation`; of a suite also each benchmark's accuracy, and `accuracy` is their unweighted mean."""
    pairs = [(one.graded, one.reward) for one in scored]
    found = health.of_validation(pairs)
    if section.suite is None:
        return found
    parts: Mapping[str, float | None] = {
        name: health.of_validation([pair for pair in pairs if pair[0].problem.tags["benchmark"] == name])["accuracy"]
        for name in dict.fromkeys(pair[0].problem.tags["benchmark"] for pair in pairs)
    }
    known = [accuracy for accuracy in parts.values() if accuracy is not None]
    found["accuracy"] = mean(known) if known else None
    return found | {f"accuracy/{name}": accuracy for name, accuracy in parts.items()}
