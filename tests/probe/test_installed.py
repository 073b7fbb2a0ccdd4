"""Which files belong to installed packages."""

from __future__ import annotations

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
