"""What loading thincode loads, and what kinds may import."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import thincode

SOURCE = Path(thincode.__file__).parent
HEAVY = ("torch", "transformers", "trl", "accelerate", "peft", "datasets", "numpy", "scipy", "sympy", "pydantic")

PLUG_ROOMS = [
    "engines",
    "evaluation.benchmarks",
    "evaluation.metrics",
    "grading.filters",
    "grading.rewards",
    "interpreter.backends",
    "problems.drills",
    "problems.sources",
    "trajectory.formats",
    "training.algorithms",
]


def files_of(room: str) -> list[Path]:
    return [path for path in sorted(SOURCE.joinpath(*room.split(".")).glob("*.py")) if path.stem != "__init__"]


KINDS = [f"thincode.{room}.{path.stem}" for room in PLUG_ROOMS for path in files_of(room) if path.stem[0] != "_"]


def loaded_by(code: str) -> set[str]:
    """Top-level packages and the kinds' Settings seen by a fresh process that runs `code`."""
    ran = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys, json; print(json.dumps(sorted(sys.modules)))"],
        capture_output=True,
        text=True,
        timeout=120,
        env={"PYTHONPATH": str(SOURCE.parent), "PATH": "/usr/bin:/bin"},
    )
    assert ran.returncode == 0, ran.stderr
    return {name.partition(".")[0] for name in json.loads(ran.stdout.splitlines()[-1])}


QUICK = {
    "import thincode": "import thincode",
    "thincode --help": "import sys; sys.argv = ['thincode', '--help']\n"
    "from thincode.cli import main\ntry: main()\nexcept SystemExit: pass",
}


@pytest.mark.parametrize("code", QUICK.values(), ids=QUICK)
def test_the_first_answer_loads_nothing_heavy(code: str) -> None:
    assert loaded_by(code) & set(HEAVY) == set()


def test_a_plan_loads_no_torch() -> None:
    code = "from thincode.cli import main\nassert main(['demo', '--plan']) == 0"
    assert loaded_by(code) & {"torch", "transformers", "trl", "accelerate", "peft", "datasets"} == set()


def test_every_kind_loads_without_torch() -> None:
    code = f"import importlib\nfor name in {KINDS}: importlib.import_module(name)"
    assert loaded_by(code) & {"torch", "transformers", "trl", "accelerate", "peft", "datasets"} == set()


@pytest.mark.parametrize("name", [name for name in KINDS if ".drills." not in name])
def test_every_kind_has_settings(name: str) -> None:
    import importlib

    kind = importlib.import_module(name)
    assert kind.Settings.__dataclass_params__.frozen
    assert kind.Settings.__pydantic_config__ == {"extra": "forbid"}, "make it with @settings"
    assert kind.__doc__, "the file's docstring is its data sheet"


@pytest.mark.parametrize("room", PLUG_ROOMS)
def test_kinds_never_import_sibling_kinds(room: str) -> None:
    package = f"thincode.{room}"
    siblings = {f"{package}.{path.stem}" for path in files_of(room) if path.stem[0] != "_"}
    for path in files_of(room):
        imported = set(imports_of(path, package=package))
        assert not imported & siblings, f"{path.name} imports {imported & siblings}: move what they share to a _file"


def imports_of(path: Path, *, package: str) -> list[str]:
    """Absolute dotted names that a file imports anywhere in it."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            up = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*up, *([node.module] if node.module else [])])
            found += [base, *(f"{base}.{alias.name}" for alias in node.names)]
    return found


def test_relative_imports_are_resolved(tmp_path: Path) -> None:
    path = tmp_path / "kind.py"
    path.write_text("from . import b\nfrom .c import d\nfrom .. import e\nfrom ...f import g\nimport h.i\n")
    expected = {"x.y.z.b", "x.y.z.c", "x.y.e", "x.f", "h.i"}
    assert expected <= set(imports_of(path, package="x.y.z"))


def test_what_shares_a_process_with_blocks_is_standard_library_only() -> None:
    files = ("_worker", "_prompt", "_streams", "_checkpoint")
    ours = {f"thincode.interpreter.{name}" for name in files}
    for name in files:
        names = imports_of(SOURCE / "interpreter" / f"{name}.py", package="thincode.interpreter")
        foreign = {found for found in names if not any(found.startswith(own) for own in ours)}
        assert {found.partition(".")[0] for found in foreign} - set(sys.stdlib_module_names) == set()


def test_the_public_names_are_there() -> None:
    assert len(thincode.__all__) <= 20
    assert len(set(thincode.__all__)) == len(thincode.__all__)
    assert dir(thincode) == thincode.__all__
    for name in thincode.__all__:
        assert getattr(thincode, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = thincode.nothing


def test_type_checkers_see_the_same_public_names() -> None:
    tree = ast.parse(Path(thincode.__file__).read_text(encoding="utf-8"))
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    seen = {alias.asname for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert seen == set(thincode.__all__) - {"__version__"}
