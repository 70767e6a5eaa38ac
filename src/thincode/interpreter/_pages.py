"""Large pages under what every session shares: a fork then copies one table entry where it copied 512.

Forking the warm zygote is mostly copying page tables, twice a session. A page that a session writes to is still copied
alone: the kernel splits the large page's entry in the session that writes, not the page.
"""

from __future__ import annotations

import ctypes
import os
import sys

LARGE = 2 << 20
COLLAPSE = 25
"""madvise: make a large page of the small ones now (Linux 6.1)."""


def enlarge(procfs: int) -> int:
    """Collapse this process's private memory where the kernel can; what it can't stays as it is.

    Args:
        procfs: descriptor of /proc.

    Returns:
        Large pages made.
    """
    if sys.platform != "linux":
        return 0
    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    made = 0
    for line in _maps(procfs).splitlines():
        span, access, _offset, _device, inode, *_name = line.split()
        if access != "rw-p" or inode != "0":
            continue
        start, end = (int(address, 16) for address in span.split("-"))
        for address in range(-(-start // LARGE) * LARGE, end - LARGE + 1, LARGE):
            made += madvise(address, LARGE, COLLAPSE) == 0
    return made


def _maps(procfs: int) -> str:
    with os.fdopen(os.open("self/maps", os.O_RDONLY | os.O_CLOEXEC, dir_fd=procfs)) as file:
        return file.read()
