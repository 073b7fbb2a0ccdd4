"""The two other users of the campaign, and a Python that they may execute.

A Python in a private home (pyenv below a /root that nobody else may enter) is of no use to them.
The system's Python of the same version then runs memdiag with the libraries of this environment.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from .running import ROOT

ATTACKER, VICTIM = 65534, 65533
_SYSTEM = ("/usr/bin", "/usr/local/bin", "/bin")
_PATIENCE_S = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Users:
    """What other users can do here.

    python: runs memdiag as any user, "" where there is none. plain_python: runs programs of the
    standard library alone as any user, "" where there is none. why_not: why there are no other
    users at all, "" where there are.
    """

    python: str
    plain_python: str
    why_not: str

    @property
    def why_no_victim(self) -> str:
        """Why memdiag cannot run as another user, "" where it can."""
        if self.why_not or self.python:
            return self.why_not
        return "no Python that another user may execute has memdiag's libraries"


def find_users(directory: Path) -> Users:
    """Look which Python other users can execute. directory: where one may be put together."""
    if os.geteuid() != 0:
        return Users(python="", plain_python="", why_not="two users need root")
    plain = next((p for p in [*_pythons(""), *_pythons("3")] if _works(p, "-c", "")), "")
    if not plain:
        return Users(python="", plain_python="", why_not="no Python that another user may execute")
    candidates = [sys.executable, *(_borrowed(p, directory) for p in _pythons(_version()))]
    python = next((p for p in candidates if _works(p, "-m", "memdiag", "--version")), "")
    return Users(python=python, plain_python=plain, why_not="")


def _version() -> str:
    return "{}.{}".format(*sys.version_info[:2])


def _pythons(version: str) -> list[str]:
    if not version:
        return [sys.executable]
    paths = [Path(place) / f"python{version}" for place in _SYSTEM]
    return [str(path) for path in paths if path.exists()]


def _borrowed(python: str, directory: Path) -> str:
    """An environment of `python` with the libraries of the one that runs this."""
    place = directory / "python"
    shutil.rmtree(place, ignore_errors=True)
    libraries = place / "lib" / f"python{_version()}" / "site-packages"
    libraries.mkdir(parents=True)
    (place / "bin").mkdir()
    (place / "bin" / "python").symlink_to(python)
    (place / "pyvenv.cfg").write_text(f"home = {Path(python).parent}\n")
    ours = [path for path in sys.path if path.endswith("site-packages")]
    lines = [f"import site; site.addsitedir({path!r})" for path in ours]
    (libraries / "attack.pth").write_text("\n".join([*lines, str(ROOT), ""]))
    return str(place / "bin" / "python")


def _works(python: str, *arguments: str) -> bool:
    try:
        ended = subprocess.run(
            [python, *arguments],
            cwd="/",
            user=VICTIM,
            group=VICTIM,
            extra_groups=[],
            env={"PATH": os.defpath, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=_PATIENCE_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return ended.returncode == 0
