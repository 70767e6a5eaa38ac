"""Teach language models to think in code: one plan, then blocks that a stateful Python interpreter runs.

Everything here is imported when first used, so that `import thincode` stays light (no torch, no pydantic).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "Problem": "problems",
    "Trajectory": "trajectory",
    "Segment": "trajectory",
    "EndReason": "trajectory",
    "Interpreter": "interpreter.alone",
    "BlockResult": "interpreter",
    "Limits": "interpreter",
    "Engine": "engines",
    "Budget": "rollout",
    "Grade": "grading",
    "Estimate": "evaluation",
    "Scorecard": "evaluation",
    "ThincodeError": "errors",
}

__all__ = [*sorted(_HOME), "__version__"]

if TYPE_CHECKING:
    from .engines import Engine as Engine
    from .errors import ThincodeError as ThincodeError
    from .evaluation import Estimate as Estimate
    from .evaluation import Scorecard as Scorecard
    from .grading import Grade as Grade
    from .interpreter import BlockResult as BlockResult
    from .interpreter import Limits as Limits
    from .interpreter.alone import Interpreter as Interpreter
    from .problems import Problem as Problem
    from .rollout import Budget as Budget
    from .trajectory import EndReason as EndReason
    from .trajectory import Segment as Segment
    from .trajectory import Trajectory as Trajectory


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f".{_HOME[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
