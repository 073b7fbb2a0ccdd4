"""Finds out why a target ended, from the kernel's counters and the target's own reports."""

from __future__ import annotations

import signal
from dataclasses import dataclass, replace

from memdiag.capture.diagnosis.oom_reports import OomReport
from memdiag.capture.process.cgroup import MemoryGroup, OomCounters
from memdiag.values.measurements import Cause, Ending
from memdiag.values.sanitize import printable

_KILLED = int(signal.SIGKILL)
# A shell exits with 128 + the signal's number if its program was killed (bash(1)).
_KILLED_BELOW = 128 + _KILLED
# The part of a device's limit that a tree must hold for it to be what stopped the tree: else it was
# another, such as the share of a GPU that torch allows. Heuristic: a request may be large.
_LEAST_OF_LIMIT = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """The kernel's evidence.

    before, after: its counters when the target was first seen and after it ended.
    group: the target's control group, for its limit.
    """

    before: OomCounters
    after: OomCounters
    group: MemoryGroup | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """The tree's last known host and device memory, and the limit of its device if it used only
    one; None if unknown."""

    host_bytes: int | None = None
    device_bytes: int | None = None
    device_limit_bytes: int | None = None


def explained(
    ending: Ending, *, kernel: Kernel, report: OomReport | None = None, held: Held | None = None
) -> Ending:
    """The ending with its reason, if there is evidence for one. A known reason is kept.

    report: the target's own out-of-memory report.
    """
    held = held or Held()
    if ending.why:
        return ending
    if ending.signal == _KILLED or ending.code == _KILLED_BELOW:
        return _killed(ending, kernel, held)
    # A program that exits with 0 has handled the error.
    if report is not None and ending.signal is None and ending.code != 0:
        return _by_report(ending, report, held)
    if ending == Ending() and _rose(kernel.before.group, kernel.after.group):
        why = "the process ended while the OOM killer was active in its control group"
        return replace(ending, why=why, cause=Cause.OOM_KILLER_NEAR, at_bytes=held.host_bytes)
    return ending


def _killed(ending: Ending, kernel: Kernel, held: Held) -> Ending:
    if _rose(kernel.before.group, kernel.after.group):
        found = kernel.group.limit() if kernel.group is not None else None
        return replace(
            ending,
            why="killed by the kernel's OOM killer",
            cause=Cause.OOM_KILLER,
            at_bytes=held.host_bytes,
            limit_bytes=None if found is None else found[0],
        )
    if _rose(kernel.before.machine, kernel.after.machine):
        why = "killed while the kernel's OOM killer was active on this machine"
        return replace(ending, why=why, cause=Cause.OOM_KILLER_NEAR, at_bytes=held.host_bytes)
    return ending


def _by_report(ending: Ending, report: OomReport, held: Held) -> Ending:
    who = f"{report.process} " if report.process else ""
    if not report.on_device:
        # The last reading may be later, when much was freed.
        known = [one for one in (held.host_bytes, report.held_bytes) if one is not None]
        return replace(
            ending,
            why=f"{who}ran out of host memory",
            cause=Cause.HOST_MEMORY,
            detail=printable(report.text),
            at_bytes=max(known, default=None),
        )
    at_bytes = held.device_bytes if held.device_bytes is not None else report.held_bytes
    limit = held.device_limit_bytes
    # Without an exception of its own, a program may have handled it and failed of something else.
    what = "ran out of GPU memory" if report.text else "had run out of GPU memory just before"
    return replace(
        ending,
        why=who + what,
        cause=Cause.DEVICE_MEMORY,
        detail=printable(report.text),
        at_bytes=at_bytes,
        limit_bytes=limit if _is_reached(at_bytes, limit) else None,
    )


def _is_reached(held_bytes: int | None, limit_bytes: int | None) -> bool:
    if held_bytes is None or not limit_bytes:
        return False
    return _LEAST_OF_LIMIT * limit_bytes <= held_bytes <= limit_bytes


def _rose(before: int | None, after: int | None) -> bool:
    return before is not None and after is not None and after > before
