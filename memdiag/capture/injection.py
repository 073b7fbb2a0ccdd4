"""Lets the probe into a process that runs already: on request, with a stop of milliseconds.

Either by Python's own way in (`sys.remote_exec`, PEP 768: both sides 3.14 or later, the same
version), or by gdb. gdb makes two calls in the target: `mmap` for a page to put a line of Python
into, and `Py_AddPendingCall`, which CPython offers for asynchronous use: no memory is allocated,
no lock of the allocator or of the interpreter (GIL) is needed. The line itself runs later, in the
main thread, between two bytecodes, when gdb is long gone.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from memdiag.capture.permission import why_not_traced
from memdiag.capture.symbols import exported, mapped_files
from memdiag.capture.whynoprobe import look_at, version_of
from memdiag.errors import CannotWatch
from memdiag.printable import printable

# Chosen: attaching takes some 50 ms; a target that is stuck in the kernel cannot be attached to,
# and one whose main thread holds the lock of its pending calls, for some nanoseconds, hangs in
# ours. gdb is interrupted then, which takes its call back.
PATIENCE_S = 10.0
_NEEDED = frozenset({"Py_AddPendingCall", "PyRun_SimpleString"})
_ROOM = frozenset({"mmap"})
_LIBC = ("libc.", "libc-2", "ld-musl")
_DONE = "memdiag: pending 0"
_LOOK_S = 0.0005

RemoteExec = Callable[[int, str], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Injected:
    """What letting the probe in took. way: "gdb" or "sys.remote_exec".

    stopped_s: how long the target stood still, as seen from outside; None where it did not.
    """

    way: str
    stopped_s: float | None


def inject(
    pid: int, directory: Path, *, probe: Path, remote_exec: RemoteExec | None = None
) -> Injected:
    """Have process `pid` load the probe, as soon as its main thread runs Python code.

    directory: its channel, which the target must be able to write to. Our work files go there.
    probe: the probe's files, which it must be able to read.
    remote_exec: Python's own way, by default that of this interpreter if it has one.

    Raises CannotWatch: with the reason why the target cannot be entered, and what to try.
    """
    line = line_of_python(probe / "entry.py", directory)
    way = remote_exec or _pythons_own_way(pid)
    return _by_gdb(pid, directory, line) if way is None else _by_python(pid, directory, line, way)


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


def _by_python(pid: int, directory: Path, line: str, remote_exec: RemoteExec) -> Injected:
    script = directory / "enter.py"
    script.write_text(line)
    script.chmod(0o644)
    try:
        remote_exec(pid, str(script))
    except (OSError, RuntimeError) as error:
        raise CannotWatch(
            f"Python did not let the probe into process {pid}: {printable(str(error))}",
            remedy="start it without PYTHON_DISABLE_REMOTE_DEBUG and -X disable-remote-debug, run "
            "memdiag as root, or leave out --attach",
        ) from error
    return Injected(way="sys.remote_exec", stopped_s=None)


def _by_gdb(pid: int, directory: Path, line: str) -> Injected:
    gdb = shutil.which("gdb")
    if gdb is None:
        raise CannotWatch(
            "there is no gdb, which the probe is let in by before Python 3.14",
            remedy="install it (apt install gdb, dnf install gdb, conda install gdb), or leave out "
            "--attach",
        )
    room = directory / "enter.bin"
    room.write_bytes(line.encode() + b"\0")
    script = directory / "enter.gdb"
    script.write_text(_gdb_script(pid, _addresses(pid), room))
    command = [gdb, "-nx", "-q", "-batch", "-iex", "set auto-load off"]
    command += ["-iex", "set debuginfod enabled off", "-iex", "set auto-solib-add off"]
    command += ["-x", str(script)]
    said, stopped_s = _run(command, pid, directory)
    if _DONE not in said:
        raise CannotWatch(why_not_traced(pid, said), remedy="or leave out --attach")
    return Injected(way="gdb", stopped_s=stopped_s)


def _addresses(pid: int) -> dict[str, int]:
    """Where in the target the functions are that gdb calls. Raises CannotWatch."""
    try:
        files = mapped_files(pid)
    except OSError as error:
        raise CannotWatch(
            f"the memory map of process {pid} cannot be read: {error.strerror}",
            remedy="run memdiag as its user or as root, or leave out --attach",
        ) from error
    executable = files[:1]
    pythons = [file for file in files if "python" in Path(file.name).name]
    libraries = [file for file in files if Path(file.name).name.startswith(_LIBC)]
    found: dict[str, int] = {}
    for names, places in ((_NEEDED, [*pythons, *executable]), (_ROOM, libraries)):
        for file in places:
            found = {**exported(file, names), **found}
    if not found.keys() >= _NEEDED | _ROOM:
        raise CannotWatch(
            f"the Python of process {pid} does not show where its functions are (it is linked "
            "statically, or stripped of its symbols)",
            remedy="start it with `memdiag run`, or leave out --attach",
        )
    return found


def _gdb_script(pid: int, at: dict[str, int], room: Path) -> str:
    """An error in a line ends the script, and with it gdb, which lets go of the target."""
    size = room.stat().st_size
    mmap = f"((void *(*)(void *, unsigned long, int, int, int, long)) {at['mmap']})"
    run = f"(void *) {at['PyRun_SimpleString']}"
    pending = f"((int (*)(void *, void *)) {at['Py_AddPendingCall']})"
    return "\n".join(
        (
            "set confirm off",
            "set pagination off",
            "set exec-file-mismatch off",
            # Without any symbols: reading them would keep the target waiting.
            f"set sysroot {room.parent}/none",
            f"exec-file /proc/{pid}/exe",
            "set unwindonsignal on",
            f"attach {pid}",
            f"set $room = {mmap}(0, {size}, 3, 0x22, -1, 0)",
            "if (long) $room != -1",
            f"restore {room.name} binary (long)$room",
            f"set $result = {pending}({run}, $room)",
            'printf "memdiag: pending %d\\n", $result',
            "end",
            "detach",
            "",
        )
    )


def _run(command: list[str], pid: int, directory: Path) -> tuple[str, float]:
    """What gdb says, and how long the target stood still meanwhile (s)."""
    with subprocess.Popen(
        command,
        cwd=directory,  # gdb's file names cannot be quoted
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,  # Ctrl-C is for memdiag, and gdb must not leave half-way
        # memdiag holds signals back; gdb would never hear of its tracee.
        preexec_fn=partial(signal.pthread_sigmask, signal.SIG_SETMASK, ()),  # noqa: PLW1509
        env={**os.environ, "LC_ALL": "C"},
    ) as gdb:
        stopped_s = _follow(gdb, pid)
        said, _ = gdb.communicate()
    return said.decode(errors="replace"), stopped_s


def _follow(gdb: subprocess.Popen[bytes], pid: int) -> float:
    """Wait for gdb; the time for which the target was seen in a tracing stop (s)."""
    began_s = last_s = time.monotonic()
    stopped_s = 0.0
    # SIGINT has it take a call back, SIGTERM let go; killed in a call it would take the target
    # with it.
    interrupts = iter((signal.SIGINT, signal.SIGINT, signal.SIGTERM, signal.SIGTERM))
    due_s = began_s + PATIENCE_S
    while gdb.poll() is None:
        now_s = time.monotonic()
        if _is_traced(pid):
            stopped_s += now_s - last_s
        last_s = now_s
        if now_s >= due_s:
            gdb.send_signal(next(interrupts, signal.SIGKILL))
            due_s = now_s + 2.0
        time.sleep(_LOOK_S)
    return stopped_s


def _is_traced(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False
    return stat.rpartition(b")")[2][:2] == b" t"


def _pythons_own_way(pid: int) -> RemoteExec | None:
    """`sys.remote_exec` where both sides have it: they must be of the same version."""
    way: RemoteExec | None = getattr(sys, "remote_exec", None)
    suspect = look_at(pid)
    version = None if suspect is None else version_of(suspect)
    return way if version == sys.version_info[:2] else None
