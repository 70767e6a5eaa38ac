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


@pytest.fixture(scope="module")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which the wheel is installed, without what it depends on."""
    target = tmp_path_factory.mktemp("installed") / "site"
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
    return target


def outside(site: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Python in a folder of its own, with the installed wheel before anything else."""
    environment = {"PYTHONPATH": str(site), "PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    return subprocess.run([sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True)


def test_an_installed_wheel_works_outside_the_checkout(site: Path, tmp_path: Path) -> None:
    ran = outside(site, tmp_path, "-c", OUTSIDE, str(site))
    assert not ran.returncode, ran.stderr
    for words in (["--help"], ["demo", "--plan"]):
        ran = outside(site, tmp_path, "-m", "thincode", *words)
        assert not ran.returncode, ran.stderr
        assert ran.stdout
    assert not [*tmp_path.iterdir()]


@pytest.mark.slow
@pytest.mark.train
def test_an_installed_wheel_runs_the_whole_pipeline(site: Path, tmp_path: Path) -> None:
    ran = outside(site, tmp_path, "-m", "thincode", "run", "tiny/micro", "--quiet", "--out", "out")
    assert not ran.returncode, ran.stderr
    assert (tmp_path / "out/report.html").exists()
    assert (tmp_path / "out/rl/model/model.safetensors").exists()
