"""The process that compares two expressions with math-verify. Run by its path; reads and writes one JSON line a question.

The kernel kills it when one question burns its CPU seconds: the timer's signal keeps its default action, so that code
stuck in C is killed too. It ends by itself when its owner is gone.
"""

from __future__ import annotations

import json
import logging
import resource
import signal
import sys
from typing import Any


def _parsed(text: str) -> Any:
    from math_verify import LatexExtractionConfig, parse

    config = LatexExtractionConfig(boxed_match_priority=-1)
    found = parse(f"${text}$", [config], fallback_mode="no_fallback", parsing_timeout=None)
    return found[0] if len(found) == 1 else None


def _equal(gold: str, answer: str) -> bool | None:
    """Whether `answer` equals `gold` (the order matters); None if one of them can't be read."""
    from math_verify import verify

    try:
        left, right = _parsed(gold), _parsed(answer)
        if left is None or right is None:
            return None
        return bool(verify(left, right, strict=True, timeout_seconds=None))
    except (Exception, RecursionError, MemoryError):
        return None


def main() -> None:
    """Answer questions until standard input ends."""
    cpu_s, memory_mib = float(sys.argv[1]), int(sys.argv[2])
    logging.disable(logging.CRITICAL)
    _equal("x^2+1", "1+x^2")  # loads sympy and builds the parser's tables, outside any question's time
    limit = memory_mib << 20
    with_hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (limit, with_hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    print("ready", flush=True)
    for line in sys.stdin:
        gold, answer = json.loads(line)
        signal.setitimer(signal.ITIMER_PROF, cpu_s)
        equal = _equal(gold, answer)
        signal.setitimer(signal.ITIMER_PROF, 0)
        print(json.dumps(equal), flush=True)


if __name__ == "__main__":
    main()
