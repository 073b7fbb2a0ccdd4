"""Why a target ended: what the kernel tells about it."""

from __future__ import annotations

import signal
from dataclasses import replace

from memdiag.capture.cgroup import MemoryGroup, OomCounters
from memdiag.model import Ending

_KILLED = int(signal.SIGKILL)
# A shell that waits for a killed program ends with 128 + the signal's number (bash(1)).
_KILLED_BELOW = 128 + _KILLED


def explained(
    ending: Ending,
    *,
    before: OomCounters,
    after: OomCounters,
    group: MemoryGroup | None = None,
    at_bytes: int | None = None,
) -> Ending:
    """The ending with its reason, where there is evidence for one; a reason that is known stays.

    group: the target's, for its limit. at_bytes: resident memory of the tree when last seen.
    """
    killed = ending.signal == _KILLED or ending.code == _KILLED_BELOW
    if ending.why or not killed:
        return ending
    if _rose(before.group, after.group):
        found = group.limit() if group is not None else None
        return replace(
            ending,
            why="killed by the kernel's OOM killer",
            at_bytes=at_bytes,
            limit_bytes=None if found is None else found[0],
        )
    if _rose(before.machine, after.machine):
        why = "killed while the kernel's OOM killer was at work on this machine"
        return replace(ending, why=why, at_bytes=at_bytes)
    return ending


def _rose(before: int | None, after: int | None) -> bool:
    return before is not None and after is not None and after > before
