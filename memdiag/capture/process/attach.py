"""Checks if a running process can be watched, and if not, why."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
import time
from collections.abc import Sequence

import psutil

from memdiag.capture.process.linux_procfs import ProcTable
from memdiag.capture.process.psutil_table import PsutilTable
from memdiag.capture.process.tree import Process, ProcessTable
from memdiag.errors import CannotWatch
from memdiag.values.measurements import RunningProgram
from memdiag.values.sanitize import printable

Table = ProcTable | PsutilTable


def this_table() -> Table:
    """The process table of this machine. Close it when done."""
    return ProcTable() if sys.platform.startswith("linux") else PsutilTable()


def attach(pid: int, table: ProcessTable) -> Process:
    """The process on `pid`. Raises CannotWatch if it is missing or may not be watched."""
    if pid == os.getpid():
        raise CannotWatch(
            f"process {pid} is memdiag itself", remedy="pass the pid of the training process"
        )
    if pid < 1 or not psutil.pid_exists(pid):
        raise CannotWatch(
            f"process {pid} does not exist",
            remedy="look it up with `pgrep -af python`; pids inside a container differ from "
            "those outside",
        )
    _refuse_kernel_thread(pid, table)
    process = table.find(pid)
    if process is None:
        raise _ended(pid)
    _refuse_other_user(process)
    return process


def python_processes() -> list[RunningProgram]:
    """The Python processes of this user, but memdiag's own, the largest first."""
    found = []
    asked = ["name", "cmdline", "memory_info", "create_time", "uids"]
    for process in psutil.process_iter(asked):
        facts = process.info
        words = facts["cmdline"] or []
        is_python = "python" in (facts["name"] or "").lower() or (
            bool(words) and "python" in os.path.basename(words[0])  # noqa: PTH119 - may be anything
        )
        uids, memory = facts["uids"], facts["memory_info"]
        is_own = uids is not None and os.geteuid() in {uids.real, 0}
        if is_python and is_own and memory is not None and not _is_memdiag(words):
            found.append(
                RunningProgram(
                    pid=process.pid,
                    command=shlex.join(words),
                    rss_bytes=memory.rss,
                    age_s=max(0.0, time.time() - (facts["create_time"] or 0.0)),
                )
            )
    return sorted(found, key=lambda one: -one.rss_bytes)


def _is_memdiag(words: Sequence[str]) -> bool:
    return "memdiag" in {os.path.basename(word) for word in words[1:3]}  # noqa: PTH119


def command_line(pid: int) -> list[str]:
    """The arguments of the process; empty if unreadable."""
    try:
        return psutil.Process(pid).cmdline()
    except psutil.Error:
        return []


def environment(pid: int) -> dict[str, str]:
    """The environment of the process at its start; empty if unreadable."""
    try:
        return psutil.Process(pid).environ()
    except (psutil.Error, OSError):
        return {}


def own_environment(pid: int) -> dict[str, str]:
    """The same of a process of this user, {} for another's: what it says is not to be followed."""
    try:
        is_ours = psutil.Process(pid).uids().real == os.geteuid()
    except (psutil.Error, OSError):
        return {}
    return environment(pid) if is_ours else {}


def _ended(pid: int) -> CannotWatch:
    parent = 0
    with contextlib.suppress(psutil.Error):
        parent = psutil.Process(pid).ppid()
    return CannotWatch(
        f"process {pid} is a zombie: it has ended and has no memory",
        remedy=f"watch its parent, process {parent}, which has not collected it yet",
    )


def _refuse_kernel_thread(pid: int, table: ProcessTable) -> None:
    stat = table.stat(pid) if isinstance(table, ProcTable) else None
    if stat is not None and stat.kernel_thread:
        raise CannotWatch(
            f"process {pid} ({printable(stat.name)}) is a kernel thread",
            remedy="it has no memory of its own; pass the pid of a program",
        )


def _refuse_other_user(process: Process) -> None:
    try:
        handle = psutil.Process(process.id.pid)
        owner, name = handle.uids().effective, handle.username()
    except psutil.Error:
        return  # it has just ended, which the watch will report
    if os.geteuid() not in (0, owner):
        user = printable(name)
        raise CannotWatch(
            f"process {process.id.pid} ({printable(process.name)}) belongs to user {user}",
            remedy=f"run memdiag as {user} (sudo -u {user} memdiag watch --pid {process.id.pid}) "
            "or as root",
        )
