"""The process that compares two expressions with math-verify. Run by its path; reads and writes one JSON line a question.

    [gold, answer, CPU seconds allowed]  →  [true, false or null; CPU seconds used]
                                            ["time_limit" or "crash"; CPU seconds allowed]

It loads sympy once and forks a child that answers. The kernel kills the child when one question burns its CPU seconds: the
timer's signal keeps its default action, so that code stuck in C is killed too. The next child is there in milliseconds. Both
end by themselves when their owner is gone.
"""

from __future__ import annotations

import json
import logging
import os
import resource
import signal
import sys
import time
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


def _serve() -> None:
    """The child: answers questions until standard input ends."""
    while line := os.read(0, 65_536):
        while not line.endswith(b"\n"):  # one question is in flight at a time, so its end is the end of what was sent
            line += os.read(0, 65_536)
        gold, answer, cpu_s = json.loads(line)
        began = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, cpu_s)
        equal = _equal(gold, answer)
        signal.setitimer(signal.ITIMER_PROF, 0)
        _say([equal, time.process_time() - began])


def _say(words: Any) -> None:
    print(json.dumps(words), flush=True)


def main() -> None:
    """Fork a child after another until standard input ends."""
    memory_mib = int(sys.argv[1])
    logging.disable(logging.CRITICAL)
    _equal("x^2+1", "1+x^2")  # loads sympy and builds the parser's tables, outside any question's time
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    _say("ready")
    while True:
        child = os.fork()
        if child == 0:
            resource.setrlimit(resource.RLIMIT_AS, (memory_mib << 20, resource.getrlimit(resource.RLIMIT_AS)[1]))
            try:
                _serve()
            finally:
                os._exit(0)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if code == 0:
            return
        _say(["time_limit" if code == -signal.SIGPROF else "crash", None])


if __name__ == "__main__":
    main()
