"""Out-of-memory reports from the target's processes, used after it exits.

There are two sources: the exception that ended a program, which the probe records at its exit, and
the allocator's count of failed allocations, for programs that end without `atexit` (workers of
multiprocessing, launchers that catch everything).
"""

from __future__ import annotations

from dataclasses import dataclass

from memdiag.capture.probelink.ring_reader import Event, Kind
from memdiag.capture.process.tree import ProcessId

# An allocation that failed longer before the end was handled: batch sizes are found that way.
# Heuristic.
_RECENT_S = 10.0
_DEVICE = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class OomReport:
    """A process ended, or is about to end, because an allocation failed.

    process: its label in the recording. text: of its exception (untrusted), "" if only the
    allocator's count is known. on_device: in a device's memory, else in the host's.
    held_bytes: the memory that it held when the allocation failed, None if unknown.
    """

    process: str
    at_s: float
    text: str
    on_device: bool
    held_bytes: int | None


class OomReports:
    """Keeps the latest report of each source."""

    def __init__(self) -> None:
        self._raised: OomReport | None = None
        self._failed: OomReport | None = None
        self._ooms: dict[ProcessId, int] = {}
        self._held: dict[ProcessId, int] = {}

    def add(self, event: Event, process: str) -> None:
        """Take an event of a process with this label into account."""
        held = event.readings.get("vram_reserved_bytes")
        if held is not None:
            self._held[event.process] = held
        if event.kind is Kind.OUT_OF_MEMORY:
            on_device = event.value == _DEVICE
            self._raised = OomReport(
                process=process,
                at_s=event.at_s,
                text=event.name,
                on_device=on_device,
                held_bytes=self._held.get(event.process) if on_device else event.rss_bytes,
            )
        elif event.kind is Kind.ALLOCATOR:
            self._count(event, process)

    def latest(self, ended_at_s: float) -> OomReport | None:
        """The report that explains an end at this moment (on the clock of the events)."""
        if self._raised is not None:
            return self._raised
        failed = self._failed
        recent = failed is not None and ended_at_s - failed.at_s <= _RECENT_S
        return failed if recent else None

    def _count(self, event: Event, process: str) -> None:
        ooms = sum(value for metric, value in event.readings.items() if metric.endswith("_ooms"))
        if ooms > self._ooms.get(event.process, 0):
            self._failed = OomReport(
                process=process,
                at_s=event.at_s,
                text="",
                on_device=True,
                held_bytes=self._held.get(event.process),
            )
        self._ooms[event.process] = max(ooms, self._ooms.get(event.process, 0))
