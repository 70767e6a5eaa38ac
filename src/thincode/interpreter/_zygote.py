"""The warm, single-threaded process that sessions are forked from; it runs no model code.

    client                 asks for sessions over one socket, then talks to each session directly
    └── supervisor         started by exec; ends everything when the client goes; runs nothing else
        └── zygote         imports and exercises the preload once; pid 1 of its namespace
            └── root       one per session, pid 1 of its namespace: see `_root`
                └── worker runs the blocks; a dormant copy, and copies that go on beside it, may join it here

A session's three descriptors go to the client: the channel (blocks and answers), the output (a memory file) and the
reins (what its root is told and tells; closing them ends the session).
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
import traceback
import warnings

from . import _isolation as isolation
from . import _output, _pages
from . import _root as root
from . import _worker as worker
from ._checkpoint import Checkpoint
from ._gp import GpWorker
from ._kernel import LINUX, NEWPID, call
from ._orders import QUIET, Orders

WARM_UP = {
    "numpy": "import numpy as m; m.linalg.solve(m.eye(3) + 1, m.ones(3)); m.random.default_rng(0).normal(size=3); "
    "repr(m.arange(3.0)); m.linalg.eigvals(m.eye(2))",
    "scipy": "import scipy.optimize as o, scipy.linalg, scipy.special as s, scipy.integrate as i; s.comb(5, 2, exact=True); "
    "o.brentq(lambda x: x - 1, 0, 3); i.quad(lambda x: x, 0, 1)",
    "sympy": "from sympy import *; x, y = symbols('x y'); solve(x**2 - 3*x + 2, x); solve([x + y - 3, x - y - 1], [x, y]); "
    "factorint(360); str(simplify((x**2 - 1) / (x - 1))); integrate(x**2, (x, 0, 1)); diff(sin(x) * x, x); "
    "Rational(1, 3) + sqrt(2); nsimplify(0.5); expand((x + y)**3); factor(x**2 - 1); summation(x, (x, 1, 10)); "
    "Matrix([[1, 2], [3, 4]]).det(); binomial(10, 3); isprime(97); N(pi, 20); limit(sin(x) / x, x, 0); latex(x / 2)",
    "mpmath": "import mpmath as m; m.mp.dps; m.quad(lambda x: x, [0, 1]); str(m.mpf(1) / 3)",
}
"""What a first block usually does with a module: run once here, its caches are warm in every session."""


def preload(name: str, exercise: str) -> str:
    """Import a module and run what exercises it: `on`, or why not.

    Nothing is collected meanwhile, which is a sixth of an import's time; and what is there then counts as old, so that the first
    thing a session does is not to look through all of it.
    """
    gc.disable()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            importlib.import_module(name)
            exec(exercise, {})
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        finally:
            gc.freeze()
            gc.enable()
    return "on"


class Zygote:
    """Forks sessions on request and keeps a few ahead."""

    def __init__(self, orders: Orders, ground: isolation.Ground) -> None:
        self.orders = orders
        self.ground = ground
        self.procfs = procfs = ground.procfs
        self.control = socket.socket(fileno=orders.control)
        self.pool: list[list[int]] = []
        self.count = 0
        self.address_space = 0
        self.top = min(orders.limits["files"], 1024) - 4
        """Channel and output of a session: out of the way of code that closes the low descriptors."""
        self.own_pids = -1
        if ground.shared.on("namespaces"):
            self.own_pids = os.open("self/ns/pid", os.O_RDONLY | os.O_CLOEXEC, dir_fd=procfs.descriptor)

    def serve(self) -> None:
        """Until the client hangs up."""
        self.furnish()
        loaded: dict[str, str] = {}
        self.report(loaded)
        # macOS: BLAS does not survive a fork, so there the sessions import for themselves.
        for name in self.orders.preload if LINUX else ():
            loaded[name] = preload(name, "")
            if self.orders.first_at_once and not self.count and self.is_asked() and not self.answer():
                return
            loaded[name] = preload(name, WARM_UP.get(name, ""))
        threads = self.procfs.threads()
        if threads != 1:
            raise RuntimeError(
                f"the zygote has {threads} threads after importing {', '.join(loaded)}; forking is not safe"
            )
        # Every session is a fork: what is here now is never collected, so its pages stay shared.
        gc.unfreeze()
        gc.collect()
        gc.freeze()
        _pages.enlarge(self.procfs.descriptor)
        self.measure()
        self.report(loaded)
        asked = True
        while asked:
            while len(self.pool) < self.orders.pool and not self.is_asked():
                try:
                    self.pool.append(self.fork())
                except OSError:  # no room for one in advance; who asks will hear it
                    break
            asked = self.answer()

    def furnish(self) -> None:
        """What every session finds: no environment of ours, no arguments, an empty standard input; a worker, ready to serve."""
        os.environ.clear()
        isolation.blank_environment(self.procfs)
        os.environ.update(QUIET)
        # Made once and forked ready: what a session builds for itself costs it page faults.
        self.worker = self.make_worker()
        self.measure()
        sys.argv[:] = [""]
        sys.stdin = open(0, encoding="utf-8")  # noqa: SIM115 - /dev/null here and in every session
        sys.dont_write_bytecode = True
        # What the collector finds between two blocks would name a file of ours, in the next block's output.
        warnings.filterwarnings("ignore", module=r"thincode\.")
        behave_as_guest()

    def measure(self) -> None:
        """What a session starts with of address space; 0 where the system does not say."""
        mapped = self.procfs.address_space()
        self.address_space = mapped and mapped - self.worker.reserved

    def make_worker(self) -> worker.Worker:
        """One that runs Python, or PARI/GP where there is a library for it."""
        orders = self.orders
        if not orders.library:
            return worker.Worker(self.top, self.top + 1, output_chars=orders.output_chars, checkpoint=Checkpoint())
        return GpWorker(
            self.top, self.top + 1, output_chars=orders.output_chars, checkpoint=Checkpoint(),
            library=orders.library, memory_mib=orders.limits["memory_mib"],
        )  # fmt: skip

    def report(self, loaded: dict[str, str]) -> None:
        """Tell the client what there is so far."""
        self.control.send(json.dumps({"layers": self.ground.shared, "preload": loaded}).encode())

    def is_asked(self) -> bool:
        """Whether a request waits, or the end."""
        return bool(select.select([self.control], [], [], 0)[0])

    def answer(self) -> bool:
        """Give a session to who asks next; False when nobody will."""
        request = self.control.recv(64)
        if not request:
            return False
        try:
            descriptors = self.pool.pop(0) if self.pool else self.fork()
        except OSError as error:
            self.control.send(json.dumps({"failed": str(error)}).encode())
            return True
        socket.send_fds(self.control, [request], descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        return True

    def return_to_own_pids(self) -> None:
        """Let the next child start in our namespace again, or in one that is made for it."""
        if self.own_pids >= 0:
            call("setns", self.own_pids, NEWPID)

    def fork(self) -> list[int]:
        """A new session; its channel, output and reins."""
        self.count += 1
        ours, theirs = socket.socketpair()
        reins, held = socket.socketpair()
        output = _output.memory_file()
        if LINUX:
            # The kernel then tells the client who wrote `ready`, in the client's own numbers.
            ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        if self.own_pids >= 0:
            call("unshare", NEWPID)
        try:
            pid = os.fork()
        except OSError:
            for descriptor in (ours.detach(), theirs.detach(), reins.detach(), held.detach(), output):
                os.close(descriptor)
            self.return_to_own_pids()
            raise
        if pid == 0:
            try:
                root.Root(self, theirs.detach(), output, held.detach()).start()
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(70)
        self.return_to_own_pids()
        theirs.close()
        held.close()
        return [ours.detach(), output, reins.detach()]


def behave_as_guest() -> None:
    """What a session is to see of the machine: one processor; and no timer's signal ends it that it asked for and forgot."""
    os.cpu_count = lambda: 1
    if hasattr(os, "sched_getaffinity"):
        os.sched_getaffinity = lambda pid: {0}
    for number in (signal.SIGALRM, signal.SIGVTALRM, signal.SIGPROF):
        signal.signal(number, signal.SIG_IGN)


def run(orders: Orders, ground: isolation.Ground) -> None:
    """Be the zygote."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    Zygote(orders, ground).serve()
