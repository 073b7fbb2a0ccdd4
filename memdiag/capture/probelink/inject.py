"""Loads the probe into a running process, on request. This stops it for a millisecond.

It uses either `sys.remote_exec` (PEP 768: both sides 3.14 or later, the same version and user) or
ptrace. With ptrace it makes two calls in the target: `mmap` for a page that takes a line of Python,
and `Py_AddPendingCall`, which CPython provides for asynchronous use: it allocates no memory, and
needs no lock of the allocator or the interpreter (GIL). The line runs later, in the main thread,
between two bytecodes, when the process is no longer traced.

The target may belong to a hostile user, while root attaches to it (docs/security.md): of its memory
only registers and the code of the vDSO are read, of its files only the table of exported symbols,
within limits, and nothing of either is executed by memdiag.
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
from memdiag.capture.probelink.why_uninstrumented import read_start_facts, version_of
from memdiag.capture.probelink.workspace import User, Workspace
from memdiag.errors import CannotWatch
from memdiag.values.sanitize import printable

# A target that is stuck in the kernel does not stop. One whose main thread holds the lock of its
# pending calls, for some nanoseconds, deadlocks in our call, which is then undone. Heuristic:
# attaching takes a millisecond.
PATIENCE_S = 3.0
_NEEDED = frozenset({"Py_AddPendingCall", "PyRun_SimpleString"})

RemoteExec = Callable[[int, str], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Injected:
    """How the probe was loaded. way: "ptrace" or "sys.remote_exec".

    stopped_s: how long the target was stopped, as seen from outside; None if it was not.
    """

    way: str
    stopped_s: float | None


def inject(
    pid: int, user: User, workspace: Workspace, *, remote_exec: RemoteExec | None = None
) -> Injected:
    """Load the probe into process `pid` as soon as its main thread runs Python code.

    user: the target's. workspace: its channel and the probe.
    remote_exec: by default `sys.remote_exec`, if this interpreter has it.

    Raises CannotWatch with the reason and a remedy.
    """
    line = line_of_python(workspace.probe / "enter_process.py", workspace.rings)
    way = remote_exec or (_own_remote_exec(pid) if user.is_us else None)
    if way is None:
        return _by_ptrace(pid, line.encode() + b"\0")
    return _by_python(pid, workspace.write_script(line), way)


def line_of_python(entry: Path, directory: Path) -> str:
    """The code for the target: one statement that sets no name and never fails.

    It may run in `__main__`, whose names belong to the program.
    """
    path = f"{str(entry)!a}"
    # `get_data` closes the file: Python warns of files that are left open.
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
            f"Python refused to load the probe into process {pid}: {printable(str(error))}",
            remedy="start it without PYTHON_DISABLE_REMOTE_DEBUG and -X disable-remote-debug, run "
            "memdiag as root, or leave out --attach",
        ) from error
    return Injected(way="sys.remote_exec", stopped_s=None)


def _by_ptrace(pid: int, line: bytes) -> Injected:
    if not is_supported():
        raise CannotWatch(
            f"the probe cannot be attached to a running process on {platform.machine()} before "
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
    """The addresses of the called functions in the target. Raises CannotWatch."""
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
        with contextlib.suppress(OSError):  # replaced or removed since its start
            found = {**exported(file, _NEEDED), **found}
    if not found.keys() >= _NEEDED:
        raise CannotWatch(
            f"the functions of the Python of process {pid} were not found (its file was removed or "
            "replaced, is linked statically, or stripped of its symbols)",
            remedy="start it with `memdiag run`, or leave out --attach",
        )
    return found


def _own_remote_exec(pid: int) -> RemoteExec | None:
    """`sys.remote_exec` if both sides have it, which must have the same version."""
    way: RemoteExec | None = getattr(sys, "remote_exec", None)
    started = read_start_facts(pid)
    version = None if started is None else version_of(started)
    return way if version == sys.version_info[:2] else None
