"""Lets the probe into a process that runs already: on request, with a stop of a millisecond.

Either by Python's own way in (`sys.remote_exec`, PEP 768: both sides 3.14 or later, the same
version and the same user), or by ptrace. That makes two calls in the target: `mmap` for a page to
put a line of Python into, and `Py_AddPendingCall`, which CPython offers for asynchronous use: no
memory is allocated, no lock of the allocator or of the interpreter (GIL) is needed. The line itself
runs later, in the main thread, between two bytecodes, when nobody traces it any more.

The target may be of another user, who means harm to a root that attaches to it (docs/security.md):
of its memory nothing is read but registers and the code of the vDSO, of its files only the table
of exported symbols, within bounds, and nothing of either is executed by us.
"""

from __future__ import annotations

import contextlib
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from memdiag.capture.probelink.elf_symbols import exported, mapped_files
from memdiag.capture.probelink.ptrace import Refused, Tracee, is_supported
from memdiag.capture.probelink.ptrace_permission import why_not_traced
from memdiag.capture.probelink.why_uninstrumented import look_at, version_of
from memdiag.capture.probelink.workspace import User, Workspace
from memdiag.errors import CannotWatch
from memdiag.values.sanitize import printable

# A target that is stuck in the kernel does not stop, and one whose main thread holds the lock of
# its pending calls, for some nanoseconds, waits for itself in our call, which is taken back then.
# Heuristic: attaching takes a millisecond.
PATIENCE_S = 3.0
_NEEDED = frozenset({"Py_AddPendingCall", "PyRun_SimpleString"})

RemoteExec = Callable[[int, str], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Injected:
    """What letting the probe in took. way: "ptrace" or "sys.remote_exec".

    stopped_s: how long the target stood still, as seen from outside; None where it did not.
    """

    way: str
    stopped_s: float | None


def inject(
    pid: int, user: User, workspace: Workspace, *, remote_exec: RemoteExec | None = None
) -> Injected:
    """Have process `pid` load the probe, as soon as its main thread runs Python code.

    user: the target's. workspace: holds its channel and the probe.
    remote_exec: Python's own way, by default that of this interpreter if it has one.

    Raises CannotWatch: with the reason why the target cannot be entered, and what to try.
    """
    line = line_of_python(workspace.probe / "enter_process.py", workspace.rings)
    way = remote_exec or (_pythons_own_way(pid) if user.is_us else None)
    if way is None:
        return _by_ptrace(pid, line.encode() + b"\0")
    return _by_python(pid, workspace.write_script(line), way)


def line_of_python(entry: Path, directory: Path) -> str:
    """What the target is to run: one statement that leaves no name behind and never fails.

    It may be run as part of `__main__`, whose names are the program's.
    """
    path = f"{str(entry)!a}"
    # Reads the file and closes it: one left open would be warned of.
    source = (
        "__import__('importlib.machinery').machinery"
        f".SourceFileLoader('memdiag entry', {path}).get_data({path})"
    )
    names = f"{{'__name__': 'memdiag entry', '__file__': {path}, 'DIRECTORY': {str(directory)!a}}}"
    load = f"exec(compile({source}, {path}, 'exec'), {names})"
    return f"try: {load}\nexcept BaseException: pass\n"


def _by_python(pid: int, script: Path, remote_exec: RemoteExec) -> Injected:
    try:
        remote_exec(pid, str(script))
    except (OSError, RuntimeError) as error:
        raise CannotWatch(
            f"Python did not let the probe into process {pid}: {printable(str(error))}",
            remedy="start it without PYTHON_DISABLE_REMOTE_DEBUG and -X disable-remote-debug, run "
            "memdiag as root, or leave out --attach",
        ) from error
    return Injected(way="sys.remote_exec", stopped_s=None)


def _by_ptrace(pid: int, line: bytes) -> Injected:
    if not is_supported():
        raise CannotWatch(
            f"the probe cannot be let into a running process on {platform.machine()} before "
            "Python 3.14",
            remedy="start it with `memdiag run`, or leave out --attach",
        )
    at = _addresses(pid)
    tracee = Tracee(pid, patience_s=PATIENCE_S)
    try:
        with tracee:
            room = tracee.map_room(len(line))
            tracee.write(room, line)
            registered = tracee.call(at["Py_AddPendingCall"], at["PyRun_SimpleString"], room)
    except (Refused, OSError) as error:
        raise CannotWatch(why_not_traced(pid, error), remedy="or leave out --attach") from error
    if registered != 0:
        raise CannotWatch(
            f"process {pid} has too many calls pending already", remedy="try again in a moment"
        )
    return Injected(way="ptrace", stopped_s=tracee.stopped_s)


def _addresses(pid: int) -> dict[str, int]:
    """Where in the target the functions are that are called. Raises CannotWatch."""
    try:
        files = mapped_files(pid)
    except OSError as error:
        raise CannotWatch(
            f"the memory map of process {pid} cannot be read: {error.strerror}",
            remedy="run memdiag as its user or as root, or leave out --attach",
        ) from error
    executable = files[:1]
    pythons = [file for file in files if "python" in Path(file.name).name]
    found: dict[str, int] = {}
    for file in (*pythons, *executable):
        with contextlib.suppress(OSError):  # replaced or removed since it was started
            found = {**exported(file, _NEEDED), **found}
    if not found.keys() >= _NEEDED:
        raise CannotWatch(
            f"the Python of process {pid} does not show where its functions are (it was removed "
            "or replaced since, is linked statically, or stripped of its symbols)",
            remedy="start it with `memdiag run`, or leave out --attach",
        )
    return found


def _pythons_own_way(pid: int) -> RemoteExec | None:
    """`sys.remote_exec` where both sides have it: they must be of the same version."""
    way: RemoteExec | None = getattr(sys, "remote_exec", None)
    suspect = look_at(pid)
    version = None if suspect is None else version_of(suspect)
    return way if version == sys.version_info[:2] else None
