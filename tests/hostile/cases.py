"""Blocks that are hostile or just awkward, and what must come of each. `python cases.py` runs them and prints JSON."""

# ruff: noqa: E501 - a snippet is easier to read in one piece

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path

from thincode.interpreter import Limits
from thincode.interpreter.backends import python

LIMITS = Limits(
    cpu_s=0.5,
    wall_s=6,
    memory_mib=256,
    output_chars=2000,
    processes=16,
    disk_mib=8,
    files=64,
    grace_s=0.3,
    deterministic=True,
)


@dataclass(frozen=True)
class Case:
    """One block that follows `canary = 41`; afterwards the session must answer, with its names."""

    code: str
    status: str = "ok"
    detail: str = ""
    says: str = ""
    """Must stand in the output."""
    hides: str = "@@LEAK@@"
    """Must not stand in the output."""
    then: dict[str, str | None] = field(default_factory=dict)
    """Further blocks, and the exact output of each; None: any."""


def fatal(code: str, *, says: str = "", detail: str = "died") -> Case:
    """Its process dies; the session goes on from a checkpoint, or from its blocks run again."""
    return Case(code, status="limit", detail=detail, says=says)


def timed(code: str) -> Case:
    return Case(code, status="limit", detail="time", says="Stopped: the block used up its 0.5 s of CPU time.")


def refused(attempt: str, *, imports: str = "") -> Case:
    """Something that must fail inside the block."""
    body = "\n    ".join(attempt.splitlines())
    return Case(
        f"{imports}\ntry:\n    {body}\nexcept OSError:\n    print('refused')\nelse:\n    print('@@LEAK@@')",
        says="refused",
    )


CASES = {
    # --- processes and threads
    "fork bomb stops at the cap": Case(
        "import os, time\nn = 0\ntry:\n    while n < 500:\n        if os.fork() == 0:\n            time.sleep(60)\n        n += 1\n"
        "except OSError as error:\n    print(n < 17, error.errno == 11)",
        says="True True",
    ),
    "children of a block die with it": Case(
        "import os, time\nif os.fork() == 0:\n    while True: time.sleep(1)",
        then={
            "try:\n    print(os.waitpid(-1, os.WNOHANG))\nexcept ChildProcessError:\n    print('none')": "none\n",
        },
    ),
    "a child that returns from the block does not answer": Case("import os\npid = os.fork()\n'once'", says="once"),
    "a grandchild that left its session dies too": Case(
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        time.sleep(60)\n    os._exit(0)\nos.wait()[0] > 0",
        says="True",
    ),
    "thread bomb": Case(
        "import threading, time\nstop = threading.Event()\ntry:\n    for _ in range(500): threading.Thread(target=stop.wait, daemon=True).start()\n"
        "except RuntimeError as error:\n    print(error)\nstop.set()",
        says="can't start new thread",
    ),
    "a thread that prints after its block is not heard": Case(
        "import threading, time\ngo = True\ndef talk():\n    while go:\n        print('@@LEAK@@')\n        time.sleep(0.002)\n"
        "t = threading.Thread(target=talk, daemon=True)\nimport sys; out = sys.stdout",
        then={"t.start()\nNone": None, "time.sleep(0.05)\n7": "7\n", "go = False\nt.join()\n8": "8\n"},
    ),
    "multiprocessing fails fast or works": Case(
        "import multiprocessing as mp\ntry:\n    with mp.get_context('fork').Pool(2) as pool: print(pool.map(abs, [-1, 2]))\n"
        "except (OSError, ImportError) as error:\n    print('[1, 2]')",
        says="[1, 2]",
    ),
    # --- memory
    "memory bomb in Python": Case("a = []\nwhile True: a.append(bytearray(10**7))", status="error", detail="MemoryError"),
    "memory bomb at once": Case("'a' * 10**11", status="error", detail="MemoryError", says="MemoryError"),
    "anonymous maps": Case(
        "import mmap\nm = []\nwhile True: m.append(mmap.mmap(-1, 10**7))", status="error", detail="OSError", says="Cannot allocate"
    ),
    # --- time
    "endless loop": timed("while True: pass"),
    "endless loop that catches everything": timed("while True:\n    try:\n        while True: pass\n    except BaseException: break"),
    "endless finally": timed("try:\n    while True: pass\nfinally:\n    while True: pass"),
    "a stubborn catcher is killed, or interrupted between two tries": timed(
        "while True:\n    try:\n        while True: pass\n    except BaseException: pass"
    ),
    "interrupts ignored": timed("import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass"),
    "all signals blocked": timed(
        "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\nwhile True: pass"
    ),
    "a loop in C": timed("sum(range(10**12))"),
    "a huge power": timed("x = 10**10**8"),
    "a regular expression that backtracks": timed("import re; re.match(r'(a+)+$', 'a' * 40 + 'b')"),
    "a constant the compiler would fold": Case("x = 2\nlen(f'{x**10}')", says="4"),
    # --- death
    "os._exit is no success": fatal("import os; os._exit(0)", says="exit status 0"),
    "segmentation fault": fatal("import ctypes; ctypes.string_at(0)", says="SIGSEGV"),
    "abort": fatal("import os; os.abort()", says="SIGABRT"),
    "kills itself": fatal("import os; os.kill(os.getpid(), 9)", says="SIGKILL"),
    "kills its group": fatal("import os; os.killpg(0, 9)", says="SIGKILL"),
    "kills everyone it may": Case(
        "import os\ntry:\n    os.kill(-1, 9)\nexcept (ProcessLookupError, PermissionError):\n    pass\n'alive'",
        says="alive",
    ),
    "kills the first process of its session": Case("import os\ntry:\n    os.kill(1, 9)\nexcept PermissionError:\n    pass\n'no use'", says="no use"),
    "deep recursion": Case(
        "def f(n): return f(n + 1)\nf(0)", status="error", detail="RecursionError", says="maximum recursion depth exceeded"
    ),
    "alarm storm is over after the block": Case(
        "import signal\nsignal.signal(signal.SIGALRM, lambda *a: None)\nsignal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)\n5",
        says="5",
    ),
    # --- ends
    "sys.exit() ends the block well": Case("import sys\nprint('a')\nsys.exit()", says="a"),
    "sys.exit(3) is an error": Case("import sys; sys.exit(3)", status="error", detail="SystemExit"),
    "sys.exit('text') says it": Case("raise SystemExit('bad luck')", status="error", detail="SystemExit", says="bad luck"),
    "raise KeyboardInterrupt by hand": Case("raise KeyboardInterrupt", status="error", detail="KeyboardInterrupt"),
    "a repr that exits": Case(
        "class A:\n    def __repr__(self): raise SystemExit(1)\nA()", status="error", detail="SystemExit"
    ),
    "a repr that loops": timed("class A:\n    def __repr__(self):\n        while True: pass\nA()"),
    "an exception whose text fails": Case(
        "class E(Exception):\n    def __str__(self): raise SystemExit\nraise E", status="error", detail="E", says="str() failed"
    ),
    "atexit handlers do not run": Case("import atexit\natexit.register(print, '@@LEAK@@')\n1", says="1"),
    # --- output
    "huge output": Case("for i in range(50000): print('spam', i)", says="characters cut"),
    "huge output in one piece": Case("print('x' * 5_000_000)", says="4998001 characters cut"),
    "a huge repr": Case("'y' * 3_000_000", says="2998003 characters cut"),
    "direct writes stand in order": Case(
        "import os\nprint('a')\nos.write(1, b'b\\n')\nprint('c')\nos.write(2, b'd\\n')\nNone", says="a\nb\nc\nd\n"
    ),
    "direct writes without end": Case(
        "import os\ntry:\n    while True: os.write(1, b'z' * 10**6)\nexcept OSError as error: print(error.errno == 27)", says="zzzz"
    ),
    "bytes that are no text": Case(
        "import sys; sys.stdout.buffer.write(b'\\xff\\x00\\x1b[31mred\\x1b[0m\\x07'); None", says="\\xff\\x00red\\x07"
    ),
    "a lone surrogate": Case("print('\\ud800!')", says="\\ud800!"),
    "progress bars": Case("for i in range(100): print(f'\\r{i}%', end='')", says="99%", hides="98%"),
    # --- descriptors and streams
    "input() ends at once": Case("input('name? ')", status="error", detail="EOFError"),
    "stdin is empty": Case("import sys; sys.stdin.read()", says="''"),
    "closes its standard streams": Case(
        "import os\nfor fd in (0, 1, 2): os.close(fd)", then={"print('back')": "back\n"}
    ),
    "sys.stdout = None": Case("import sys; sys.stdout = sys.stderr = None", then={"print('back')": "back\n"}),
    "closes sys.stdout": Case("import sys; sys.stdout.close()", then={"print('back')": "back\n"}),
    "closes every descriptor": Case("import os; os.closerange(0, 4096)", status="limit"),
    "runs out of descriptors": Case(
        "f = []\ntry:\n    while True: f.append(open('/dev/null'))\nexcept OSError as error: print(error.errno)\nf.clear()", says="24"
    ),
    "forges an answer": fatal(
        "import os, struct\nbody = b'0 '\nframe = struct.pack('!I16sQB', 25 + len(body), bytes(16), 2, 10) + body\n"
        "for fd in range(3, 64):\n    try: os.write(fd, frame)\n    except OSError: pass",
        detail="tampered",
    ),
    "writes rubbish to every descriptor": fatal(
        "import os\nfor fd in range(3, 64):\n    try: os.write(fd, b'@' * 4000)\n    except OSError: pass", detail="tampered"
    ),
    # --- the driver's own interpreter
    "patches builtins": Case(
        "import builtins\nfor name in ('print', 'repr', 'compile', 'exec', 'eval', 'open', 'len', 'isinstance', 'type', 'str', 'getattr'):\n"
        "    setattr(builtins, name, lambda *a, **k: 1/0)",
        then={"print('x')": None},
    ),
    "clears sys.modules": Case("import sys; sys.modules.clear()"),
    "deletes its globals": Case("keep = canary\nglobals().clear()\ncanary = 41"),
    "leaves a trace function": Case("import sys\nsys.settrace(lambda *a: 1/0)"),
    "lowers the recursion limit": Case("import sys\nsys.setrecursionlimit(20)"),
    "replaces os functions": Case(
        "import os\nos.write = os.read = os.getpid = os.dup2 = os.waitpid = lambda *a: 1/0\n2", says="2"
    ),
    "plays with the collector": Case("import gc\ngc.disable()\ngc.set_threshold(1)\nlen(gc.get_objects()) > 0", says="True"),
    "leaves a profile function": Case("import sys\nsys.setprofile(lambda *a: 1/0)", status="error"),
    # --- source text
    "tabs and spaces": Case("if 1:\n\tx = 1\n        y = 2", status="error", detail="TabError"),
    "a null byte": Case("x = 1\0", status="error"),
    "a lone surrogate in the source": Case("x = '\ud800'", status="error", detail="UnicodeEncodeError"),
    "nested too deep": Case("(" * 500 + ")" * 500, status="error"),
    "a long source": Case("x = 1\n" * 20000 + "x", says="1"),
    "a future import holds": Case(
        "from __future__ import annotations", then={"def f(a: not_there): pass\nf.__annotations__": "{'a': 'not_there'}\n"}
    ),
    "carriage returns in the source": Case("a = 1\r\na + 1\r\n", says="2"),
    "an empty block": Case("# nothing"),
    # --- the machine
    "reads a file of ours": refused("print(open({secret!r}).read())"),
    "lists our folder": refused("import os\nos.listdir({folder!r})"),
    "reads the password file": refused("open('/etc/passwd').read()"),
    "reads a process's environment": refused("open('/proc/self/environ').read()"),
    "has no secret in its environment": Case("import os; print(sorted(os.environ)); os.environ.get('SECRET')", hides="SECRET"),
    "finds no environment in its memory": Case(
        "import ctypes\nctypes.c_char_p.in_dll(ctypes.CDLL(None), '__progname')\nimport os\nos.getenv('SECRET', 'none')", says="none"
    ),
    "writes outside its scratch folder": refused("open('/written', 'w')"),
    "writes into Python's folder": refused("import os\nopen(os.__file__ + 'x', 'w')"),
    "fills the disk": Case(
        "n = 0\ntry:\n    for i in range(50):\n        with open(f'f{i}', 'wb') as f: f.write(bytes(2**20))\n        n += 1\n"
        "except OSError: print(n < 9)",
        says="True",
    ),
    "makes files without end": Case(
        "n = 0\ntry:\n    for i in range(10**5):\n        open(f'g{i}', 'w').close()\n        n += 1\nexcept OSError: print(n < 5000)",
        says="True",
    ),
    "connects to the network": refused("s = socket.socket()\ns.settimeout(2)\ns.connect(('192.0.2.1', 80))", imports="import socket"),
    "connects to this machine": refused("socket.create_connection(('127.0.0.1', {port}), 2)", imports="import socket"),
    "looks up a name": refused("socket.getaddrinfo('example.org', 80)", imports="import socket"),
    "signals our process": refused("import os\nos.kill({pid}, 0)"),
    "mounts": Case(
        "import ctypes\nlibc = ctypes.CDLL(None)\nprint(libc.mount(b'none', b'/tmp', b'tmpfs', 0, None), libc.unshare(0x20000))",
        says="-1 -1",
    ),
    "sets the clock": refused("time.clock_settime(time.CLOCK_REALTIME, 0)", imports="import time"),
    "runs a program": refused("subprocess.run(['/bin/sh', '-c', 'true'])", imports="import subprocess"),
    "sees its own processes only": refused("os.kill(2**15, 0)", imports="import os"),
    "leaves a file for another session": Case("open('note', 'w').close()"),
    "finds no file of another session": refused("import os, time\ntime.sleep(0.05)\nos.stat('note')"),
}  # fmt: skip


async def run_case(interpreter: python.PythonInterpreter, case: Case, names: dict[str, object]) -> dict[str, object]:
    """Everything the check needs, as plain data."""
    async with await interpreter.session(seed=7) as session:
        await session.run("canary = 41")
        code = case.code
        for name, value in names.items():
            code = code.replace(f"{{{name}!r}}", repr(value)).replace(f"{{{name}}}", str(value))
        result = await session.run(code)
        then = [(await session.run(block)).output for block in case.then]
        after = await session.run("canary = canary + 1\ncanary")
        alive = await session.run("6 * 7")
    return {**asdict(result), "then": then, "after": after.output, "alive": alive.output, "after_status": after.status}


async def run_all(chosen: list[str] | None = None) -> dict[str, dict[str, object]]:
    """All cases, or those chosen, four at a time, on one bare interpreter."""
    cases = {name: CASES[name] for name in chosen or CASES}
    os.environ["SECRET"] = "@@LEAK@@"
    gate = asyncio.Semaphore(4)
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    with tempfile.TemporaryDirectory() as folder:
        secret = Path(folder, "answers")
        secret.write_text("@@LEAK@@")
        names = {
            "secret": str(secret),
            "folder": folder,
            "pid": os.getpid(),
            "port": server.sockets[0].getsockname()[1],
        }
        async with python.open(python.Settings(preload=()), limits=LIMITS) as interpreter:

            async def guarded(case: Case) -> dict[str, object]:
                async with gate:
                    return await run_case(interpreter, case, names)

            results = await asyncio.gather(*(guarded(case) for case in cases.values()))
    server.close()
    return dict(zip(cases, results, strict=True))


if __name__ == "__main__":
    json.dump(asyncio.run(run_all(sys.argv[1:])), sys.stdout)
