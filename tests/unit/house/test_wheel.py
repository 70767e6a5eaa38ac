"""The wheel works outside the checkout: names, command, recipes, type marker."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

OUTSIDE = """
import sys
from pathlib import Path
import thincode
from thincode.settings import recipe_text, recipes
home = Path(thincode.__file__).parent
assert home == Path(sys.argv[1]) / "thincode", home
assert (home / "py.typed").exists()
for name in thincode.__all__:
    getattr(thincode, name)
for name in recipes():
    assert recipe_text(name)
print(thincode.__version__, *recipes())
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    built = subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert not built.returncode, built.stdout + built.stderr
    (path,) = folder.glob("*.whl")
    return path


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    tops = {name.split("/")[0] for name in names}
    assert {top.split("-")[0] for top in tops} == {"thincode"}
    source = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src/thincode").rglob("*.py")}
    assert source <= set(names)
    data = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src/thincode").rglob("*.yaml")}
    assert data <= set(names)
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_an_installed_wheel_works_outside_the_checkout(wheel: Path, tmp_path: Path) -> None:
    target = tmp_path / "site"
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--target",
        str(target),
        str(wheel),
    ]
    subprocess.run(pip, check=True, timeout=300, capture_output=True)
    environment = {"PYTHONPATH": str(target), "PATH": "/usr/bin:/bin"}
    ran = subprocess.run(
        [sys.executable, "-c", OUTSIDE, str(target)], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert not ran.returncode, ran.stderr
    help_text = subprocess.run(
        [sys.executable, "-m", "thincode", "--help"], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert not help_text.returncode, help_text.stderr
