"""Why a target ended: what the kernel and the last readings tell about it."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from memdiag.capture.cgroup import PROC, MemoryGroup
from memdiag.capture.limits import oom_kills_on_machine
from memdiag.model import Ending

_KILLED = int(signal.SIGKILL)
# A shell that waits for a killed program ends with 128 + the signal's number (bash(1)).
_KILLED_BELOW = 128 + _KILLED


@dataclass(frozen=True, slots=True, kw_only=True)
class OomCounters:
    """The kernel's counts of processes killed for memory; None where it does not tell them."""

    group: int | None
    machine: int | None


def oom_counters(group: MemoryGroup | None, *, proc: Path = PROC) -> OomCounters:
    """The counts now. Take them when the recording begins, and again when the target has ended."""
    return OomCounters(
        group=None if group is None else group.oom_kills(),
        machine=oom_kills_on_machine(proc=proc),
    )


def explained(
    ending: Ending,
    *,
    before: OomCounters,
    after: OomCounters,
    limit_bytes: int | None = None,
    last: Mapping[str, int | float] | None = None,
) -> Ending:
    """The ending with its reason, where there is evidence for one; an earlier reason stays.

    limit_bytes: the tightest limit of the target's cgroup. last: the tree's last readings, by
    metric; `rss_bytes` tells how far it had come, `vram_ooms` how often CUDA ran out of memory.
    """
    last = last or {}
    if ending.why:
        return ending
    killed = ending.signal == _KILLED or ending.code == _KILLED_BELOW
    at_bytes = int(last["rss_bytes"]) if "rss_bytes" in last else None
    if killed and _rose(before.group, after.group):
        why = "killed by the kernel's OOM killer"
        return replace(ending, why=why, at_bytes=at_bytes, limit_bytes=limit_bytes)
    if killed and _rose(before.machine, after.machine):
        why = "killed while the kernel's OOM killer was at work on this machine"
        return replace(ending, why=why, at_bytes=at_bytes)
    if ending.code not in (None, 0) and last.get("vram_ooms", 0) > 0:
        return replace(ending, why="CUDA ran out of memory")
    return ending


def _rose(before: int | None, after: int | None) -> bool:
    return before is not None and after is not None and after > before
