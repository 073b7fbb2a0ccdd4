"""Checks if the probe may be attached to a running process, and why not."""

from __future__ import annotations

import os
from pathlib import Path

from memdiag.capture.probelink.why_uninstrumented import read_start_facts, unfit
from memdiag.capture.probelink.workspace import User
from memdiag.errors import CannotWatch
from memdiag.values.sanitize import printable

_CAP_SYS_PTRACE = 19
_OUTSIDE = "leave out --attach: its memory can be measured from outside"


def user_of(pid: int) -> User:
    """The user of process `pid`. Raises CannotWatch if it has more than one."""
    uids, gids = (_status_fields(pid, name) for name in ("Uid", "Gid"))
    if not uids or not gids:
        raise CannotWatch(f"process {pid} has ended", remedy="look it up with `pgrep -af python`")
    if len(set(uids)) > 1 or len(set(gids)) > 1:
        raise CannotWatch(
            f"process {pid} has changed its user, and protects itself", remedy=_OUTSIDE
        )
    return User(uid=int(uids[0]), gid=int(gids[0]))


def refuse_unfit(pid: int, probe: Path) -> None:
    """Raise CannotWatch if the process is not Python, too old, or in another container.

    probe: the probe's files, which must have the same path in the target.
    """
    started = read_start_facts(pid)
    reason = None if started is None else unfit(started)
    if reason is not None:
        raise CannotWatch(
            f"the probe cannot be attached to process {pid}: {printable(reason.reason)}",
            remedy=_OUTSIDE,
        )
    if not _is_same(probe, Path(f"/proc/{pid}/root{probe}")) or _namespace(pid) != _namespace(
        os.getpid()
    ):
        raise CannotWatch(
            f"process {pid} runs in another container, without memdiag's files",
            remedy="run memdiag in that container, or " + _OUTSIDE,
        )


def refuse_forbidden(pid: int, user: User) -> None:
    """Raise CannotWatch if the system forbids stopping the target and changing its memory.

    user: the target's.
    """
    tracer = _status(pid, "TracerPid")
    if tracer not in ("", "0"):
        raise CannotWatch(
            f"process {pid} is being debugged already, by process {tracer}",
            remedy="end that, or " + _OUTSIDE,
        )
    if not user.is_us:
        _refuse_other_user(pid, user)
    if "shstk" in _status_fields(pid, "x86_Thread_features"):
        raise CannotWatch(
            f"process {pid} has a shadow stack, which forbids a call from outside", remedy=_OUTSIDE
        )
    try:
        # Requires the same permission as tracing, without any effect.
        os.close(os.open(f"/proc/{pid}/mem", os.O_RDWR))
    except OSError as error:
        why, remedy = why_forbidden(scope=_ptrace_scope(), privileged=_may_trace())
        raise CannotWatch(
            f"memdiag may not attach the probe to process {pid}: {why}",
            remedy=f"{remedy}, or {_OUTSIDE}",
        ) from error


def _refuse_other_user(pid: int, user: User) -> None:
    if os.geteuid() != 0:
        raise CannotWatch(
            f"process {pid} belongs to another user (uid {user.uid})",
            remedy=f"run memdiag as that user, or {_OUTSIDE}",
        )
    if Path(f"/proc/{pid}").stat().st_uid != user.uid:
        raise CannotWatch(f"process {pid} protects itself", remedy=_OUTSIDE)
    ours, theirs = (os.readlink(f"/proc/{one}/ns/mnt") for one in ("self", pid))  # noqa: PTH115
    if ours != theirs or os.readlink(f"/proc/{pid}/root") != "/":  # noqa: PTH115
        raise CannotWatch(
            f"process {pid} has a different view of the file system (a container, a private /tmp)",
            remedy="run memdiag in that container, or " + _OUTSIDE,
        )


def why_forbidden(*, scope: int, privileged: bool) -> tuple[str, str]:
    """Why the system forbids tracing a process of the same user, and a remedy.

    scope: of the Yama security module (kernel.yama.ptrace_scope), 0 if there is none.
    privileged: memdiag has CAP_SYS_PTRACE.
    """
    if scope >= 3:
        return (
            "kernel.yama.ptrace_scope is 3, which forbids debugging until the next boot",
            "start the training with `memdiag run`",
        )
    if scope and not privileged:
        who = "its own children" if scope == 1 else "with the CAP_SYS_PTRACE capability"
        return (
            f"kernel.yama.ptrace_scope is {scope}, which allows a process to debug only {who}",
            "run memdiag as root (sudo; a container needs --cap-add=SYS_PTRACE for that)",
        )
    if not privileged and os.geteuid() == 0:
        return (
            "this container has no CAP_SYS_PTRACE",
            "start the container with --cap-add=SYS_PTRACE",
        )
    return (
        "it belongs to another user, changed its user, or protects itself",
        "run memdiag as root",
    )


def why_not_traced(pid: int, error: Exception) -> str:
    """One sentence on why the calls could not be made."""
    if isinstance(error, PermissionError):
        if _ptrace_scope() and not _may_trace():
            why, remedy = why_forbidden(scope=_ptrace_scope(), privileged=False)
            return f"memdiag may not attach the probe to process {pid}: {why}; {remedy}"
        return (
            f"the system did not allow memdiag to stop process {pid}: in a container this needs "
            "--cap-add=SYS_PTRACE (and a seccomp profile that allows ptrace)"
        )
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return (
        f"the probe could not be attached to process {pid}: {printable(reason or str(error))}; the "
        "process continues as before"
    )


def _ptrace_scope() -> int:
    try:
        return int(Path("/proc/sys/kernel/yama/ptrace_scope").read_text())
    except (OSError, ValueError):
        return 0


def _may_trace() -> bool:
    capabilities = _status(os.getpid(), "CapEff") or "0"
    return bool(int(capabilities, 16) >> _CAP_SYS_PTRACE & 1)


def _status(pid: int, field: str) -> str:
    return next(reversed(_status_fields(pid, field)), "")


def _status_fields(pid: int, field: str) -> list[str]:
    try:
        lines = os.fsdecode(Path(f"/proc/{pid}/status").read_bytes()).splitlines()
    except OSError:
        return []
    return next((line.split()[1:] for line in lines if line.startswith(f"{field}:")), [])


def _is_same(ours: Path, theirs: Path) -> bool:
    try:
        return ours.samefile(theirs)
    except OSError:
        return False


def _namespace(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")  # noqa: PTH115 - no path: "pid:[4026531836]"
    except OSError:
        return ""
