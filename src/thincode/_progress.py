"""How far a long piece of work has come, and an honest estimate of the time left."""

from __future__ import annotations

import json
import math
import shutil
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Self, TextIO

_WINDOW_S = 60.0
_KEPT = 0.8  # of what was learned of the pace, at most this share is forgotten with one slow advance


class _Pace:
    """Seconds a unit has taken of late: about the last minute, or the last five advances where they are slower."""

    def __init__(self, now: float) -> None:
        self._last = now
        self._units = 0.0
        self._seconds = 0.0
        self._advances = 0

    def advance(self, units: float, now: float) -> None:
        passed = now - self._last
        keep = max(math.exp(-passed / _WINDOW_S), _KEPT)
        self._units = keep * self._units + units
        self._seconds = keep * self._seconds + passed
        self._last = now
        self._advances += 1

    def unit_s(self, now: float) -> float | None:
        """None until two advances were seen: the first one holds the start-up."""
        if self._advances < 2 or self._units <= 0 or self._seconds <= 0:
            return None
        waiting = now - self._last
        usual = self._seconds / self._units
        # A unit that takes longer than usual counts before it is done, so that a stall shows.
        return usual if waiting <= usual else (self._seconds + waiting) / (self._units + 1)

    def left_s(self, units: float, now: float) -> float | None:
        unit_s = self.unit_s(now)
        if unit_s is None:
            return None
        return max(0.0, units * unit_s - min(now - self._last, unit_s)) if units > 0 else 0.0


def duration(seconds: float | None) -> str:
    """`47 s`, `4 min 05 s`, `2 h 05 min`, `3 d 4 h`; `?` for what is not known."""
    if seconds is None:
        return "?"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    minutes = whole // 60
    if minutes < 24 * 60:
        return f"{minutes // 60} h {minutes % 60:02} min"
    return f"{minutes // 1440} d {minutes % 1440 // 60} h"


class Progress:
    """Shows how far work has come, on standard error.

        with Progress("rl-1", total=280, unit="steps") as progress:
            progress.advance(1, reward=0.41)

    On a terminal it is one live line; elsewhere a line every `every_s` seconds and one at the end; with `json` those lines
    are JSON objects (`progress`, `done`, `total`, `unit`, `elapsed_s`, `left_s`, `state`, `figures`). The time left follows
    the recent pace and is `?` (null) until two advances were seen, or where there is no total.
    """

    def __init__(
        self,
        name: str,
        *,
        total: int | None,
        unit: str,
        done: int = 0,
        quiet: bool = False,
        json: bool = False,
        every_s: float = 30.0,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Nothing is shown before `with`.

        Args:
            name: what is going on, for example `rl-1`.
            total: units of work in all; None if nobody knows.
            unit: a plural noun.
            done: units done by an earlier process.
            quiet: show nothing.
            json: write JSON lines.
            every_s: seconds between lines where there is no terminal.
            stream: where to write; standard error if None.
            clock: seconds that never go back.
        """
        self.name, self.total, self.unit, self.done = name, total, unit, done
        self._quiet, self._json, self._every_s = quiet, json, every_s
        self._stream = sys.stderr if stream is None else stream
        self._live = not quiet and not json and self._stream.isatty()
        self._clock = clock
        self._start = clock()
        self._pace = _Pace(self._start)
        self._figures: dict[str, Any] = {}
        self._lock = threading.Lock()
        self._end = threading.Event()
        self._ticker = threading.Thread(target=self._tick, name=f"progress {name}", daemon=True)

    def advance(self, units: int = 1, **figures: Any) -> None:
        """Count `units` as done; `figures` are shown beside, the latest of each name."""
        with self._lock:
            self.done += units
            self._pace.advance(units, self._clock())
            self._figures.update(figures)

    def say(self, text: str) -> None:
        """Print a line of its own without spoiling the live one."""
        if not self._quiet and not self._json:
            with self._lock:
                self._write(f"\r\x1b[K{text}\n" if self._live else f"{text}\n")

    @property
    def left_s(self) -> float | None:
        """Estimated seconds left; None while unknown."""
        return None if self.total is None else self._pace.left_s(self.total - self.done, self._clock())

    def record(self, state: str = "running") -> dict[str, Any]:
        """What a JSON line holds; `state` is `running`, `done` or `stopped`."""
        left_s = self.left_s
        return {
            "progress": self.name,
            "done": self.done,
            "total": self.total,
            "unit": self.unit,
            "elapsed_s": round(self._clock() - self._start, 1),
            "left_s": None if left_s is None else round(left_s, 1),
            "state": state,
            "figures": dict(self._figures),
        }

    def line(self, state: str = "running") -> str:
        """The same for people."""
        count = f"{self.done}" if self.total is None else f"{self.done}/{self.total}"
        parts = [self.name, f"{count} {self.unit}"]
        if state == "running":
            if self.total:
                parts.append(f"{100 * self.done // self.total} %")
            unit_s = self._pace.unit_s(self._clock())
            if unit_s is not None:
                parts.append(f"{1 / unit_s:.3g}/s" if unit_s < 1 else f"{duration(unit_s)} each")
            if self.total is not None:
                parts.append(f"left {duration(self.left_s)}")
        else:
            parts.append(f"{state} after {duration(self._clock() - self._start)}")
        parts += [
            f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
            for name, value in self._figures.items()
        ]
        return "  ".join(parts)

    def __enter__(self) -> Self:
        if not self._quiet:
            self._ticker.start()
        return self

    def __exit__(self, kind: object, *details: object) -> None:
        if self._quiet:
            return
        self._end.set()
        self._ticker.join()
        self._show("done" if kind is None else "stopped")

    def _tick(self) -> None:
        while not self._end.wait(0.5 if self._live else self._every_s):
            self._show("running")

    def _show(self, state: str) -> None:
        with self._lock:
            if self._json:
                self._write(json.dumps(self.record(state), ensure_ascii=False, default=str) + "\n")
            elif self._live:
                width = shutil.get_terminal_size().columns - 1
                self._write(f"\r\x1b[K{self.line(state)[:width]}" + ("" if state == "running" else "\n"))
            else:
                self._write(self.line(state) + "\n")

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            self._quiet = True  # nobody listens anymore; the work goes on
