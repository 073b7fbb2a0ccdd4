"""Why a target ended: what the kernel tells about it, and what it said itself."""

from __future__ import annotations

import signal
from dataclasses import dataclass, replace

from memdiag.capture.diagnosis.oom_reports import LastWords
from memdiag.capture.process.cgroup import MemoryGroup, OomCounters
from memdiag.values.measurements import Cause, Ending
from memdiag.values.sanitize import printable

_KILLED = int(signal.SIGKILL)
# A shell that waits for a killed program ends with 128 + the signal's number (bash(1)).
_KILLED_BELOW = 128 + _KILLED


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """The kernel's evidence.

    before, after: its counts when the target was first seen and when it had ended.
    group: the target's, for its limit.
    """

    before: OomCounters
    after: OomCounters
    group: MemoryGroup | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Bytes of the tree when last seen, of the host's memory and of devices', and what it was
    allowed of the one device that it was on; None where unknown."""

    host_bytes: int | None = None
    device_bytes: int | None = None
    device_limit_bytes: int | None = None


def explained(
    ending: Ending, *, kernel: Kernel, words: LastWords | None = None, held: Held | None = None
) -> Ending:
    """The ending with its reason, where there is evidence for one; a reason that is known stays.

    words: what the target itself said of want of memory.
    """
    held = held or Held()
    if ending.why:
        return ending
    if ending.signal == _KILLED or ending.code == _KILLED_BELOW:
        return _killed(ending, kernel, held)
    # A program that went on to end well has lived with it.
    if words is not None and ending.signal is None and ending.code != 0:
        return _by_words(ending, words, held)
    if ending == Ending() and _rose(kernel.before.group, kernel.after.group):
        why = "the process has ended while the OOM killer was at work in its control group"
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
        why = "killed while the kernel's OOM killer was at work on this machine"
        return replace(ending, why=why, cause=Cause.OOM_KILLER_NEAR, at_bytes=held.host_bytes)
    return ending


def _by_words(ending: Ending, words: LastWords, held: Held) -> Ending:
    who = f"{words.process} " if words.process else ""
    if not words.on_device:
        return replace(
            ending,
            why=f"{who}could get no more host memory",
            cause=Cause.HOST_MEMORY,
            detail=printable(words.text),
            at_bytes=held.host_bytes,
        )
    at_bytes = held.device_bytes if held.device_bytes is not None else words.held_bytes
    limit = held.device_limit_bytes
    # Without its own word for it: a program may live with that, and fail of something else.
    what = "ran out of GPU memory" if words.text else "had run out of GPU memory just before"
    return replace(
        ending,
        why=who + what,
        cause=Cause.DEVICE_MEMORY,
        detail=printable(words.text),
        at_bytes=at_bytes,
        limit_bytes=limit if at_bytes is not None and limit and at_bytes <= limit else None,
    )


def _rose(before: int | None, after: int | None) -> bool:
    return before is not None and after is not None and after > before
