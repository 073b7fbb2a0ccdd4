"""The Pythons on this machine that the probe must work in."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TypeVar

import pytest

Name = TypeVar("Name")

VERSIONS = ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13")


@cache
def interpreters() -> dict[str, str]:
    """Version -> program, of those versions that are here. This one is always among them."""
    found = {version: program for version in VERSIONS if (program := _find(version))}
    return {**found, "{}.{}".format(*sys.version_info[:2]): sys.executable}


def versions() -> list[object]:
    """The keys of `interpreters` to parametrize with: all but this Python's are slow tests."""
    this = "{}.{}".format(*sys.version_info[:2])
    return [
        pytest.param(version, marks=() if version == this else pytest.mark.slow)
        for version in sorted(interpreters())
    ]


def share(names: Sequence[Name], program: str) -> Sequence[Name]:
    """All names for this Python; for each of the others a part, so that together they have all."""
    others = [one for one in interpreters().values() if one != sys.executable]
    return names[others.index(program) :: len(others)] if program in others else names


def old_interpreter(version: str) -> str | None:
    """The program of a Python that is too old for the probe, where there is one."""
    return _find(version)


def _find(version: str) -> str | None:
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    candidates = [*root.glob(f"versions/{version}.*/bin/python")]
    candidates += [Path(path)] if (path := shutil.which(f"python{version}")) else []
    return next((str(path) for path in candidates if _works(path)), None)


def _works(program: Path) -> bool:
    try:
        return subprocess.run([program, "-c", ""], capture_output=True, check=False).returncode == 0
    except OSError:
        return False
