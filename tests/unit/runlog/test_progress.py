"""Progress tells the truth: unknown is `?`, a stall shows, nothing spoils standard output."""

from __future__ import annotations

import contextlib
import io
import json

import pytest

from thincode.runlog import Progress, duration


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def made(total: int | None, *, done: int = 0) -> tuple[Progress, Clock]:
    clock = Clock()
    return Progress("rl-1", total=total, unit="steps", done=done, stream=io.StringIO(), clock=clock), clock


def advance(progress: Progress, clock: Clock, *seconds: float) -> None:
    for passed in seconds:
        clock.now += passed
        progress.advance(1)


LEFT: list[tuple[int | None, list[float], float, float | None]] = [
    (10, [], 5, None),
    (10, [3], 0, None),
    (10, [3, 3], 0, 24),
    (10, [3, 3], 2, 22),
    (10, [3, 3], 3, 21),
    (2, [3, 3], 9, 0),
    (2, [3, 3, 3], 0, 0),
    (None, [3, 3, 3], 0, None),
    (1000, [0, 0, 0], 0, None),
]


@pytest.mark.parametrize(("total", "seconds", "waiting", "left"), LEFT)
def test_time_left_is_a_table(total: int | None, seconds: list[float], waiting: float, left: float | None) -> None:
    progress, clock = made(total)
    advance(progress, clock, *seconds)
    clock.now += waiting
    assert progress.left_s == (None if left is None else pytest.approx(left))


def test_the_recent_pace_counts_more_than_the_old_one() -> None:
    progress, clock = made(120)
    advance(progress, clock, *[1.0] * 50, *[10.0] * 20)
    assert progress.left_s == pytest.approx(50 * 10, rel=0.15)


def test_many_quick_advances_are_smoothed() -> None:
    progress, clock = made(10_000)
    advance(progress, clock, *[0.01, 0.03] * 2000)
    assert progress.left_s == pytest.approx(6000 * 0.02, rel=0.02)


def test_a_stall_shows_before_it_ends() -> None:
    progress, clock = made(10)
    advance(progress, clock, 2, 2, 2)
    before = progress.left_s
    clock.now += 100
    assert before is not None
    assert progress.left_s is not None
    assert progress.left_s > 5 * before


def test_a_resumed_run_learns_its_pace_from_this_process() -> None:
    progress, clock = made(280, done=200)
    advance(progress, clock, 5, 5)
    assert progress.left_s == pytest.approx(78 * 5)


def test_the_line_says_what_people_ask() -> None:
    progress, clock = made(280)
    assert progress.line() == "rl-1  0/280 steps  0 %  left ?"
    advance(progress, clock, 30, 30)
    progress.advance(0, reward=0.412345, kept=7)
    assert progress.line() == "rl-1  2/280 steps  0 %  30 s each  left 2 h 19 min  reward 0.4123  kept 7"
    assert progress.line("stopped") == "rl-1  2/280 steps  stopped after 1 min 00 s  reward 0.4123  kept 7"


def test_without_a_total_it_only_counts() -> None:
    progress, clock = made(None)
    advance(progress, clock, 0.1, 0.1)
    assert progress.line() == "rl-1  2 steps  10/s"


def test_away_from_a_terminal_lines_come_seldom_and_once_at_the_end() -> None:
    stream = io.StringIO()
    with Progress("sft", total=3, unit="steps", stream=stream) as progress:
        for _ in range(3):
            progress.advance()
        progress.say("checkpoint at step 3")
    said, last = stream.getvalue().splitlines()
    assert said == "checkpoint at step 3"
    assert last.startswith("sft  3/3 steps  done after ")


def test_json_lines_parse_and_name_how_it_ended() -> None:
    stream = io.StringIO()
    progress = Progress("sft", total=3, unit="steps", stream=stream, json=True)
    with contextlib.suppress(KeyboardInterrupt), progress:
        progress.advance(1, loss=1.5)
        progress.say("not JSON")
        raise KeyboardInterrupt
    (line,) = stream.getvalue().splitlines()
    record = json.loads(line)
    assert record["state"] == "stopped"
    assert (record["progress"], record["done"], record["total"], record["unit"]) == ("sft", 1, 3, "steps")
    assert record["left_s"] is None
    assert record["figures"] == {"loss": 1.5}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_one_line_is_rewritten_and_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    stream = Terminal()
    with Progress("a-stage-with-a-long-name", total=3, unit="trajectories", stream=stream) as progress:
        progress.advance(1, reward=0.5)
        progress.say("note")
    text = stream.getvalue()
    assert text.count("\n") == 2
    assert all(len(piece.rstrip("\n")) <= 29 for piece in text.split("\r\x1b[K"))


def test_quiet_says_nothing() -> None:
    stream = Terminal()
    with Progress("sft", total=3, unit="steps", stream=stream, quiet=True) as progress:
        progress.advance()
        progress.say("nothing")
    assert stream.getvalue() == ""


def test_a_closed_stream_does_not_end_the_work() -> None:
    stream = io.StringIO()
    with Progress("sft", total=3, unit="steps", stream=stream) as progress:
        stream.close()
        progress.advance()
        progress.say("x")
    assert progress.done == 1


DURATIONS = [(None, "?"), (0, "0 s"), (59.4, "59 s"), (60, "1 min 00 s"), (3599.4, "59 min 59 s"), (3600, "1 h 00 min")]


@pytest.mark.parametrize(("seconds", "text"), [*DURATIONS, (86_399, "23 h 59 min"), (187_200, "2 d 4 h")])
def test_durations_read_well(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text
