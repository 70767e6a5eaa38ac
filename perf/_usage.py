"""What a piece of work costs the machine: CPU seconds of all its processes, memory of the whole system."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

GROUPS = (("/sys/fs/cgroup/cpuacct", "cpuacct.usage"), ("/sys/fs/cgroup", "cpu.stat"))
"""Where CPU time is counted for a group of processes, the dead ones included: version 1 and version 2."""


class Cpu:
    """CPU seconds of this process and everything it starts from now on; of the whole machine where groups can't be made."""

    def __init__(self) -> None:
        self.how = "of the whole machine: no control group can be made here"
        self._file = Path("/proc/stat")
        for root, name in GROUPS:
            with contextlib.suppress(OSError):
                folder = Path(tempfile.mkdtemp(prefix=f"thincode-perf-{os.getpid()}-", dir=root))
                (folder / "cgroup.procs").write_text(str(os.getpid()))
                seconds((folder / name).read_text())
                self._file, self.how = folder / name, f"of a group of its own ({root})"
                return

    def read(self) -> float:
        """Seconds so far."""
        return seconds(self._file.read_text())

    @contextlib.contextmanager
    def of(self, into: dict[str, float], name: str = "cpu_s") -> Iterator[None]:
        """Put what the body takes into a record."""
        before = self.read()
        yield
        into[name] = self.read() - before


def seconds(counted: str) -> float:
    """CPU seconds in a file that counts them: nanoseconds alone, `usage_usec`, or the clock ticks of /proc/stat."""
    if counted.startswith("cpu "):
        user, nice, system = (int(word) for word in counted.split(maxsplit=4)[1:4])
        return (user + nice + system) / os.sysconf("SC_CLK_TCK")
    if "usage_usec " in counted:
        return int(counted.split("usage_usec ")[1].split()[0]) / 1e6
    return int(counted) / 1e9


def remove_groups(pid: int) -> None:
    """Remove the groups of a process that has ended, as soon as what it started has."""
    for root, _ in GROUPS:
        for folder in Path(root).glob(f"thincode-perf-{pid}-*"):
            for _ in range(20):
                with contextlib.suppress(OSError):
                    folder.rmdir()
                    break
                time.sleep(0.1)


def available_mib() -> float:
    """What the system could still hand out."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("/proc/meminfo names no MemAvailable")


def settled_mib(*, seconds: float = 5.0) -> float:
    """The same once it stays within 1 MiB for a quarter of a second, or after so many seconds."""
    end, last = time.monotonic() + seconds, available_mib()
    while time.monotonic() < end:
        time.sleep(0.25)
        now = available_mib()
        if abs(now - last) < 1:
            return now
        last = now
    return last


def returned_mib(before: float, *, seconds: float = 60.0) -> float:
    """What could be handed out once it is within 16 MiB of `before` again, or after so many seconds: processes end in time."""
    end = time.monotonic() + seconds
    while available_mib() < before - 16 and time.monotonic() < end:
        time.sleep(0.25)
    return settled_mib()
