"""Every command that README and docs show is run, or says why not: `<!-- not run: REASON -->` above its fence.

The blocks of one document run in order in one fresh folder, so that a later one may use what an earlier one made.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FENCE = re.compile(r"(?P<above>[^\n]*)\n[ ]*```(?P<language>bash|python)[^\n]*\n(?P<code>.*?)\n[ ]*```", re.DOTALL)
QUOTED = re.compile(r"^````.*?^````", re.DOTALL | re.MULTILINE)
"""Longer fences quote: what stands in them is shown, not run."""
NOT_RUN = re.compile(r"<!-- not run: (.{8,}) -->")


@dataclass(frozen=True)
class Snippet:
    """One fenced block."""

    language: str
    code: str
    line: int
    skip: str | None


def snippets(text: str) -> list[Snippet]:
    found = []
    text = QUOTED.sub(lambda quoted: "\n" * quoted[0].count("\n"), text)
    for match in FENCE.finditer("\n" + text):
        reason = NOT_RUN.search(match["above"])
        line = text.count("\n", 0, match.start("code") - 1) + 1
        found.append(Snippet(match["language"], match["code"], line, reason and reason[1]))
    return found


DOCUMENTS = [
    path
    for path in sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md")])
    if path.exists() and path.name != "notebook.md" and snippets(path.read_text(encoding="utf-8"))
]
NAMES = [str(path.relative_to(ROOT)) for path in DOCUMENTS]


def test_fences_are_found_with_line_and_reason() -> None:
    text = "# x\n\n```bash\na\nb\n```\n\n<!-- not run: needs a GPU -->\n```python\nc\n```\n\n```text\nd\n```\n"
    text += "````text\n```python\nshown\n```\n````\n"
    assert snippets(text) == [Snippet("bash", "a\nb", 4, None), Snippet("python", "c", 10, "needs a GPU")]


@pytest.mark.parametrize("document", DOCUMENTS, ids=NAMES)
def test_every_block_is_well_formed(document: Path) -> None:
    for snippet in snippets(document.read_text(encoding="utf-8")):
        where = f"{document.name}:{snippet.line}"
        if snippet.language == "python":
            compile(snippet.code, where, "exec")
        else:
            checked = subprocess.run(["bash", "-n", "-c", snippet.code], capture_output=True, text=True, timeout=30)
            assert not checked.returncode, f"{where}: {checked.stderr}"


@pytest.mark.slow
@pytest.mark.parametrize("document", DOCUMENTS, ids=NAMES)
def test_every_command_runs(document: Path, tmp_path: Path) -> None:
    if (ROOT / "examples").exists():
        (tmp_path / "examples").symlink_to(ROOT / "examples")
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
    }
    ran = 0
    for snippet in snippets(document.read_text(encoding="utf-8")):
        if snippet.skip:
            continue
        program = [sys.executable] if snippet.language == "python" else ["bash", "-euo", "pipefail"]
        done = subprocess.run(
            [*program, "-c", snippet.code], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=1800
        )
        assert not done.returncode, f"{document.name}:{snippet.line}\n{done.stdout}\n{done.stderr}"
        ran += 1
    if not ran:
        pytest.skip("every block says why it is not run")
