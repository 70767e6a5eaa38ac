"""The Jupyter backend in its quickest sample; the whole contract is in `make slow`."""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path

import pytest

pytest.importorskip("jupyter_client", reason="needs the extra: pip install 'thincode[jupyter]'")
pytest.importorskip("ipykernel", reason="needs the extra: pip install 'thincode[jupyter]'")

from thincode.errors import InfrastructureError
from thincode.interpreter import BlockResult, Limits, Status
from thincode.interpreter.backends import jupyter

LIMITS = Limits(cpu_s=1, wall_s=20, memory_mib=512, output_chars=400, grace_s=10)


def run(*blocks: str) -> list[BlockResult]:
    async def all_blocks() -> list[BlockResult]:
        interpreter = jupyter.open(jupyter.Settings(), limits=LIMITS)
        async with interpreter, await interpreter.session(seed=1) as session:
            return [await session.run(block) for block in blocks]

    return asyncio.run(all_blocks())


def test_a_kernel_keeps_the_promises_of_every_backend_and_its_own() -> None:
    results = run(
        "x = 6 * 7\nx",
        "import sys; print('out'); print('err', file=sys.stderr); print('out')",
        "def f():\n    return 1 / 0\nf()",
        "import json\njson.loads('{')",
        "print('so far')\nwhile True: pass",
        "import asyncio\nawait asyncio.sleep(0, 'awaited')",
        "%time\nsys.exit()",
        "print('a' * 10**7)",
        "x",
    )
    statuses = " ".join(result.status.value for result in results)
    assert statuses == "ok ok error error limit ok ok ok ok"
    shown, ordered, failed, library, stopped, awaited, _, flood, after = results
    assert (shown.output, ordered.output, awaited.output) == ("42\n", "out\nerr\nout\n", "'awaited'\n")
    assert after.output == "42\n"
    assert failed.output == (
        'Traceback (most recent call last):\n  File "<block 3>", line 3, in <module>\n    f()\n'
        '  File "<block 3>", line 2, in f\n    return 1 / 0\nZeroDivisionError: division by zero\n'
    )
    assert (library.detail, "/" in library.output) == ("JSONDecodeError", False)
    assert stopped.output == "so far\nStopped: the block used up its 1 s of CPU time.\n"
    assert (stopped.detail, stopped.state_kept) == ("time", True)
    assert flood.cut_chars == 10**7 + 1 - 400


def test_a_dead_kernel_is_replaced_and_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    pid, died, after = run("import os; os.getpid()", "import os; os._exit(3)", "os")
    assert (died.status, died.detail, died.state_kept) == (Status.LIMIT, "died", False)
    assert died.output == "The process died (exit status 3).\nNames defined earlier are gone.\n"
    assert after.detail == "NameError"
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.output), 0)
    assert not list(tmp_path.iterdir())


def test_a_kernel_that_is_not_there_is_named() -> None:
    with pytest.raises(InfrastructureError, match="no Jupyter kernel is named 'my-env'; `jupyter kernelspec list`"):
        jupyter.open(jupyter.Settings(kernel="my-env"), limits=LIMITS)
