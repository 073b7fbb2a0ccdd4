"""Which files belong to installed packages."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from memdiag.probe import installed
from memdiag.probe.installed import package_folder
from memdiag.probe.program_code import is_users


@pytest.fixture
def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder as `pip install --target` leaves it, on the module search path."""
    folder = tmp_path / "vendored"
    (folder / "a_library").mkdir(parents=True)
    (folder / "a_library-1.0.dist-info").mkdir()
    monkeypatch.setattr(sys, "path", [*sys.path, str(folder), "", None])
    monkeypatch.setattr(installed, "_folders", {})
    return folder


def test_folder_with_packages_beside_their_records(target: Path, tmp_path: Path) -> None:
    assert package_folder(str(target / "a_library/core.py")) == f"{target}/"
    assert not is_users(str(target / "a_library/other.py"))
    assert package_folder(str(tmp_path / "train.py")) == ""
    assert package_folder(str(tmp_path / "vendored_not/train.py")) == ""
    assert package_folder("/x/lib/site-packages/torch/nn.py") == "/x/lib/site-packages/"


def test_program_that_lies_beside_its_packages(
    target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    main = sys.modules["__main__"]
    monkeypatch.setattr(main, "__file__", str(target / "jobs/train.py"), raising=False)
    assert package_folder(str(target / "jobs/train.py")) == ""


SAYS = """
from pathlib import Path
from memdiag.probe.program_code import find_package_run, is_users
def main():
    find_package_run()
    here = Path(__file__).parent
    print(*(is_users(str(one)) for one in (here / "cli.py", here.parent / "other/core.py")))
"""
SCRIPT = """import re
import sys
from mine.cli import main
if __name__ == "__main__":
    sys.argv[0] = re.sub(r"(-script|.exe)?$", "", sys.argv[0])
    sys.exit(main())
"""
WITH_CODE = """import sys
from mine.cli import main
def again():
    sys.exit(main())
again()
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder of installed packages: a training, and a runner."""
    folder = tmp_path / "lib/site-packages"
    for name in ("mine", "runner"):
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").touch()
        (folder / name / "cli.py").write_text(SAYS)
    (folder / "mine/train.py").write_text("from mine.cli import main\nmain()\n")
    runs = "import sys\nfrom runner.cli import main\nfor name in sys.argv[1:]:\n"
    (folder / "runner/__main__.py").write_text(f"{runs}    __import__(name)\nmain()\n")
    return folder


def said(site: Path, *command: str) -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), *sys.path])}
    return subprocess.run(
        [sys.executable, *command],
        env=environment,
        cwd=site.parent,
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    ).stdout


def script(site: Path, content: str) -> str:
    path = site.parents[1] / "bin/train"
    path.parent.mkdir()
    path.write_text(content)
    return str(path)


def test_installed_package_that_is_run_is_the_program(site: Path) -> None:
    assert said(site, "-m", "mine.train") == "True False\n"
    assert said(site, str(site / "mine/train.py")) == "True False\n"


def test_package_that_a_console_script_calls_is_the_program(site: Path) -> None:
    assert said(site, script(site, SCRIPT)) == "True False\n"


def test_script_with_code_of_its_own_is_the_program(site: Path) -> None:
    assert said(site, script(site, WITH_CODE)) == "False False\n"


def test_package_that_runs_other_modules_is_a_library(site: Path) -> None:
    """A runner of tests, a server: `pytest`, `uvicorn app:app`."""
    (site.parent / "app.py").touch()
    assert said(site, "-m", "runner", "mine.cli") == "True False\n"
    assert said(site, "-m", "runner", "app") == "False False\n"
