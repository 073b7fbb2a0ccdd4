"""A second user of the machine, for tests of what one may do to another. Needs root."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import psutil
import pytest

import memdiag

# Nobody's, on every Linux.
OTHER_UID = OTHER_GID = 65534


def as_other_user(**options: Any) -> dict[str, Any]:
    """Options for subprocess: run as the other user, with none of our rights."""
    return {"user": OTHER_UID, "group": OTHER_GID, "extra_groups": [], "cwd": "/", **options}


@cache
def other_python() -> str:
    """A Python >= 3.8 that the other user may execute; "" where there is none.

    Ours may be in root's private home.
    """
    check = "import sys; sys.exit(sys.version_info < (3, 8))"
    for program in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        try:
            subprocess.run([program, "-c", check], check=True, **as_other_user())
        except (OSError, subprocess.SubprocessError):
            continue
        return program
    return ""


def with_memdiag() -> dict[str, str]:
    """An environment in which the other user's Python finds memdiag, and what capture needs."""
    places = (Path(memdiag.__file__).parents[1], Path(psutil.__file__).parents[1])
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, places))}


@cache
def _why_not() -> str:
    if os.geteuid() != 0:
        return "only root can play two users"
    return "" if other_python() else "another user may not execute any Python here"


needs_two_users = pytest.mark.skipif(bool(_why_not()), reason=_why_not() or "there are two users")
