"""The process between client and zygote: it ends everything when the client goes, and cleans up. It runs no model code.

It is started by exec (see `_orders.command`), so that nothing of the client comes along: no threads, no torch, no environment.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import sys
import traceback

from . import _isolation as isolation
from . import _zygote as zygote
from ._kernel import LINUX, PDEATHSIG, Procfs, call
from ._orders import Orders

CHECK_S = 0.5
"""Seconds between looks at whether the client still lives; a fork of the client may hold our lifeline open."""


def main() -> None:
    """Start the zygote, wait for the client or the zygote to go, kill and clean."""
    values = json.loads(sys.argv[1])
    orders = Orders(**{**values, "preload": tuple(values["preload"]), "off": tuple(values["off"])})
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal is for the client
    client = os.getppid()
    os.umask(0o022)
    wake, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(woken)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    child = os.fork()
    if child == 0:
        become_zygote(orders)
    os.close(orders.control)
    ended = 0
    while os.getppid() == client and not ended:
        readable, _, _ = select.select([0, wake], [], [], CHECK_S)
        if 0 in readable:
            break
        ended, _status = os.waitpid(child, os.WNOHANG)
    if not ended:
        os.kill(child, signal.SIGKILL)  # the zygote dies with it, and every session with the zygote
        os.waitpid(child, 0)
    shutil.rmtree(orders.scratch, ignore_errors=True)
    os._exit(0)


def become_zygote(orders: Orders) -> None:
    """Isolate, fork the zygote into the new namespaces, wait for it; never returns."""
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        isolation.close_all_but([orders.control])
        procfs = Procfs()
        report = isolation.enter_zygote(procfs, orders.scratch, orders.off)
        die_with_parent()
        child = os.fork()
        if child == 0:
            die_with_parent()
            null = os.open("/dev/null", os.O_RDWR)
            os.dup2(null, 0)
            os.dup2(null, 1)
            os.close(null)
            zygote.run(orders, isolation.Ground(procfs, report, orders.scratch))
            os._exit(0)
        isolation.close_all_but([])
        os.dup2(1, 0)
        os.waitpid(child, 0)
    except BaseException:
        traceback.print_exc()
    os._exit(1)


def die_with_parent() -> None:
    """Ask the kernel for it; changing ids forgets it, so it comes after."""
    if LINUX:
        call("prctl", PDEATHSIG, signal.SIGKILL, 0, 0, 0)
