"""Grading: integers per second beside math-verify called directly, and what garbage costs.

    python perf/grading.py --out grading.json

1. The same pairs of integer answers go through our grader and through math-verify (`verify(parse(gold), parse(answer))`), in
   turns, in one process; both must give the same verdicts.
2. A thousand garbage answers (`_garbage.py`) against four kinds of gold answers in turn: the slowest, by kind. Nothing may hang,
   raise, or be right.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import random
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from _garbage import answers

from thincode import _environment
from thincode.grading.answers import Grader

GOLDS = ["33", r"\frac{1}{2}", "x^2+1", r"\left( 3, \frac{\pi}{2} \right)"]


def pairs(count: int, *, seed: int) -> list[tuple[str, str]]:
    """(answer, gold): half of them equal, in the dresses that models write."""
    rng = random.Random(seed)
    dresses: list[Callable[[int], str]] = [
        str,
        str,
        str,
        "{:,}".format,
        "${}$".format,
        "\\boxed{{{}}}".format,
        "{}.0".format,
    ]
    found = []
    for number in range(count):
        gold = rng.randrange(-999, 100_000)
        answer = gold if number % 2 else gold + rng.choice([-10, -1, 1, 10])
        found.append((rng.choice(dresses)(answer), str(gold)))
    return found


def rate(judge: Callable[[str, str], bool], asked: Sequence[tuple[str, str]]) -> tuple[float, list[bool]]:
    """Verdicts a second, and the verdicts."""
    began = time.perf_counter()
    verdicts = [judge(answer, gold) for answer, gold in asked]
    return len(asked) / (time.perf_counter() - began), verdicts


def integers(words: argparse.Namespace) -> dict[str, Any]:
    """Ours beside math-verify's, in alternating rounds."""
    from math_verify import parse, verify

    logging.disable(logging.CRITICAL)

    def theirs(answer: str, gold: str) -> bool:
        return bool(verify(parse(f"${gold}$"), parse(answer if "$" in answer or "boxed" in answer else f"${answer}$")))

    with Grader() as grader:

        def ours(answer: str, gold: str) -> bool:
            return grader.grade(answer, gold).correct

        rounds = []
        for number in range(words.rounds):
            small = pairs(words.pairs, seed=number)
            their_rate, their_verdicts = rate(theirs, small)
            _, our_verdicts = rate(ours, small)
            our_rate, _ = rate(ours, pairs(words.pairs * 100, seed=number))
            differ = [pair for pair, a, b in zip(small, our_verdicts, their_verdicts, strict=True) if a != b]
            rounds.append(
                {"ours": our_rate, "math-verify": their_rate, "ratio": our_rate / their_rate, "differ": differ}
            )
    return {
        **{name: statistics.median(one[name] for one in rounds) for name in ("ours", "math-verify", "ratio")},
        "differ": [pair for one in rounds for pair in one["differ"]],
        "rounds": rounds,
    }


def garbage(count: int) -> dict[str, Any]:
    """Seconds of the slowest grade by kind of garbage, and of all of them."""
    slowest: dict[str, float] = {}
    accepted, total = [], 0.0
    with Grader() as grader:
        grader.grade("1+x", "x+1")  # its process starts here, outside any answer's time
        for number, (name, answer) in enumerate(answers(count)):
            gold = GOLDS[number // 10 % len(GOLDS)]
            began = time.perf_counter()
            grade = grader.grade(answer, gold)
            seconds = time.perf_counter() - began
            total += seconds
            slowest[name] = max(slowest.get(name, 0.0), seconds)
            if grade.correct:
                accepted.append((answer[:100], gold))
    return {"answers": count, "slowest_s": slowest, "total_s": total, "accepted": accepted}


def table(found: dict[str, Any]) -> str:
    """What was found, for a terminal."""
    whole, bad = found["integers"], found["garbage"]
    lines = [
        f"integers: {whole['ours']:,.0f}/s, math-verify {whole['math-verify']:,.0f}/s, ratio {whole['ratio']:.0f}, "
        f"verdicts that differ: {len(whole['differ'])}",
        f"garbage: {bad['answers']} answers in {bad['total_s']:.1f} s, taken for right: "
        f"{len(bad['accepted'])}; slowest",
        *(f"  {seconds:6.3f} s  {name}" for name, seconds in sorted(bad["slowest_s"].items(), key=lambda x: -x[1])),
    ]
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> dict[str, Any]:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description="Grading beside math-verify, and what garbage costs.")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write everything measured as JSON")
    parser.add_argument(
        "--pairs", type=int, default=1_000, help="that math-verify grades in a round; ours grade 100 times as many"
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--garbage", type=int, default=1_000)
    words = parser.parse_args(argv)
    found = {
        "machine": {**_environment.environment(), "load_before": os.getloadavg()[0]},
        "integers": integers(words),
        "garbage": garbage(words.garbage),
    }
    print(table(found))
    if words.out is not None:
        words.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return found


if __name__ == "__main__":
    main()
