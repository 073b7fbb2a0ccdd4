"""Makes a channel from inside where memdiag did not start the process: `watch` finds it."""

from __future__ import annotations

import os
import sys

from .facts import started_ticks
from .layout import DIRECTORY_VARIABLE

PACKAGE = "_memdiag_probe"
# (In the target this module has no __file__.)
INJECTED = os.path.join(os.path.abspath(sys.modules[__package__].__path__[0]), "inject")  # noqa: PTH100, PTH118


def arm(directory: str = "") -> None:
    """Watch this process, and the children it starts, unless it is watched already.

    directory: the channel; by default the one that the environment names, or one of its own.
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
        _let_children_in()
        after = _variables()
        probe.when_gone(lambda: _restore(before, after))
    except Exception:
        return


def _variables() -> dict[str, str | None]:
    return {name: os.environ.get(name) for name in (DIRECTORY_VARIABLE, "PYTHONPATH")}


def _restore(before: dict[str, str | None], after: dict[str, str | None]) -> None:
    """The environment as it was before us, but for what was changed by others since."""
    for name, value in before.items():
        if os.environ.get(name) != after[name]:
            continue
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def own_channel() -> str:
    """Make a private directory where `memdiag watch` looks for it, and name it to children."""
    base = _base()
    try:
        os.mkdir(base, 0o700)  # noqa: PTH102
    except FileExistsError:
        if not _is_private(base):
            raise
    name = f"{os.getpid()}-{started_ticks()}-{os.urandom(4).hex()}"
    directory = os.path.join(base, name)  # noqa: PTH118
    os.mkdir(directory, 0o700)  # noqa: PTH102
    os.environ[DIRECTORY_VARIABLE] = directory
    return directory


def _base() -> str:
    """The user's runtime directory, where there is one, else a place for temporary files."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if os.path.isabs(runtime) and _is_private(runtime):  # noqa: PTH117
        return os.path.join(runtime, "memdiag")  # noqa: PTH118
    return os.path.join(_temporary(), f"memdiag-{os.getuid()}")  # noqa: PTH118


def _is_private(directory: str) -> bool:
    """Return True if it is a real directory of ours that nobody else may enter."""
    try:
        found = os.lstat(directory)
    except OSError:
        return False
    return found.st_uid == os.getuid() and found.st_mode & 0o170077 == 0o040000


def _temporary() -> str:
    """As the tempfile module finds it, which is too slow to import here."""
    named = [os.environ.get(variable, "") for variable in ("TMPDIR", "TEMP", "TMP")]
    for directory in (*named, "/tmp", "/var/tmp", "/usr/tmp"):
        if directory and os.access(directory, os.W_OK | os.X_OK):
            return os.path.abspath(directory)  # noqa: PTH100
    raise FileNotFoundError


def _let_children_in() -> None:
    path = os.environ.get("PYTHONPATH", "")
    if INJECTED not in path.split(os.pathsep):
        os.environ["PYTHONPATH"] = INJECTED + (os.pathsep + path if path else "")
