"""The built distributions hold all that memdiag needs, in an environment without its sources."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

import memdiag

ROOT = Path(__file__).resolve().parent.parent


def run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    return subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("wheel")
    built = run(
        *(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"),
        *("--wheel-dir", where, ROOT),
        cwd=where,
    )
    assert built.returncode == 0, built.stderr
    return next(where.glob("memdiag-*.whl"))


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment's Python that has the wheel and borrows the dependencies of this one."""
    where = tmp_path_factory.mktemp("installed")
    venv.create(where, with_pip=False, symlinks=True)
    python = where / "bin" / "python"
    packages = Path(
        run(
            python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=where
        ).stdout.strip()
    )
    # A directory named in a .pth file comes after the environment's own packages, and the .pth
    # files inside it (the one of an editable memdiag) are not looked at.
    borrowed = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (packages / "borrowed.pth").write_text("\n".join(sorted(borrowed)) + "\n")
    installed = run(
        *(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps"),
        *("--no-index", wheel),
        cwd=where,
    )
    assert installed.returncode == 0, installed.stderr
    return python


def test_the_wheel_holds_every_file_of_the_package(wheel: Path) -> None:
    sources = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "memdiag").rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if name.startswith("memdiag/")}
    assert packed == sources
    assert "memdiag/py.typed" in packed


def test_the_installed_wheel_is_what_runs(python: Path, tmp_path: Path) -> None:
    ended = run(python, "-c", "import memdiag; print(memdiag.__file__)", cwd=tmp_path)
    assert Path(ended.stdout.strip()).is_relative_to(python.parent.parent)


def test_the_installed_command_knows_its_version(python: Path, tmp_path: Path) -> None:
    ended = run(python.parent / "memdiag", "--version", cwd=tmp_path)
    assert ended.stdout == f"memdiag {memdiag.__version__}\n", ended.stderr


def test_the_installed_command_analyzes_without_torch(python: Path, tmp_path: Path) -> None:
    rows = "".join(f"{step},{100 + (step % 3)}\n" for step in range(200))
    (tmp_path / "log.csv").write_text("step,rss_mb\n" + rows)
    # A module of that name that cannot be imported stands for an environment without it.
    (tmp_path / "torch.py").write_text("raise ImportError('no torch here')\n")
    ended = run(python, "-m", "memdiag", "analyze", "log.csv", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert "STABLE" in ended.stdout


def test_the_sdist_builds_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    built = run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", tmp_path, cwd=ROOT)
    assert built.returncode == 0, built.stderr
    (archive,) = tmp_path.glob("memdiag-*.tar.gz")
    with tarfile.open(archive) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
        opened.extractall(tmp_path / "unpacked", filter="data")
    assert {"README.md", "LICENSE", "Makefile", "mkdocs.yml", "tests/conftest.py"} <= names
    (sources,) = (tmp_path / "unpacked").iterdir()
    again = run(
        *(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"),
        *("--wheel-dir", tmp_path, sources),
        cwd=tmp_path,
    )
    assert again.returncode == 0, again.stderr
    (other,) = tmp_path.glob("memdiag-*.whl")
    with zipfile.ZipFile(other) as second, zipfile.ZipFile(wheel) as first:
        assert sorted(second.namelist()) == sorted(first.namelist())


@pytest.mark.slow
def test_the_demo_shows_a_leak_and_a_warm_up(python: Path, tmp_path: Path) -> None:
    ended = run(python.parent / "memdiag", "demo", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    first, second = (ended.stderr.find(f"\n  {verdict} ") for verdict in ("LEAK", "WARMUP"))
    assert 0 < first < second, ended.stderr
    assert "demo_training.py:" in ended.stderr[first:second]  # the line that keeps it
    listed = run(python.parent / "memdiag", "list", cwd=tmp_path).stdout
    assert [word in listed for word in ("LEAK", "WARMUP", "demo_training")] == [True] * 3
