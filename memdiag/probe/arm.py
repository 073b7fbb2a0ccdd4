"""Starts the probe from inside a process that memdiag did not start, for `memdiag watch`."""

from __future__ import annotations

import os
import sys

from .guard import ours
from .process_identity import started_ticks
from .ring_format import DIRECTORY_VARIABLE

PACKAGE = "_memdiag_probe"
# (In the target this module has no __file__.)
INJECTED = os.path.join(os.path.abspath(sys.modules[__package__].__path__[0]), "inject")  # noqa: PTH100, PTH118


def arm(directory: str = "") -> None:
    """Start the probe in this process and the children it starts, unless it is running.

    directory: the channel; by default the one named in the environment, or a new one.
    """
    try:
        if getattr(sys.modules.get(PACKAGE), "listener", None) is not None:
            return
        from .boot import boot

        before = _variables()
        sys.modules[PACKAGE] = sys.modules[__package__]
        if directory:
            os.environ[DIRECTORY_VARIABLE] = directory
        probe = boot(directory or os.environ.get(DIRECTORY_VARIABLE) or own_channel())
        _instrument_children()
        after = _variables()
        probe.on_detach(lambda: _restore(before, after))
        sys.modules[PACKAGE].detach = probe.detach  # type: ignore[attr-defined]
    except ours(Exception):
        return


def _variables() -> dict[str, str | None]:
    return {name: os.environ.get(name) for name in (DIRECTORY_VARIABLE, "PYTHONPATH")}


def _restore(before: dict[str, str | None], after: dict[str, str | None]) -> None:
    """Restore the environment, except for variables that others have changed since."""
    for name, value in before.items():
        if os.environ.get(name) != after[name]:
            continue
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def own_channel() -> str:
    """Make a private directory where `memdiag watch` finds it, and export it to children."""
    base = _base()
    try:
        os.mkdir(base, 0o700)  # noqa: PTH102
    except ours(FileExistsError):
        if not _is_private(base):
            raise
    name = f"{os.getpid()}-{started_ticks()}-{os.urandom(4).hex()}"
    directory = os.path.join(base, name)  # noqa: PTH118
    os.mkdir(directory, 0o700)  # noqa: PTH102
    os.environ[DIRECTORY_VARIABLE] = directory
    return directory


def _base() -> str:
    """The user's runtime directory if there is one, else a directory for temporary files."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if os.path.isabs(runtime) and _is_private(runtime):  # noqa: PTH117
        return os.path.join(runtime, "memdiag")  # noqa: PTH118
    return os.path.join(_temporary(), f"memdiag-{os.getuid()}")  # noqa: PTH118


def _is_private(directory: str) -> bool:
    """Return True if this is a directory of this user (not a link) that nobody else may enter."""
    try:
        found = os.lstat(directory)
    except ours(OSError):
        return False
    return found.st_uid == os.getuid() and found.st_mode & 0o170077 == 0o040000


def _temporary() -> str:
    """The result of `tempfile.gettempdir()`, a module that is too slow to import here."""
    named = [os.environ.get(variable, "") for variable in ("TMPDIR", "TEMP", "TMP")]
    for directory in (*named, "/tmp", "/var/tmp", "/usr/tmp"):
        if directory and os.access(directory, os.W_OK | os.X_OK):
            return os.path.abspath(directory)  # noqa: PTH100
    raise FileNotFoundError


def _instrument_children() -> None:
    path = os.environ.get("PYTHONPATH", "")
    if INJECTED not in path.split(os.pathsep):
        os.environ["PYTHONPATH"] = INJECTED + (os.pathsep + path if path else "")
